// Dynamic loss scaling through the whole training step and the trainer, in fp32, where a power of two as the scale
// changes no bit: what a scaled run does can be compared with one that is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "command_line.h"
#include "data/sequences.h"
#include "train/trainer.h"
#include "training_testing.h"

namespace ingot::integration {
namespace {

constexpr int64_t kStepRows = 2, kStepTokens = 33, kStepVocab = 101;
constexpr const char* kOptimizerNames[] = {"adamw", "lion", "adafactor", "muon", "adamw_8bit"};

// ---- the programs

ProgramSettings clipping_settings(OptimizerType type) {
  ProgramSettings settings;
  settings.rows = 1;
  settings.tokens = kStepTokens;
  settings.optimizer = default_optimizer(type);
  settings.groups = {{.match = "*mlp*", .max_grad_norm = 0.05}};  // a norm of its own, which is clipped
  return settings;
}

// One step of two micro-batches at a loss scale; the loss without the scale.
double scaled_step(Training& training, const Batch& batch, int64_t t, double scale) {
  const auto factor = static_cast<float>(scale / static_cast<double>(batch.counted));
  double loss = 0;
  for (int64_t row = 0; row < kStepRows; ++row) {
    const RandomState random{11, static_cast<uint64_t>(t), row, 1};
    loss += value_of(training.programs().micro_step(part_of(batch, row, 1), factor, row > 0, random)) / scale;
  }
  return loss;
}

std::vector<std::byte> trained_bytes(Training& training) {
  std::vector<std::byte> all;
  const auto add = [&](const TensorView& view) { all.insert(all.end(), view.data, view.data + view.bytes()); };
  const Arena& arena = training.programs().arena();
  for (const ParameterSpec& parameter : training.model().parameters()) add(arena.variable(parameter.name));
  for (const OptimizerState& state : training.programs().optimizer_state()) add(arena.variable(state.variable()));
  return all;
}

class ScaledPrograms : public testing::TestWithParam<OptimizerType> {};

TEST_P(ScaledPrograms, TrainToTheBitsOfPlainOnes) {
  Training plain(small_model("llama", 0.1), clipping_settings(GetParam()));
  Training scaled(small_model("llama", 0.1), clipping_settings(GetParam()));
  for (int64_t t = 1; t <= 3; ++t) {
    const Batch batch = random_batch(kStepRows, kStepTokens, kStepVocab, static_cast<uint64_t>(t), 10);
    EXPECT_EQ(scaled_step(scaled, batch, t, 65536), scaled_step(plain, batch, t, 1));
    const UpdateResult a = value_of(plain.programs().update(1e-3, t));
    const UpdateResult b = value_of(scaled.programs().update(1e-3, t, nullptr, 65536));
    EXPECT_EQ(b.grad_norm, a.grad_norm);
    EXPECT_GT(a.grad_norm, 0.1);
    EXPECT_FALSE(b.skipped);
    ASSERT_EQ(trained_bytes(scaled), trained_bytes(plain)) << "step " << t;
    EXPECT_EQ(value_of(scaled.programs().evaluate(batch, 1)), value_of(plain.programs().evaluate(batch, 1)));
  }
}

// A scale that is no power of two rounds, and no more than that.
TEST_P(ScaledPrograms, TakeAnyScaleBackUpToRounding) {
  Training plain(small_model("gpt2", 0), clipping_settings(GetParam()));
  Training scaled(small_model("gpt2", 0), clipping_settings(GetParam()));
  const Batch batch = random_batch(kStepRows, kStepTokens, kStepVocab, 1);
  const double loss = scaled_step(plain, batch, 1, 1);
  EXPECT_NEAR(scaled_step(scaled, batch, 1, 30000.7), loss, 1e-5);
  const double norm = value_of(plain.programs().update(1e-3, 1)).grad_norm;
  EXPECT_NEAR(value_of(scaled.programs().update(1e-3, 1, nullptr, 30000.7)).grad_norm, norm, 1e-5 * norm);
}

TEST_P(ScaledPrograms, AnOverflowChangesNothingAndTheNextStepIsAsWithoutIt) {
  Training run(small_model("gpt2", 0.1), clipping_settings(GetParam()));
  Training without(small_model("gpt2", 0.1), clipping_settings(GetParam()));
  const Batch batch = random_batch(kStepRows, kStepTokens, kStepVocab, 1, 10);
  const double loss = scaled_step(without, batch, 1, 1);
  const std::vector<std::byte> before = trained_bytes(run);
  EXPECT_NEAR(scaled_step(run, batch, 1, 1e36), loss, 1e-5);  // the loss itself stays finite
  EXPECT_TRUE(value_of(run.programs().update(1e-3, 1, nullptr, 1e36)).skipped);
  EXPECT_EQ(trained_bytes(run), before);

  EXPECT_EQ(scaled_step(run, batch, 1, 32768), loss);
  EXPECT_FALSE(value_of(run.programs().update(1e-3, 1, nullptr, 32768)).skipped);
  EXPECT_FALSE(value_of(without.programs().update(1e-3, 1)).skipped);
  EXPECT_EQ(trained_bytes(run), trained_bytes(without));
}

INSTANTIATE_TEST_SUITE_P(All, ScaledPrograms,
                         testing::Values(OptimizerType::adamw, OptimizerType::lion, OptimizerType::adafactor,
                                         OptimizerType::muon, OptimizerType::adamw_8bit),
                         [](const auto& one) { return kOptimizerNames[static_cast<size_t>(one.param)]; });

// ---- the trainer

class RandomTokens final : public SequenceSource {
 public:
  explicit RandomTokens(bool counts) : counts_(counts) {}
  int64_t count() const override { return 1000; }
  int64_t length(int64_t) const override { return kStepTokens; }
  Status fill(int64_t index, const RowView& row) const override {
    for (size_t t = 0; t < row.ids.size(); ++t)
      row.ids[t] = static_cast<int32_t>(bounded_at(
          stream_key(5, "tokens"), static_cast<uint64_t>(index * kStepTokens) + t, static_cast<uint64_t>(kStepVocab)));
    fill_as_one_document(row);
    if (!counts_) std::ranges::fill(row.targets, kIgnored);
    return {};
  }
  uint64_t fingerprint() const override { return 1; }

