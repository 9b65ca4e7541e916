// ingot bench, from outside: that each measures what it says, at sizes of no consequence.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "command_line.h"

namespace ingot::integration {
namespace {

using Json = nlohmann::json;

Json bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "bench");
  arguments.insert(arguments.end(), {"--json"});
  const Outcome outcome = run_ingot(arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return outcome.status == 0 ? Json::parse(outcome.out) : Json::object();
}

void expect_rows_of_figures(const Json& result) {
  EXPECT_GT(result["peak_gflops"].get<double>(), 0);
  EXPECT_GT(result["product_gflops"].get<double>(), 0);
  EXPECT_GT(result["copy_gbytes_per_s"].get<double>(), 0);
  ASSERT_FALSE(result["rows"].empty());
  for (const Json& row : result["rows"]) {
    EXPECT_GT(row["ms"].get<double>(), 0) << row;
    EXPECT_GT(row["limit_ms"].get<double>(), 0) << row;
    EXPECT_NEAR(row["of_limit"].get<double>(), row["limit_ms"].get<double>() / row["ms"].get<double>(), 1e-9) << row;
  }
}

TEST(Bench, TrainGivesWhatScriptsRelyOnAndTheLossesOfTheProgram) {
  const std::vector<std::string> arguments{"train",       "--model", "gpt2-nano",   "--batch", "2",       "--seq", "16",
                                           "--precision", "fp32",    "--recompute", "none",    "--steps", "3"};
  const auto on_threads = [&](const char* threads) {
    auto all = arguments;
    all.insert(all.end(), {"--threads", threads});
    return bench(std::move(all));
  };
  const Json one = on_threads("1"), two = on_threads("2");
  for (const char* key : {"step_ms", "tokens_per_second", "model_tflops", "mfu", "peak_gflops", "planned_arena_bytes",
                          "peak_rss_bytes", "compile_ms"})
    EXPECT_GT(one[key].get<double>(), 0) << key;
  EXPECT_GE(one["losses"].size(), 3u);
  EXPECT_NEAR(one["losses"][0].get<double>(), std::log(50257.0), 0.5);
  EXPECT_EQ(one["losses"], two["losses"]) << "the same bits on any number of threads";
  double breakdown = 0;
  for (const auto& [op, ms] : one["breakdown"].items()) breakdown += ms.get<double>();
  EXPECT_GT(breakdown, 0);
  EXPECT_LE(one["planned_arena_bytes"].get<double>(), one["peak_rss_bytes"].get<double>() * 1.5);
}

TEST(Bench, TrainMeasuresWhatAProfileCosts) {
  const Json result = bench({"train", "--model", "gpt2-nano", "--seq", "16", "--steps", "2", "--profile"});
  EXPECT_GT(result["profile_overhead"].get<double>(), -1);
  EXPECT_FALSE(bench({"train", "--model", "gpt2-nano", "--seq", "16", "--steps", "1"}).contains("profile_overhead"));
}

TEST(Bench, OpMeasuresTheOpsThatAreNamedOrAll) {
  const Json two =
      bench({"op", "matmul", "layer_norm", "--rows", "33", "--width", "40", "--inner", "56", "--repetitions", "3"});
  expect_rows_of_figures(two);
  EXPECT_EQ(two["rows"].size(), 2u);
  EXPECT_EQ(two["rows"][0]["name"], "matmul");
  const Json all =
      bench({"op", "--rows", "17", "--width", "24", "--inner", "40", "--vocab", "50", "--repetitions", "2"});
  expect_rows_of_figures(all);
  EXPECT_GE(all["rows"].size(), 20u);
  const Outcome unknown = run_ingot({"bench", "op", "matmull"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("layer_norm_grad"), std::string::npos) << unknown.err;
}

TEST(Bench, AttentionMeasuresForwardAndBackward) {
  const Json result = bench({"attention", "--seq", "48", "--heads", "4", "--kv-heads", "2", "--head-dim", "16",
                             "--batch", "2", "--window", "20", "--repetitions", "2"});
  expect_rows_of_figures(result);
  ASSERT_EQ(result["rows"].size(), 2u);
  EXPECT_EQ(result["rows"][0]["name"], "forward");
  EXPECT_EQ(result["rows"][1]["name"], "backward");
  EXPECT_EQ(run_ingot({"bench", "attention", "--heads", "4", "--kv-heads", "3"}).status, 2);
}

TEST(Bench, LayerMeasuresOneBlockOpByOp) {
  for (const char* preset : {"gpt2-nano", "llama-10m"}) {
    const Json result = bench({"layer", "--model", preset, "--batch", "1", "--seq", "32", "--repetitions", "2"});
    expect_rows_of_figures(result);
    double forward = 0, backward = 0;
    for (const Json& row : result["rows"]) {
      const auto name = row["name"].get<std::string>();
      if (name.starts_with("forward ")) forward += row["ms"].get<double>();
      if (name.starts_with("backward ")) backward += row["ms"].get<double>();
      EXPECT_EQ(name.find("cross_entropy"), std::string::npos) << "the head is no part of a block";
    }
    EXPECT_NEAR(forward, result["rows"][0]["ms"].get<double>(), 1e-6) << preset;
    EXPECT_NEAR(backward, result["rows"][1]["ms"].get<double>(), 1e-6) << preset;
  }
  EXPECT_EQ(run_ingot({"bench", "layer", "--model", "gpt2-nano", "--seq", "300"}).status, 2);  // 256 positions
}

TEST(Bench, TokenizerMeasuresAFileOnOneThread) {
  const ScratchDirectory scratch;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += fmt::format("sentence {} of a small corpus\n", i);
  ASSERT_TRUE(write_file_atomic(scratch / "text.txt", text).ok());
  ASSERT_EQ(run_ingot({"tokenizer", "train", "--input", scratch / "text.txt", "--vocab-size", "300", "--out",
                       scratch / "tokenizer.json"})
                .status,
            0);
  const Json result = bench({"tokenizer", "--tokenizer", scratch / "tokenizer.json", "--input", scratch / "text.txt"});
  EXPECT_EQ(result["bytes"], text.size());
  EXPECT_GT(result["tokens"].get<double>(), 3000);
  for (const char* key : {"encode_mb_per_s", "decode_mb_per_s", "read_gbytes_per_s"})
    EXPECT_GT(result[key].get<double>(), 0) << key;
  EXPECT_EQ(
      run_ingot({"bench", "tokenizer", "--tokenizer", scratch / "none.json", "--input", scratch / "text.txt"}).status,
      3);
}

TEST(Bench, TrainSaysWhatRecomputationLeaves) {
  const auto measured = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "--model", "gpt2-nano", "--seq", "128", "--steps", "1"});
    return bench(std::move(more));
  };
  const Json none = measured({}), full = measured({"--recompute", "full"});
  EXPECT_EQ(none["losses"], full["losses"]);
  EXPECT_LT(full["activations_kept_bytes"].get<int64_t>(), none["activations_kept_bytes"].get<int64_t>());
  EXPECT_EQ(none["recomputed"], "nothing");
}

