#include <gtest/gtest.h>

#include "plan/advice.h"
#include "plan/run_plan.h"

namespace ingot {
namespace {

// A choice that nothing is wrong with: GPT-3's smallest model at its batch.
TrainingChoices usual() {
  TrainingChoices choices;
  choices.parameters = 125'000'000;
  choices.learning_rate = 6e-4;
  choices.tokens_per_step = 500'000;
  choices.warmup_steps = 20;
  choices.total_steps = 1000;
  return choices;
}

bool mentions(const std::vector<std::string>& notes, std::string_view word) {
  for (const std::string& note : notes)
    if (note.find(word) != std::string::npos) return true;
  return false;
}

TEST(Advice, SaysNothingOfUsualChoices) {
  EXPECT_TRUE(advice(usual()).empty());
  TrainingChoices small = usual();  // as the quick start has it
  small.parameters = 10'000'000;
  small.learning_rate = 2e-3;
  small.tokens_per_step = 2048;
  EXPECT_TRUE(advice(small).empty()) << advice(small).front();
}

TEST(Advice, FollowsThePublishedRates) {
  EXPECT_NEAR(usual_learning_rate(125'000'000), 6e-4, 1e-9);
  EXPECT_NEAR(usual_learning_rate(1'300'000'000), 2.0e-4, 0.5e-4);
  EXPECT_NEAR(usual_learning_rate(13'000'000'000), 1.0e-4, 0.2e-4);
  EXPECT_LE(usual_learning_rate(1), 3e-3);
  EXPECT_NEAR(usual_tokens_per_step(13'000'000'000), 2e6, 0.2e6);
}

TEST(Advice, WarnsOfARateThatIsHighForTheSizeOrTheBatch) {
  TrainingChoices c = usual();
  c.learning_rate = 5e-3;
  EXPECT_TRUE(mentions(advice(c), "may diverge"));
  c = usual();
  c.learning_rate = 1e-3;
  EXPECT_TRUE(advice(c).empty());
  c.tokens_per_step = 8192;
  EXPECT_TRUE(mentions(advice(c), "8192 tokens a step"));
  c = usual();
  c.parameters = 7'000'000'000;
  c.learning_rate = 1e-3;
  EXPECT_TRUE(mentions(advice(c), "may diverge"));
}

TEST(Advice, WarnsOfARateThatIsTooLowOnlyWithRandomWeights) {
  TrainingChoices c = usual();
  c.learning_rate = 5e-6;
  EXPECT_TRUE(mentions(advice(c), "far below"));
  c.pretrained = true;
  EXPECT_TRUE(advice(c).empty());
  c.learning_rate = 1e-3;
  EXPECT_TRUE(mentions(advice(c), "pre-trained"));
}

TEST(Advice, WarnsOfAWarmUpOutsideOneToThreePercent) {
  TrainingChoices c = usual();
  for (int64_t warmup : {10, 30}) {
    c.warmup_steps = warmup;
    EXPECT_TRUE(advice(c).empty());
  }
  for (int64_t warmup : {0, 9, 31, 1000}) {
    c.warmup_steps = warmup;
    EXPECT_TRUE(mentions(advice(c), "warm-up")) << warmup;
  }
  c.total_steps.reset();
  EXPECT_TRUE(advice(c).empty());
}

TEST(Advice, WarnsOfABatchFarFromTheUsual) {
  TrainingChoices c = usual();
  c.learning_rate = 3e-4;
  c.tokens_per_step = 1024;
  EXPECT_TRUE(mentions(advice(c), "far below what models"));
  c.tokens_per_step = 8'000'000;
  EXPECT_TRUE(mentions(advice(c), "far above what models"));
}

TEST(RunPlan, ComponentsSumToTheModelsParameters) {
  const auto model = Model::preset("gpt2-nano");
  ASSERT_TRUE(model.ok());
  int64_t total = 0;
  for (const auto& [name, count] : parameters_by_component(*model)) total += count;
  EXPECT_EQ(total, model->parameter_count());
}

TEST(RunPlan, TheDescriptionSaysWhatDoesNotFitAndWhatWouldHelp) {
  RunPlan plan;
  plan.model = "gpt2, 2 layers of width 8";
  plan.parameters = plan.trained_parameters = 100;
  plan.components = {{"embedding", 60}, {"head", 40}};
  plan.sequence_length = 16;
  plan.micro_batch = 2;
  plan.accumulation = 4;
  plan.memory.weights = 400;
  plan.machine = {100, 90, 10};
  plan.model_flops = 1e9;
  plan.step_seconds = 0.1;
  EXPECT_EQ(plan.tokens_per_step(), 128);
  EXPECT_DOUBLE_EQ(plan.mfu(), 0.1);
  EXPECT_NE(describe(plan).find("fits          yes"), std::string::npos);
  plan.problems = {"too large"};
  plan.remedies = {"a smaller one"};
  const std::string text = describe(plan);
  EXPECT_EQ(text.find("fits          yes"), std::string::npos);
  EXPECT_NE(text.find("does not fit  too large"), std::string::npos);
  EXPECT_NE(text.find("would help    a smaller one"), std::string::npos);
  EXPECT_NE(text.find("1 rank × 2 sequences × 4 accumulated = 8 sequences of 16, 128 tokens a step"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace ingot