 private:
  bool counts_;
};

// Runs in directories of their own, whose gradients overflow in chosen steps.
class ScaledRuns : public testing::Test {
 protected:
  struct Options {
    std::vector<std::string> settings = {};  // overrides
    bool scales = true, counts = true;
    std::vector<int64_t> overflows = {};  // steps
    double growth = 0x1p70;               // of the gradients in these steps
  };

  Result<TrainingResult> run(const std::string& name, const Options& options) {
    RunConfig config = value_of(parse_config(
        "model: {config: {model_type: gpt2, vocab_size: 101, n_positions: 64, n_embd: 24, n_layer: 2, n_head: 3}}\n"
        "data: {sequence_length: 33}\ntraining: {steps: 20, global_batch_size: 4, micro_batch_size: 2}\n"
        "logging: {every_steps: 1, tensorboard: false}\nthreads: 1\n",
        "test", overrides(name, options.settings)));
    TrainerHooks hooks;
    hooks.sources = {{std::make_shared<RandomTokens>(options.counts), std::nullopt}};
    hooks.scale_loss = options.scales;
    // What comes before the last norm gets gradients as many times larger as its weight is; the loss stays finite.
    hooks.on_step_end.push_back([&](const StepView& view) -> Status {
      const auto is_one = [&](int64_t step) { return std::ranges::count(options.overflows, step) > 0; };
      double factor = is_one(view.step + 1) ? options.growth : 1;
      if (is_one(view.step)) factor /= options.growth;
      for (float& weight : view.programs.arena().variable("transformer.ln_f.weight").span<float>())
        weight *= static_cast<float>(factor);
      return {};
    });
    return train(config, hooks);
  }

  // The cells of a column of metrics.csv, of steps 1, 2, …
  std::vector<std::string> column(const std::string& name, const std::string& title) const {
    std::vector<std::string> cells;
    const std::string text = value_of(read_file(scratch_ / (name + "/metrics.csv")));
    std::istringstream lines(text);
    std::string line;
    size_t at = 0;
    while (std::getline(lines, line)) {
      std::vector<std::string> row;
      std::istringstream parts(line);
      for (std::string cell; std::getline(parts, cell, ',');) row.push_back(cell);
      if (cells.empty()) at = static_cast<size_t>(std::ranges::find(row, title) - row.begin());
      cells.push_back(row.at(at));
    }
    cells.erase(cells.begin());
    return cells;
  }
  std::vector<double> numbers(const std::string& name, const std::string& title) const {
    std::vector<double> values;
    for (const std::string& cell : column(name, title)) values.push_back(std::stod(cell));
    return values;
  }
  std::string content(const std::string& file) const { return value_of(read_file(scratch_ / file)); }
  void expect_same_course(const std::string& found, const std::string& expected) const {
    for (const char* title : {"step", "tokens", "loss", "learning_rate", "grad_norm", "skipped"})
      EXPECT_EQ(column(found, title), column(expected, title)) << title;
    EXPECT_EQ(content(found + "/model/model.safetensors"), content(expected + "/model/model.safetensors"));
  }

  const ScratchDirectory scratch_;