TEST(Bench, AblateComparesEachFormWithTheOneThatIsConfigured) {
  const ScratchDirectory scratch;
  const std::string config = scratch / "config.yaml";
  ASSERT_TRUE(write_file_atomic(config,
                                "model: {preset: gpt2-nano}\ndata: {sequence_length: 64}\n"
                                "training: {steps: 1, global_batch_size: 1, micro_batch_size: 1}\nthreads: 1\n")
                  .ok());
  const Json rows = bench({"ablate", config, "--rounds", "1"})["rows"];
  std::map<std::string, Json> named;
  for (const Json& row : rows) named[row["name"].get<std::string>()] = row;
  for (const char* name : {"as configured", "nothing fused", "without fuse_attention", "only fuse_attention",
                           "recompute selective", "recompute full"})
    ASSERT_TRUE(named.contains(name)) << name;
  EXPECT_EQ(named["recompute full"]["gradient_difference"], 0.0);
  EXPECT_LT(named["recompute full"]["memory_bytes"], named["as configured"]["memory_bytes"]);
  EXPECT_GT(named["nothing fused"]["gradient_difference"].get<double>(), 0.0);  // attention sums in another order
  EXPECT_EQ(named["without fuse_glu"]["same_program"], true);                   // GPT-2 has none
  EXPECT_EQ(named["without fuse_cast"]["same_program"], true);                  // fp32 has none
  for (const Json& row : rows) {
    EXPECT_LT(row["loss_difference"].get<double>(), 1e-5) << row;
    EXPECT_LT(row["gradient_difference"].get<double>(), 1e-4) << row;
    EXPECT_GT(row["tokens_per_second"].get<double>(), 0) << row;
  }
}

