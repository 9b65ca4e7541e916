// Small models with random weights, and their logits without a cache. For tests.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "models/model.h"
#include "runtime/program.h"
#include "train/model_directory.h"

namespace ingot::testing {

inline constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 61, "n_embd": 24, "n_layer": 2, "n_head": 3,
    "n_positions": 320, "initializer_range": 0.3})";
inline constexpr const char* kLlama =
    R"({"model_type": "llama", "vocab_size": 61, "hidden_size": 32, "intermediate_size": 48,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 320,
    "initializer_range": 0.3})";
inline constexpr const char* kTiedLlama =
    R"({"model_type": "llama", "vocab_size": 61, "hidden_size": 72, "intermediate_size": 80, "tie_word_embeddings": true,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 320,
    "initializer_range": 0.3})";
inline constexpr const char* kMistral =
    R"({"model_type": "mistral", "vocab_size": 61, "hidden_size": 32, "intermediate_size": 40,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1, "sliding_window": 5,
    "max_position_embeddings": 320, "initializer_range": 0.3})";

inline constexpr const char* kGemma2 =
    R"({"model_type": "gemma2", "vocab_size": 61, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "query_pre_attn_scalar": 6, "sliding_window": 5,
    "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, "max_position_embeddings": 320,
    "initializer_range": 0.3})";

inline Model model_of(const char* json) {
  auto model = Model::from_json(json, "test");
  EXPECT_TRUE(model.ok()) << model.error().message;
  return std::move(*model);
}

// The logits [tokens][vocab] of one row, by the plain forward graph without any pass.
inline std::vector<std::vector<float>> plain_logits(const Model& model, const std::vector<int32_t>& ids,
                                                    const ThreadPool& pool) {
  const auto tokens = static_cast<int64_t>(ids.size());
  Graph graph;
  Builder builder(graph);
  builder.output("logits", model.build_logits(builder, model.build(builder, {1, tokens, false})));
  VariableLayout variables;
  add_variables_of(graph, variables);
  auto program = Program::create(graph, variables, pool.threads());
  EXPECT_TRUE(program.ok()) << program.error().message;
  auto arena = Arena::create(variables, pool);
  EXPECT_TRUE(arena.ok() && arena->reserve((*program)->plan().workspace_bytes, (*program)->scratch_bytes(), pool).ok());
  initialize_weights(model, 7, *arena, pool);
  std::vector<int32_t> positions, first_visible(ids.size(), 0);
  for (int32_t t = 0; t < tokens; ++t) positions.push_back(t);
  const auto input = [&](const char* name, const std::vector<int32_t>& values) {
    return ProgramInput{name, {reinterpret_cast<const std::byte*>(values.data()), DType::i32, {1, tokens}}};
  };
  const std::array<ProgramInput, 3> inputs{input("ids", ids), input("positions", positions),
                                           input("first_visible", first_visible)};
  EXPECT_TRUE((*program)->run(*arena, pool, inputs, {}).ok());
  const auto flat = (*program)->output(*arena, "logits").span<float>();
  std::vector<std::vector<float>> rows;
  const size_t width = flat.size() / ids.size();
  for (size_t t = 0; t < ids.size(); ++t)
    rows.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(t * width),
                      flat.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
  return rows;
}

inline std::vector<int32_t> some_ids(size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>((i * i * 7 + i * 13 + 5) % 61));
  return ids;
}

}  // namespace ingot::testing
