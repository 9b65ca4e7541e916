// Every optimizer through the whole program: it trains, its memory is the plan's, and a resumed run has the same bits.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command_line.h"
#include "training_testing.h"

namespace ingot::integration {
namespace {

struct Case {
  std::string type;
  double learning_rate;
};

class OptimizerRuns : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 3000; ++i) text += fmt::format("line {} says {}\n", i, (i * 7919) % 1000);
    ASSERT_TRUE(write_file_atomic(scratch_ / "text.txt", text).ok());
    ASSERT_TRUE(write_file_atomic(scratch_ / "config.yaml",
                                  fmt::format("model: {{preset: gpt2-nano, config: {{vocab_size: 384}}}}\n"
                                              "tokenizer: {{path: {}, train_vocab_size: 384}}\n"
                                              "data: {{train: [{{path: {}}}], sequence_length: 32}}\n"
                                              "training: {{steps: 20, global_batch_size: 4, micro_batch_size: 2}}\n"
                                              "optimizer: {{type: {}, learning_rate: {}}}\n"
                                              "checkpoint: {{every_steps: 10}}\n"
                                              "logging: {{every_steps: 1, tensorboard: false}}\n",
                                              scratch_ / "tokenizer.json", scratch_ / "text.txt", GetParam().type,
                                              GetParam().learning_rate))
                    .ok());
  }

  Outcome ingot(const char* verb, const std::string& output, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{verb, scratch_ / "config.yaml", "output_dir=" + (scratch_ / output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_ingot(arguments);
  }
  std::string content(const std::string& file) const { return value_of(read_file(scratch_ / file)); }

  const ScratchDirectory scratch_;
};

// The losses of metrics.csv.
std::vector<double> losses_of(const std::string& metrics) {
  std::vector<double> losses;
  for (size_t at = metrics.find('\n') + 1; at < metrics.size(); at = metrics.find('\n', at) + 1) {
    size_t column = at;
    for (int i = 0; i < 3; ++i) column = metrics.find(',', column) + 1;
    losses.push_back(std::stod(metrics.substr(column)));
  }
  return losses;
}

TEST_P(OptimizerRuns, LearnsAndResumesToTheSameBitsOnAnotherNumberOfThreads) {
  const Outcome whole = ingot("train", "whole", {"--threads", "2"});
  ASSERT_EQ(whole.status, 0) << whole.err;
  const std::vector<double> losses = losses_of(content("whole/metrics.csv"));
  ASSERT_EQ(losses.size(), 20u);
  EXPECT_LT(losses.back(), losses.front() - 0.5);

  const std::string middle = "checkpoint.resume=" + (scratch_ / "whole/checkpoints/step-00000010");
  const Outcome resumed = ingot("train", "resumed", {middle, "--threads", "1"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(content("resumed/model/model.safetensors"), content("whole/model/model.safetensors"));
  for (const auto& entry : fs::directory_iterator(scratch_ / "whole/checkpoints/step-00000020"))
    if (entry.path().extension() == ".safetensors") {
      const std::string name = entry.path().filename().string();
      EXPECT_EQ(content("resumed/checkpoints/step-00000020/" + name), value_of(read_file(entry.path()))) << name;
    }
}

TEST_P(OptimizerRuns, ThePlanKnowsItsMemory) {
  const Outcome outcome = ingot("plan", "planned", {"--json", "--threads", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto plan = nlohmann::json::parse(outcome.out);
  const auto weights = plan["memory"]["weights"].get<double>(), optimizer = plan["memory"]["optimizer"].get<double>();
  const std::map<std::string, std::pair<double, double>> expected{{"adamw", {2, 2}},
                                                                  {"lion", {1, 1}},
                                                                  {"adafactor", {0.001, 0.1}},
                                                                  {"muon", {1.05, 1.95}},
                                                                  {"adamw_8bit", {0.5, 0.65}}};
  EXPECT_GE(optimizer, expected.at(GetParam().type).first * weights);
  EXPECT_LE(optimizer, expected.at(GetParam().type).second * weights);
}

TEST_P(OptimizerRuns, AnotherOptimizersCheckpointIsRefusedAndTheRunNamed) {
  ASSERT_EQ(ingot("train", "run", {"training.steps=2"}).status, 0);
  const std::string other = GetParam().type == "adamw" ? "lion" : "adamw";
  const Outcome outcome = ingot("train", "run", {"training.steps=4", "optimizer.type=" + other});
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("optimizer.type"), std::string::npos) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerRuns,
                         ::testing::Values(Case{"adamw", 3e-3}, Case{"lion", 1e-3}, Case{"adafactor", 1e-2},
                                           Case{"muon", 3e-3}, Case{"adamw_8bit", 3e-3}),
                         [](const auto& one) { return one.param.type; });

}  // namespace
}  // namespace ingot::integration