TEST(Bench, AblateMeasuresThePrecisionOfTheRun) {
  const ScratchDirectory scratch;
  const std::string config = scratch / "config.yaml";
  ASSERT_TRUE(write_file_atomic(config,
                                "model: {preset: gpt2-nano}\ndata: {sequence_length: 64}\nthreads: 1\n"
                                "training: {steps: 1, global_batch_size: 1, micro_batch_size: 1, precision: bf16}\n")
                  .ok());
  const Json rows = bench({"ablate", config, "--rounds", "1"})["rows"];
  std::map<std::string, Json> named;
  for (const Json& row : rows) named[row["name"].get<std::string>()] = row;
  EXPECT_EQ(named["without fuse_cast"]["same_program"], false);
  EXPECT_EQ(named["without fuse_cast"]["gradient_difference"], 0.0);  // it moves no rounding
  EXPECT_GT(named["nothing fused"]["gradient_difference"].get<double>(), 1e-4);
}

TEST(Bench, AblateRefusesWhatDoesNotFitAndWhatHasNoFiniteLoss) {
  const ScratchDirectory scratch;
  const auto status_of = [&](const std::string& model, const std::string& more) {
    const std::string config = scratch / "config.yaml";
    EXPECT_TRUE(write_file_atomic(config, fmt::format("model: {{config: {}}}\n{}\nthreads: 1\n", model, more)).ok());
    return run_ingot({"bench", "ablate", config, "--rounds", "1"}).status;
  };
  const std::string training = "training: {steps: 1, global_batch_size: 1, micro_batch_size: 1}";
  EXPECT_EQ(status_of("{model_type: llama, hidden_size: 65536, intermediate_size: 262144, num_hidden_layers: 4, "
                      "num_attention_heads: 512}",
                      training),
            2);
  EXPECT_EQ(status_of("{model_type: gpt2, n_embd: 2, n_layer: 1, n_head: 1, n_positions: 64, vocab_size: 8, "
                      "layer_norm_epsilon: 0, initializer_range: 0}",
                      training + "\ndata: {sequence_length: 16}"),
            1);
}

TEST(Bench, RefusesWhatThisVersionDoesNotHave) {
  EXPECT_EQ(run_ingot({"bench"}).status, 2);
  EXPECT_EQ(run_ingot({"bench", "train", "--model", "no-such-preset"}).status, 2);
  EXPECT_EQ(run_ingot({"bench", "train", "--model", "gpt2-nano", "--recompute", "some"}).status, 2);
  EXPECT_EQ(run_ingot({"bench", "train", "--model", "gpt2-nano", "--recompute", "budget"}).status, 2);
  EXPECT_EQ(run_ingot({"bench", "train", "--model", "gpt2-nano", "--memory-budget", "1GB"}).status, 2);
  EXPECT_EQ(run_ingot({"bench", "train", "--model", "gpt2-nano", "--seq", "257"}).status, 2);  // 256 positions
  EXPECT_EQ(run_ingot({"bench", "train", "--model", "gpt2-nano", "--precision", "int4"}).status, 2);
}

}  // namespace
}  // namespace ingot::integration
