// Small models, batches and training runs that several of these tests use.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "train/model_directory.h"
#include "train/programs.h"

namespace ingot::integration {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

// "gpt2" or "llama", of two layers; odd sizes; dropout of probability p wherever the family has it.
inline Model small_model(const std::string& family, double p, int64_t vocab_size = 101) {
  const std::string json =
      family == "gpt2"
          ? fmt::format(
                R"({{"model_type": "gpt2", "vocab_size": {0}, "n_positions": 512, "n_embd": 24, "n_layer": 2,
                     "n_head": 3, "embd_pdrop": {1}, "attn_pdrop": {1}, "resid_pdrop": {1}}})",
                vocab_size, p)
          : fmt::format(
                R"({{"model_type": "llama", "vocab_size": {0}, "hidden_size": 24, "intermediate_size": 40,
                     "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                     "attention_dropout": {1}}})",
                vocab_size, p);
  return value_of(Model::from_json(json, "test", {UnknownKeys::refuse, {}}));
}

// Random tokens in documents of some 12 tokens; a part of the targets does not count.
inline Batch random_batch(int64_t rows, int64_t tokens, int64_t vocab_size, uint64_t seed,
                          uint32_t percent_ignored = 0) {
  Batch batch;
  batch.resize(rows, tokens);
  batch.tokens = rows * tokens;
  batch.counted = 0;
  const auto draw = [&](int64_t row, int64_t t, uint64_t what, int64_t bound) {
    return static_cast<int32_t>(bounded_at(
        stream_key(seed, "batch"), static_cast<uint64_t>((row * tokens + t) * 3) + what, static_cast<uint64_t>(bound)));
  };
  for (int64_t row = 0; row < rows; ++row) {
    int32_t start = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      const auto i = static_cast<size_t>(row * tokens + t);
      if (draw(row, t, 0, 12) == 0) start = static_cast<int32_t>(t);
      batch.segment_start[i] = start;
      batch.positions[i] = static_cast<int32_t>(t) - start;
      batch.ids[i] = draw(row, t, 1, vocab_size);
    }
    for (int64_t t = 0; t < tokens; ++t) {
      const auto i = static_cast<size_t>(row * tokens + t);
      const bool predicts = t + 1 < tokens && batch.segment_start[i + 1] <= t;
      const bool counts = predicts && draw(row, t, 2, 100) >= static_cast<int32_t>(percent_ignored);
      batch.targets[i] = counts ? batch.ids[i + 1] : kIgnored;
      batch.counted += counts ? 1 : 0;
    }
  }
  return batch;
}

// Rows [first, first + rows) of a batch.
inline Batch part_of(const Batch& whole, int64_t first, int64_t rows) {
  Batch part;
  part.resize(rows, whole.sequence_length);
  part.tokens = rows * whole.sequence_length;
  part.counted = 0;
  const auto from = static_cast<size_t>(first * whole.sequence_length);
  for (size_t i = 0; i < part.ids.size(); ++i) {
    part.ids[i] = whole.ids[from + i];
    part.targets[i] = whole.targets[from + i];
    part.segment_start[i] = whole.segment_start[from + i];
    part.positions[i] = whole.positions[from + i];
    part.counted += part.targets[i] != kIgnored ? 1 : 0;
  }
  return part;
}

// A model with initial weights, ready to train on micro-batches of one size.
class Training {
 public:
  Training(Model model, ProgramSettings settings, int threads = 1) : model_(std::move(model)), pool_(threads) {
    programs_ = value_of(TrainingPrograms::create(model_, settings, pool_));
    initialize_weights(model_, 3, programs_->arena(), pool_);
  }

  // One optimizer step on the rows of `batch`, `micro_batch` at a time.
  double step(const Batch& batch, int64_t micro_batch, double learning_rate = 1e-3) {
    ++steps_;
    const float scale = batch.counted > 0 ? 1.0f / static_cast<float>(batch.counted) : 0.0f;
    double loss = 0;
    for (int64_t row = 0; row < batch.rows; row += micro_batch) {
      const RandomState random{11, static_cast<uint64_t>(steps_), row, micro_batch};
      const Batch part = micro_batch == batch.rows ? batch : part_of(batch, row, micro_batch);
      loss += value_of(programs_->micro_step(part, scale, row > 0, random));
    }
    last_update_ = value_of(programs_->update(learning_rate, steps_));
    return loss;
  }

  std::vector<float> values(const std::string& variable) const {
    const auto span = programs_->arena().variable(variable).span<float>();
    return {span.begin(), span.end()};
  }
  std::vector<float> all_parameters() const {
    std::vector<float> all;
    for (const ParameterSpec& parameter : model_.parameters()) {
      const auto one = values(parameter.name);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  const Model& model() const { return model_; }
  const ThreadPool& pool() const { return pool_; }
  TrainingPrograms& programs() { return *programs_; }
  const UpdateResult& last_update() const { return last_update_; }

 private:
  Model model_;
  ThreadPool pool_;
  std::unique_ptr<TrainingPrograms> programs_;
  UpdateResult last_update_;
  int64_t steps_ = 0;
};

}  // namespace ingot::integration
