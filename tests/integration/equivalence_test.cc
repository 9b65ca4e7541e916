// The same training however it is compiled and cut: op by op or fused, with any pass switched off, in one batch or in
// micro-batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "passes/pipeline.h"
#include "training_testing.h"

namespace ingot::integration {
namespace {

constexpr int64_t kRows = 2, kTokens = 33, kVocab = 101;

ProgramSettings settings_of(int64_t rows = kRows, int64_t tokens = kTokens) {
  ProgramSettings settings;
  settings.rows = rows;
  settings.tokens = tokens;
  return settings;
}

// The losses of `steps` steps, each on a batch of its own.
std::vector<double> losses_of(const std::string& family, double p, const ProgramSettings& settings, int steps) {
  Training training(small_model(family, p), settings);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(training.step(random_batch(kRows, kTokens, kVocab, static_cast<uint64_t>(i % 4), 10), kRows));
  return losses;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << what << ", step " << i + 1;
}

// The largest difference of two sets of numbers; NaN counts as infinite.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double delta = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = std::isnan(delta) ? std::numeric_limits<double>::infinity() : std::max(largest, delta);
  }
  return largest;
}

using FamilyAndDropout = std::tuple<std::string, double>;

class Equivalence : public ::testing::TestWithParam<FamilyAndDropout> {
 protected:
  std::string family() const { return std::get<0>(GetParam()); }
  double dropout() const { return std::get<1>(GetParam()); }
};

TEST_P(Equivalence, TrainsTheSameOpByOpAsFused) {
  ProgramSettings eager = settings_of();
  eager.fuse = false;
  const std::vector<double> fused = losses_of(family(), dropout(), settings_of(), 20);
  expect_near(losses_of(family(), dropout(), eager, 20), fused, 1e-5, "eager");
  EXPECT_LT(fused.back(), fused.front() - 0.05);  // it learns
}

TEST_P(Equivalence, TrainsTheSameWithAnyPassSwitchedOff) {
  const std::vector<double> all = losses_of(family(), dropout(), settings_of(), 20);
  for (const auto passes : {forward_passes(), backward_passes()})
    for (const Pass& pass : passes) {
      ProgramSettings without = settings_of();
      without.disabled_passes = {std::string(pass.name)};
      expect_near(losses_of(family(), dropout(), without, 20), all, 1e-5, std::string(pass.name));
    }
}