 private:
  std::vector<std::string> overrides(const std::string& name, std::vector<std::string> more) const {
    more.push_back("output_dir=" + (scratch_ / name));
    return more;
  }
};

TEST_F(ScaledRuns, HaveTheBitsOfPlainOnesAndGrowTheirScale) {
  ASSERT_TRUE(run("plain", {.scales = false}).ok());
  ASSERT_TRUE(run("scaled", {.settings = {"training.loss_scale.growth_interval=8"}}).ok());
  expect_same_course("scaled", "plain");
  std::vector<double> scales(20, 65536);
  std::fill(scales.begin() + 8, scales.end(), 131072);
  std::fill(scales.begin() + 16, scales.end(), 262144);
  EXPECT_EQ(numbers("scaled", "loss_scale"), scales);
  EXPECT_EQ(numbers("plain", "loss_scale"), std::vector<double>(20, 1));
  EXPECT_EQ(numbers("scaled", "skipped"), std::vector<double>(20, 0));
}

// With monitor.on_nan at its default, stop. The run beside it skips the same step for want of a finite norm.
TEST_F(ScaledRuns, AnOverflowSkipsExactlyOneStepAndHalvesTheScale) {
  ASSERT_TRUE(run("plain", {.settings = {"monitor.on_nan=skip"}, .scales = false, .overflows = {7}}).ok());
  const auto result = run("scaled", {.overflows = {7}});
  ASSERT_TRUE(result.ok()) << result.error().message;
  expect_same_course("scaled", "plain");
  std::vector<double> scales(20, 65536), skipped(20, 0);
  std::fill(scales.begin() + 7, scales.end(), 32768);
  std::fill(skipped.begin() + 6, skipped.end(), 1);
  EXPECT_EQ(numbers("scaled", "loss_scale"), scales);
  EXPECT_EQ(numbers("scaled", "skipped"), skipped);
  EXPECT_FALSE(std::isfinite(numbers("scaled", "grad_norm")[6]));
  EXPECT_TRUE(std::isfinite(numbers("scaled", "loss")[6]));
  EXPECT_EQ(result.value().state.updates, 19);
  EXPECT_NE(content("scaled/log.txt").find("step 7: the gradients overflow at loss scale 65536"), std::string::npos);
}

// More overflows in a row than a run may skip for other reasons.
TEST_F(ScaledRuns, FindTheirScaleHoweverManyStepsThatTakes) {
  const std::vector<int64_t> steep{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  const auto result = run("run", {.settings = {"training.loss_scale.initial=1.8446744073709551616e19",
                                               "monitor.max_consecutive_skips=1", "optimizer.learning_rate=1e-12"},
                                  .overflows = steep,
                                  .growth = 0x1p10});
  ASSERT_TRUE(result.ok()) << result.error().message;
  const std::vector<double> scales = numbers("run", "loss_scale"), skipped = numbers("run", "skipped");
  EXPECT_EQ(scales[0], 0x1p64);
  EXPECT_GT(skipped[19], 3);
  EXPECT_LT(skipped[19], 19);
  for (size_t i = 1; i < 20; ++i)
    EXPECT_EQ(scales[i], std::ldexp(1.0, 64 - static_cast<int>(skipped[i - 1]))) << "step " << i + 1;
  EXPECT_EQ(skipped[19], skipped[18]);
}

TEST_F(ScaledRuns, AScaleStuckAtItsMinimumStopsTheRunWithADiagnosis) {
  std::vector<int64_t> all;
  for (int64_t step = 2; step <= 20; ++step) all.push_back(step);
  const auto result = run("run", {.settings = {"training.loss_scale={initial: 4, minimum: 1}",
                                               "monitor.max_consecutive_skips=3", "checkpoint.every_steps=5"},
                                  .overflows = all});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::failed);
  // Steps 2 and 3 lower the scale from 4 to 1; steps 4 to 6 are skipped at the minimum.
  for (const char* part : {"step 7", "loss scale 1, its minimum", "3 skipped steps in a row", "transformer.wte.weight",
                           "more (of", "precision=bf16", "learning_rate", "max_grad_norm", "fp32_ops"})
    EXPECT_NE(result.error().message.find(part), std::string::npos) << part << ": " << result.error().message;
  EXPECT_EQ(numbers("run", "loss_scale"), (std::vector<double>{4, 4, 2, 1, 1, 1}));
  EXPECT_EQ(numbers("run", "skipped"), (std::vector<double>{0, 1, 2, 3, 4, 5}));
}

TEST_F(ScaledRuns, ResumeToTheBitsOfAnUninterruptedRun) {
  const Options options{.settings = {"training.loss_scale.growth_interval=4", "checkpoint.every_steps=10"},
                        .overflows = {3, 8, 9, 15}};
  const auto whole = run("whole", options);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  Options again = options;
  again.settings.push_back("checkpoint.resume=" + (scratch_ / "whole/checkpoints/step-00000010"));
  const auto resumed = run("resumed", again);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message;
  EXPECT_EQ(resumed.value().state, whole.value().state);
  for (const char* title : {"step", "tokens", "loss", "learning_rate", "grad_norm", "loss_scale", "skipped"}) {
    std::vector<std::string> expected = column("whole", title);
    expected.erase(expected.begin(), expected.begin() + 10);
    EXPECT_EQ(column("resumed", title), expected) << title;
  }
  EXPECT_EQ(content("resumed/model/model.safetensors"), content("whole/model/model.safetensors"));
  // Overflows halve after steps 3, 8, 9 and 15; four clean steps in a row double, after 7, 13 and 19.
  EXPECT_EQ(numbers("whole", "loss_scale"),
            (std::vector<double>{65536, 65536, 65536, 32768, 32768, 32768, 32768, 65536, 32768, 16384,
                                 16384, 16384, 16384, 32768, 32768, 16384, 16384, 16384, 16384, 32768}));
  const auto state = nlohmann::json::parse(content("whole/checkpoints/step-00000010/state.json"));
  EXPECT_EQ(state["loss_scale"], 16384.0);
  EXPECT_EQ(state["clean_steps"], 1);
  EXPECT_EQ(state["skipped"], 3);
}

// Not forced: in fp16 the first steps of too large a scale overflow by themselves.
TEST_F(ScaledRuns, TrainAndResumeInBf16AndFp16) {
  for (const std::string precision : {"bf16", "fp16"}) {
    Options options{.settings = {"training.precision=" + precision, "checkpoint.every_steps=10"}, .scales = false};
    if (precision == "fp16")
      options.settings.push_back("training.loss_scale={initial: 1073741824, growth_interval: 5}");
    const auto whole = run(precision, options);
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    options.settings.push_back("checkpoint.resume=" + (scratch_ / (precision + "/checkpoints/step-00000010")));
    ASSERT_TRUE(run(precision + "-resumed", options).ok());
    for (const char* title : {"step", "loss", "grad_norm", "loss_scale", "skipped"}) {
      std::vector<std::string> expected = column(precision, title);
      expected.erase(expected.begin(), expected.begin() + 10);
      EXPECT_EQ(column(precision + "-resumed", title), expected) << precision << " " << title;
    }
    EXPECT_EQ(content(precision + "-resumed/model/model.safetensors"), content(precision + "/model/model.safetensors"));
    const std::vector<double> scales = numbers(precision, "loss_scale"), skipped = numbers(precision, "skipped");
    if (precision == "bf16") {
      EXPECT_EQ(scales, std::vector<double>(20, 1));
      continue;
    }
    EXPECT_GT(skipped.back(), 0);
    EXPECT_LT(skipped.back(), 18);
    EXPECT_LT(*std::ranges::min_element(scales), 0x1p30);
    EXPECT_GT(std::ranges::count_if(scales, [&](double scale) { return scale > *std::ranges::min_element(scales); }),
              0);
  }
}

// Too short to find its scale: its weights are what they were, and it says so.
TEST_F(ScaledRuns, FailWhereEveryStepWasSkipped) {
  const auto result = run("run", {.settings = {"training.precision=fp16", "training.steps=5",
                                               "training.loss_scale.initial=1.8446744073709551616e19"},
                                  .scales = false});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::failed);
  for (const char* part : {"all 5 steps were skipped", "no model is written", "loss_scale.initial"})
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  EXPECT_FALSE(fs::exists(scratch_ / "run/model"));
}

TEST_F(ScaledRuns, DoNotGrowTheirScaleByStepsInWhichNothingCounts) {
  const auto result = run("run", {.settings = {"training.loss_scale.growth_interval=2"}, .counts = false});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(numbers("run", "loss_scale"), std::vector<double>(20, 65536));
  EXPECT_EQ(numbers("run", "loss"), std::vector<double>(20, 0));
  EXPECT_EQ(numbers("run", "skipped"), std::vector<double>(20, 0));
}

TEST_F(ScaledRuns, StartAtTheInitialScaleWhereTheRunBeforeHadNone) {
  ASSERT_TRUE(run("run", {.settings = {"training.steps=3", "schedule.type=constant"}, .scales = false}).ok());
  ASSERT_TRUE(run("run", {.settings = {"training.steps=5", "schedule.type=constant"}}).ok());
  ASSERT_TRUE(run("run", {.settings = {"training.steps=6", "schedule.type=constant"}, .scales = false}).ok());
  EXPECT_EQ(numbers("run", "loss_scale"), (std::vector<double>{1, 1, 1, 65536, 65536, 1}));
}

}  // namespace
}  // namespace ingot::integration
