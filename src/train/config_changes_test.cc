#include "train/config_changes.h"

#include <gtest/gtest.h>

#include "train/config.h"

namespace ingot {
namespace {

using Lines = std::vector<std::string>;

TEST(ChangedSettings, NameWhatBearsOnLearning) {
  RunConfig config;
  const std::string before = to_yaml(config);
  EXPECT_EQ(changed_settings(before, before), Lines{});
  config.optimizer.eps = 1e-6;
  config.training.loss_scale.initial = 4;
  config.data.train.emplace_back().path = "more.txt";
  const Lines changes = changed_settings(before, to_yaml(config));
  ASSERT_EQ(changes.size(), 3u) << fmt::format("{}", changes.size());
  EXPECT_NE(changes[0].find("data.train"), std::string::npos) << changes[0];
  EXPECT_EQ(changes[1], "optimizer.eps was 1e-08, now 1e-06");
  EXPECT_NE(changes[2].find("training.loss_scale.initial was 65536, now 4"), std::string::npos) << changes[2];
}

TEST(ChangedSettings, LeaveOutWhatDoesNot) {
  RunConfig config;
  const std::string before = to_yaml(config);
  config.output_dir = "elsewhere";
  config.threads = 3;
  config.training.steps = 77;
  config.data.prefetch_batches = 9;
  config.logging.every_steps = 3;
  EXPECT_EQ(changed_settings(before, to_yaml(config)), Lines{});
}

TEST(CanGoOn, RefusesWhatACheckpointDependsOnAndNothingElse) {
  RunConfig config;
  const std::string before = to_yaml(config);
  config.optimizer.learning_rate = 0.5;
  config.training.global_batch_size *= 2;
  EXPECT_TRUE(check_can_go_on(before, to_yaml(config), "step-1").ok());
  config.optimizer.type = OptimizerType::lion;
  config.data.sequence_length = 77;
  config.data.document_mask = false;
  const Status status = check_can_go_on(before, to_yaml(config), "step-1");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::usage);
  EXPECT_NE(status.error().message.find("step-1 holds the optimizer's state and the position in the data of another "
                                        "run: optimizer.type was adamw, now lion; data.sequence_length was 1024, now "
                                        "77; data.document_mask was true, now false. Go on with"),
            std::string::npos)
      << status.error().message;
}

TEST(CanGoOn, KnowsEveryKeyByItsNameInTheResolvedConfiguration) {
  RunConfig config;
  const std::string before = to_yaml(config);
  config.seed += 1;
  config.data.packing = !config.data.packing;
  config.data.shuffle = !config.data.shuffle;
  const Status status = check_can_go_on(before, to_yaml(config), "step-1");
  ASSERT_FALSE(status.ok());
  for (const std::string_view key : {"seed was", "data.packing was", "data.shuffle was"})
    EXPECT_NE(status.error().message.find(key), std::string::npos) << status.error().message;
}

TEST(SameModel, NamesTheKeysThatDiffer) {
  EXPECT_TRUE(check_same_model(R"({"a": 1, "b": 2})", R"({"b": 2, "a": 1})", "step-1").ok());
  const Status status =
      check_same_model(R"({"rope_theta": 10000, "b": 2})", R"({"rope_theta": 500, "b": 2})", "step-1");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::usage);
  EXPECT_NE(status.error().message.find("step-1 holds another model: rope_theta was 10000, now 500"), std::string::npos)
      << status.error().message;
}

}  // namespace
}  // namespace ingot