// What takes part in the gradients is the sum over all micro-batches, whatever their sizes and however many of their
// targets count; random numbers belong to the sequence, not to the micro-batch.
TEST_P(Equivalence, AccumulatesMicroBatchesIntoTheWholeBatch) {
  Batch batch = random_batch(8, kTokens, kVocab, 5, 30);
  // Rows that count little, and one that does not count at all.
  for (size_t i = 0; i < 2 * kTokens; ++i)
    if (i % 7 != 0) batch.counted -= std::exchange(batch.targets[i], kIgnored) != kIgnored ? 1 : 0;
  for (size_t i = 5 * kTokens; i < 6 * kTokens; ++i)
    batch.counted -= std::exchange(batch.targets[i], kIgnored) != kIgnored ? 1 : 0;

  for (const int64_t micro_batch : {1, 2, 4}) {
    Training cut(small_model(family(), dropout()), settings_of(micro_batch));
    Training reference(small_model(family(), dropout()), settings_of(8));
    for (int step = 0; step < 3; ++step) {
      const double expected = reference.step(batch, 8), found = cut.step(batch, micro_batch);
      EXPECT_NEAR(found, expected, 1e-6 * expected) << micro_batch << " rows, step " << step;
      EXPECT_NEAR(cut.last_update().grad_norm, reference.last_update().grad_norm, 1e-5);
    }
    EXPECT_LT(distance(cut.all_parameters(), reference.all_parameters()), 2e-5) << micro_batch << " rows";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Equivalence,
                         ::testing::Combine(::testing::Values("gpt2", "llama"), ::testing::Values(0.0, 0.1)),
                         [](const auto& one) {
                           return std::get<0>(one.param) + (std::get<1>(one.param) > 0 ? "_dropout" : "");
                         });

TEST(Dropout, DrawsNewNumbersEachStepAndNoneWhereItIsOff) {
  const Batch batch = random_batch(kRows, kTokens, kVocab, 1);
  Training training(small_model("gpt2", 0.3), settings_of());
  const double first = training.step(batch, kRows, 0), second = training.step(batch, kRows, 0);
  EXPECT_NE(first, second);
  ProgramSettings off = settings_of();
  off.dropout = false;
  Training without(small_model("gpt2", 0.3), off);
  EXPECT_EQ(without.step(batch, kRows, 0), without.step(batch, kRows, 0));
}

TEST(Accumulation, TwoHalvesWithDifferentCountsAreOneBatchOfTwiceTheSize) {
  for (const std::string family : {"gpt2", "llama"}) {
    Batch batch = random_batch(2, kTokens, kVocab, 9);
    for (size_t i = 0; i + 4 < kTokens; ++i)
      batch.counted -= std::exchange(batch.targets[i], kIgnored) != kIgnored ? 1 : 0;
    Training whole(small_model(family, 0.1), settings_of(2)), halves(small_model(family, 0.1), settings_of(1));
    for (int step = 0; step < 3; ++step) EXPECT_NEAR(halves.step(batch, 1), whole.step(batch, 2), 5e-6);
    EXPECT_LT(distance(halves.all_parameters(), whole.all_parameters()), 2e-5);
  }
}

TEST(Accumulation, StepThatCountsNothingHasNoLossAndNoGradients) {
  for (const std::string family : {"gpt2", "llama"})
    for (const bool fuse : {true, false}) {
      Batch batch = random_batch(2, kTokens, kVocab, 9, 100);
      ASSERT_EQ(batch.counted, 0);
      ProgramSettings settings = settings_of(1);
      settings.fuse = fuse;
      settings.weight_decay = 0;
      Training training(small_model(family, 0.1), settings);
      const std::vector<float> before = training.all_parameters();
      EXPECT_EQ(training.step(batch, 1), 0.0);
      EXPECT_EQ(training.last_update().grad_norm, 0.0);
      EXPECT_FALSE(training.last_update().skipped);
      for (const TrainedParameter& parameter : training.programs().trained())
        for (float x : training.values(gradient_name(parameter.name))) ASSERT_EQ(x, 0.0f) << parameter.name;
      EXPECT_EQ(training.all_parameters(), before);
      EXPECT_TRUE(std::isfinite(training.step(random_batch(2, kTokens, kVocab, 2), 1)));
    }
}

TEST(Freeze, FrozenParametersKeepTheirBitsAndTheOthersMove) {
  for (const auto& [family, pattern, frozen, other] :
       {std::tuple{"gpt2", "*wte*", "transformer.wte.weight", "transformer.h.0.attn.c_attn.weight"},
        {"gpt2", "*.h.0.*", "transformer.h.0.mlp.c_fc.weight", "transformer.h.1.mlp.c_fc.weight"},
        {"llama", "*norm*", "model.layers.1.input_layernorm.weight", "model.layers.1.self_attn.q_proj.weight"},
        {"llama", "model.layers.*.mlp.*", "model.layers.0.mlp.up_proj.weight", "model.embed_tokens.weight"}}) {
    ProgramSettings settings = settings_of(1);
    settings.freeze = {pattern};
    Training training(small_model(family, 0.1), settings);
    const std::vector<float> frozen_before = training.values(frozen), other_before = training.values(other);
    for (int step = 0; step < 3; ++step) training.step(random_batch(2, kTokens, kVocab, 1), 1);
    EXPECT_EQ(training.values(frozen), frozen_before) << frozen;
    EXPECT_GT(distance(training.values(other), other_before), 1e-4) << other;
    EXPECT_EQ(training.programs().variables().find(gradient_name(frozen)), nullptr);
    EXPECT_EQ(training.programs().variables().find(std::string("adam_m.") + frozen), nullptr);
  }
}

// ---- what was fused

std::set<std::string> fused_patterns(const std::string& family) {
  Training training(small_model(family, 0.1), settings_of(1));
  training.step(random_batch(2, kTokens, kVocab, 1), 1);  // the accumulating program too
  std::set<std::string> patterns;
  for (const FusionNote& note : training.programs().passes().notes)
    if (note.applied) patterns.insert(note.pattern);
  return patterns;
}

TEST(Fusion, EveryPatternIsFoundInTheModelsThatHaveIt) {
  const std::set<std::string> both{"attention",  "attention_packed", "linear_cross_entropy",
                                   "matmul_add", "merge_loss",       "embedding_grad"};
  std::set<std::string> gpt2 = both, llama = both;
  gpt2.insert({"linear", "cluster", "residual_layer_norm", "layer_norm_grad"});
  llama.insert({"shared_input", "glu", "residual_rms_norm", "rms_norm_grad"});
  const auto missing = [](const std::set<std::string>& expected, const std::set<std::string>& found) {
    std::string out;
    for (const std::string& pattern : expected)
      if (!found.contains(pattern)) out += " " + pattern;
    return out;
  };
  EXPECT_EQ(missing(gpt2, fused_patterns("gpt2")), "");
  EXPECT_EQ(missing(llama, fused_patterns("llama")), "");
}

TEST(Fusion, CompiledTrainingHoldsNoScoresAndNoLogits) {
  for (const std::string family : {"gpt2", "llama"})
    for (const double p : {0.0, 0.1})
      for (const bool accumulate : {false, true}) {
        Training training(small_model(family, p), settings_of());
        const Program* program = value_of(training.programs().micro_step_program(kRows, kTokens, accumulate));
        const Graph& graph = program->graph();
        for (ValueId id = 0; id < graph.value_count(); ++id) {
          const Shape& shape = graph.shape(id);
          EXPECT_LT(std::ranges::count(shape, kTokens), 2) << family << ": " << graph.type(id).to_string();
          const bool has_vocabulary = std::ranges::count(shape, kVocab) > 0;
          const bool has_tokens = shape.elements() % (kRows * kTokens * kVocab) == 0;
          EXPECT_FALSE(has_vocabulary && has_tokens) << family << ": " << graph.type(id).to_string();
        }
      }
}

// Nor does a kernel's own memory, where both are much larger than a tile.
TEST(Fusion, CompiledTrainingNeedsNoMemoryOfTheirSize) {
  constexpr int64_t rows = 16, tokens = 512, vocabulary = 4999;
  for (const std::string family : {"gpt2", "llama"}) {
    const Model model = small_model(family, 0.1, vocabulary);
    const ThreadPool pool(2);
    auto programs = value_of(TrainingPrograms::plan(model, settings_of(rows, tokens), pool));
    const Program* program = value_of(programs->micro_step_program(rows, tokens, false));
    const int64_t scores = rows * model.config().num_attention_heads * tokens * tokens * 4;
    const int64_t logits = rows * tokens * vocabulary * 4;
    int64_t largest = program->scratch_bytes() * pool.threads();
    for (const Placement& place : program->plan().values)
      if (place.segment == Segment::workspace) largest = std::max(largest, place.bytes);
    for (const Placement& place : program->plan().temporaries) largest = std::max(largest, place.bytes);
    EXPECT_LT(largest, std::min(scores, logits) / 4) << family;
    EXPECT_LT(program->plan().workspace_bytes, logits) << family;
  }
}

}  // namespace
}  // namespace ingot::integration
