// ingot graph, from outside.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "command_line.h"
#include "graph/text.h"
#include "ops/registry.h"
#include "passes/pipeline.h"

namespace ingot::integration {
namespace {

using Json = nlohmann::json;

class GraphVerb : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_file_atomic(config_,
                                  "model: {preset: gpt2-nano, config: {vocab_size: 97}}\ndata: {sequence_length: 16}\n"
                                  "training: {steps: 10}\n")
                    .ok());
  }

  Outcome graph(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"graph", config_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_ingot(arguments);
  }

  // The graph that is printed, after a check that it parses back to itself.
  std::string printed(std::vector<std::string> more) const {
    const Outcome outcome = graph(std::move(more));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto parsed = parse_graph(outcome.out, find_op);
    EXPECT_EQ(parsed.ok() ? print_graph(*parsed) : parsed.error().message, outcome.out);
    return outcome.out;
  }

  const ScratchDirectory scratch_;
  const std::string config_ = scratch_ / "config.yaml";
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(GraphVerb, PrintsEachProgramAndTheTextParsesBack) {
  EXPECT_TRUE(contains(printed({}), "store"));
  const std::string evaluation = printed({"--program", "evaluation"});
  EXPECT_FALSE(contains(evaluation, "store"));
  EXPECT_TRUE(contains(evaluation, "linear_cross_entropy"));
  EXPECT_TRUE(contains(printed({"--program", "update"}), "adamw"));
}

TEST_F(GraphVerb, ShowsTheGraphAsAPassLeftIt) {
  const std::string built = printed({"--after", "build"});
  EXPECT_TRUE(contains(built, "softmax"));
  EXPECT_FALSE(contains(built, "attention(") || contains(built, "_grad("));
  const std::string attention = printed({"--after", "fuse_attention"});
  EXPECT_TRUE(contains(attention, "attention("));
  EXPECT_FALSE(contains(attention, "softmax("));
  EXPECT_TRUE(contains(printed({"--after", "differentiate"}), "_grad("));
  EXPECT_FALSE(contains(printed({"--after", "dce_gradients"}), "cluster("));
}

TEST_F(GraphVerb, TakesBatchLengthAndOverrides) {
  EXPECT_TRUE(contains(printed({"--batch", "3", "--seq", "8"}), "input \"ids\" : i32[3,8]"));
  EXPECT_TRUE(contains(printed({"model.config.vocab_size=131"}), "f32[131,48]"));
}

TEST_F(GraphVerb, RefusesAPassThatIsNotThereAndListsThoseThatAre) {
  const Outcome unknown = graph({"--after", "fuse_atention"});
  EXPECT_EQ(unknown.status, 2);
  for (const auto passes : {forward_passes(), backward_passes()})
    for (const Pass& pass : passes) EXPECT_TRUE(contains(unknown.err, pass.name)) << unknown.err;
  EXPECT_TRUE(contains(unknown.err, "build")) << unknown.err;
  EXPECT_EQ(graph({"--after", "differentiate", "--program", "evaluation"}).status, 2);
  const Outcome off = graph({"--after", "fuse_attention", "compile.disable_passes=[fuse_attention]"});
  EXPECT_EQ(off.status, 2);
  EXPECT_TRUE(contains(off.err, "compile.disable_passes")) << off.err;
}

TEST_F(GraphVerb, TheFusionReportSaysWhatWasFusedAndWhyNot) {
  const Outcome report = graph({"--fusion-report"});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_TRUE(contains(report.out, "attention: applied 3, not applied 0")) << report.out;
  const Outcome without = graph({"--fusion-report", "compile.no_fuse=[attention]"});
  EXPECT_TRUE(contains(without.out, "attention: applied 0, not applied 3")) << without.out;
  EXPECT_TRUE(contains(without.out, "switched off by compile.no_fuse")) << without.out;
}

TEST_F(GraphVerb, PrintsOneJsonObject) {
  const Outcome outcome = graph({"--json", "--after", "cse"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["program"], "micro_step");
  EXPECT_EQ(json["after"], "cse");
  EXPECT_GT(json["nodes"], 10);
  EXPECT_TRUE(parse_graph(json["graph"].get<std::string>(), find_op).ok());
  EXPECT_FALSE(json["fusions"].empty());
}

}  // namespace
}  // namespace ingot::integration
