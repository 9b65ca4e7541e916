// `ingot data inspect`: what a step of a run, or of shards, holds.
#include <fstream>

#include "command_line.h"

namespace ingot::integration {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class DataInspect : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream text(scratch_ / "corpus.jsonl");
    for (int i = 0; i < 60; ++i)
      text << Json{{"text", fmt::format("Document {} tells of {} sheep and {} dogs.", i, i * i, 3 * i)}}.dump() << "\n";
    text.close();
    std::ofstream config(scratch_ / "config.yaml");
    config << fmt::format(
        "output_dir: {0}\nmodel: {{preset: gpt2-mini}}\ntokenizer: {{path: {0}/tokenizer.json, train_vocab_size: "
        "300}}\n"
        "data: {{train: [{{path: {0}/corpus.jsonl}}], sequence_length: 32}}\n"
        "training: {{steps: 5, global_batch_size: 4, micro_batch_size: 2}}\nseed: 7\n",
        scratch_.path().string());
  }
  Json inspected(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inspect");
    arguments.insert(arguments.begin(), "data");
    arguments.push_back("--json");
    const Outcome outcome = run_ingot(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  // Where the run keeps the shards that it built.
  std::string shards() const {
    for (const auto& entry : fs::directory_iterator(scratch_.path() / "data"))
      if (entry.is_directory()) return entry.path().string();
    return "";
  }

  ScratchDirectory scratch_;
};

Json rows_of(const Json& step) {
  Json rows = Json::array();
  for (const Json& batch : step["micro_batches"])
    for (const Json& row : batch["batch"]) rows.push_back(row);
  return rows;
}

TEST_F(DataInspect, ShowsTheSameStepOfAConfigurationAndOfItsShards) {
  const Json run = inspected({scratch_ / "config.yaml", "--step", "3"});
  ASSERT_EQ(run["micro_batches"].size(), 2u);
  const Json of_shards = inspected({shards(), "--step", "3", "--batch", "4", "--sequence-length", "32", "--seed", "7",
                                    "--tokenizer", scratch_ / "tokenizer.json"});
  ASSERT_EQ(of_shards["micro_batches"].size(), 1u);
  EXPECT_EQ(rows_of(run), rows_of(of_shards));
  EXPECT_EQ(rows_of(run).size(), 4u);
  EXPECT_NE(rows_of(run)[0]["text"].get<std::string>().find("sheep"), std::string::npos);
  EXPECT_EQ(run["counted"], of_shards["counted"]);
}

TEST_F(DataInspect, TakesOverridesAndDefaultsToTheFirstStep) {
  const Json first = inspected({scratch_ / "config.yaml"});
  EXPECT_EQ(first["step"], 1);
  const Json other = inspected({scratch_ / "config.yaml", "seed=8", "training.global_batch_size=6"});
  EXPECT_EQ(other["micro_batches"].size(), 3u);
  EXPECT_NE(rows_of(first)[0], rows_of(other)[0]);
  const Outcome text = run_ingot({"data", "inspect", scratch_ / "config.yaml", "--step", "2"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("micro-batch 2 of 2"), std::string::npos) << text.out;
}

TEST_F(DataInspect, RefusesWhatBelongsToTheOtherKind) {
  expect_error({"data", "inspect", scratch_ / "config.yaml", "--batch", "4"}, 2,
               {"--batch", "training.global_batch_size"});
  inspected({scratch_ / "config.yaml"});
  expect_error({"data", "inspect", shards(), "seed=8"}, 2, {"seed=8", "shards"});
  expect_error({"data", "inspect", scratch_ / "nowhere"}, 3, {"nowhere"});
}

}  // namespace
}  // namespace ingot::integration
