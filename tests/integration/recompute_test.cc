// Recomputation in whole training programs: the same bits in less memory, and budgets that are kept.
#include "train/recompute_choice.h"

#include <gtest/gtest.h>

#include "training_testing.h"

namespace ingot::integration {
namespace {

constexpr int64_t kRows = 2, kTokens = 33, kVocab = 101;

RecomputeSection policy(RecomputePolicy which, std::optional<std::vector<int64_t>> layers = {}) {
  return {which, std::move(layers), {}};
}
RecomputeSection budget(int64_t bytes) {
  return {RecomputePolicy::budget, {}, bytes};
}

ProgramSettings settings_of(RecomputeSection recompute, int64_t rows = kRows, int64_t tokens = kTokens) {
  ProgramSettings settings;
  settings.rows = rows;
  settings.tokens = tokens;
  settings.recompute = std::move(recompute);
  return settings;
}

class Recompute : public ::testing::TestWithParam<std::string> {};

// Two steps of two micro-batches each, dropout everywhere: losses, norms and weights to the last bit.
TEST_P(Recompute, TrainsToTheSameBits) {
  const auto trained = [&](RecomputeSection recompute) {
    Training training(small_model(GetParam(), 0.1), settings_of(std::move(recompute)), 2);
    std::vector<float> results;
    for (uint64_t i = 0; i < 2; ++i) {
      results.push_back(static_cast<float>(training.step(random_batch(2 * kRows, kTokens, kVocab, i, 10), kRows)));
      results.push_back(static_cast<float>(training.last_update().grad_norm));
    }
    const std::vector<float> parameters = training.all_parameters();
    results.insert(results.end(), parameters.begin(), parameters.end());
    return results;
  };
  const std::vector<float> kept = trained({});
  EXPECT_EQ(trained(policy(RecomputePolicy::selective)), kept);
  EXPECT_EQ(trained(policy(RecomputePolicy::full)), kept);
  EXPECT_EQ(trained(policy(RecomputePolicy::full, {{1}})), kept);
}

MemoryEstimate planned(const Model& model, RecomputeSection recompute) {
  const ThreadPool pool(2);
  return value_of(TrainingPrograms::plan(model, settings_of(std::move(recompute), 2, 256), pool))->memory();
}

TEST_P(Recompute, KeepsLessTheMoreIsRecomputed) {
  const Model model = small_model(GetParam(), 0.1);
  const MemoryEstimate none = planned(model, {}), selective = planned(model, policy(RecomputePolicy::selective)),
                       full = planned(model, policy(RecomputePolicy::full));
  EXPECT_LT(selective.kept, none.kept);
  EXPECT_LT(full.kept, selective.kept);
  EXPECT_LT(selective.activations, none.activations);
  EXPECT_LE(full.activations, selective.activations);
  // What comes into each of the two blocks and into the last norm with what it remembers, ids, positions, spans,
  // targets, rotary angles: nothing of the inside of a block.
  const int64_t state = 2 * 256 * model.config().hidden_size * 4;
  EXPECT_LT(full.kept, 4 * state + state / 2);
}

TEST_P(Recompute, BudgetIsKeptByTheLeastRecomputationThatDoes) {
  const Model model = small_model(GetParam(), 0.1);
  const ThreadPool pool(2);
  const auto chosen = [&](int64_t bytes) {
    auto programs = value_of(TrainingPrograms::plan(model, settings_of(budget(bytes), 2, 256), pool));
    EXPECT_LE(programs->memory().total(), bytes);
    return describe_levels(programs->passes().recompute);
  };
  const int64_t none = planned(model, {}).total(),
                selective = planned(model, policy(RecomputePolicy::selective)).total(),
                full = planned(model, policy(RecomputePolicy::full)).total();
  EXPECT_EQ(chosen(none), "nothing");
  EXPECT_EQ(chosen(none + 1), "nothing");
  EXPECT_NE(chosen(none - 1), "nothing");
  EXPECT_EQ(chosen(selective).find("full"), std::string::npos);  // as fast as the fixed policy that fits
  chosen(full);
  const auto impossible = TrainingPrograms::plan(model, settings_of(budget(full / 2), 2, 256), pool);
  ASSERT_FALSE(impossible.ok());
  EXPECT_EQ(impossible.error().kind, ErrorKind::usage);
  EXPECT_NE(impossible.error().message.find("recompute.memory_budget"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, Recompute, ::testing::Values("gpt2", "llama"),
                         [](const auto& one) { return one.param; });

TEST(RecomputedLayers, RefusesALayerThatTheModelDoesNotHave) {
  const ThreadPool pool(1);
  const Model model = small_model("gpt2", 0);
  const auto made = TrainingPrograms::plan(model, settings_of(policy(RecomputePolicy::full, {{0, 2}})), pool);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::usage);
  EXPECT_EQ(made.error().message, "recompute.layers names layer 2, the model has 2 (0 to 1)");
}

TEST(BudgetLevels, RecomputeOneLayerMoreWithEachStep) {
  const auto levels = [](int64_t step) { return describe_levels(budget_levels(step, {0, 1, 3}, 5)); };
  EXPECT_EQ(levels(0), "nothing");
  EXPECT_EQ(levels(1), "selective in layer 0");
  EXPECT_EQ(levels(2), "selective in layers 0-1");
  EXPECT_EQ(levels(3), "selective in layers 0-1, selective in layer 3");
  EXPECT_EQ(levels(4), "full in layer 0, selective in layer 1, selective in layer 3");
  EXPECT_EQ(levels(6), "full in layers 0-1, full in layer 3");
}

TEST(LeastStepWithin, FindsItByBisection) {
  for (int64_t wanted = 0; wanted <= 12; ++wanted) {
    int asked = 0;
    const auto needed = [&](int64_t step) -> Result<int64_t> {
      ++asked;
      return 100 - step;
    };
    EXPECT_EQ(value_of(least_step_within(100 - wanted, 6, needed)), wanted);
    EXPECT_LE(asked, 6);
  }
}

// Memory that does not fall from step to step: whatever fits is taken, and no later step than a fixed policy that fits.
TEST(LeastStepWithin, TakesAFixedPolicyThatFitsWhateverLiesBetween) {
  const std::vector<int64_t> bytes{100, 105, 90, 60, 120, 70, 50};
  const auto needed = [&](int64_t step) -> Result<int64_t> { return bytes[static_cast<size_t>(step)]; };
  EXPECT_EQ(value_of(least_step_within(100, 3, needed)), 0);
  EXPECT_EQ(value_of(least_step_within(65, 3, needed)), 3);
  EXPECT_EQ(value_of(least_step_within(55, 3, needed)), 6);
}

}  // namespace
}  // namespace ingot::integration
