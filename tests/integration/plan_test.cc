// ingot plan, and the plan against what a run really takes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/system.h"
#include "command_line.h"
#include "data/batch_stream.h"
#include "train/plan_run.h"
#include "train/trainer.h"
#include "training_testing.h"

namespace ingot::integration {
namespace {

using Json = nlohmann::json;

constexpr MachineLimits kMachine{.peak_gflops = 100, .product_gflops = 80, .copy_gbytes_per_s = 20};
constexpr int64_t kPlenty = int64_t{1} << 50;

RunConfig config_of(const std::string& yaml) {
  return value_of(parse_config(yaml, "test"));
}

std::string nano(const std::string& output_dir, const std::string& more = "") {
  return fmt::format(
      "output_dir: {}\nmodel: {{preset: gpt2-nano, config: {{vocab_size: 384}}}}\n"
      "data: {{sequence_length: 32}}\ntraining: {{steps: 200, global_batch_size: 8, micro_batch_size: 2}}\n"
      "schedule: {{warmup_steps: 4}}\n{}",
      output_dir, more);
}

RunPlan plan_of(const std::string& yaml, int64_t memory = kPlenty) {
  return value_of(plan_run(config_of(yaml), kMachine, memory, ThreadPool(2)));
}

bool mentions(const std::vector<std::string>& notes, std::string_view word) {
  for (const std::string& note : notes)
    if (note.find(word) != std::string::npos) return true;
  return false;
}

TEST(Plan, PrintsOneJsonObjectWithWhatScriptsRelyOn) {
  const ScratchDirectory scratch;
  const std::string config = scratch / "config.yaml";
  ASSERT_TRUE(write_file_atomic(config, nano(scratch / "run")).ok());
  const Outcome outcome = run_ingot({"plan", config, "training.steps=300", "--json", "--threads", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json plan = Json::parse(outcome.out);
  EXPECT_EQ(plan["fits"], true);
  EXPECT_EQ(plan["steps"], 300);
  EXPECT_EQ(plan["layout"]["data"], 1);
  int64_t sum = 0;
  for (const auto& [name, bytes] : plan["memory"].items())
    if (name != "total") sum += bytes.get<int64_t>();
  EXPECT_EQ(plan["memory"]["total"], sum);
  EXPECT_LT(plan["activations"]["kept_for_backward"].get<int64_t>(), plan["memory"]["activations"].get<int64_t>());
  EXPECT_LE(plan["activations"]["lower_bound"].get<int64_t>(), plan["memory"]["activations"].get<int64_t>());
  EXPECT_EQ(plan["recomputed"], "");
  for (const char* name : {"weights", "gradients", "optimizer", "activations", "workspace"})
    EXPECT_GT(plan["memory"][name].get<int64_t>(), 0) << name;
  EXPECT_EQ(plan["memory"]["weights"].get<int64_t>() * 2, plan["memory"]["optimizer"].get<int64_t>());
  EXPECT_GT(plan["disk_bytes"].get<int64_t>(), 5 * 12 * plan["parameters"].get<int64_t>());
  EXPECT_GT(plan["step_ms"].get<double>(), 0);
  EXPECT_NEAR(plan["tokens_per_second"].get<double>(), 256e3 / plan["step_ms"].get<double>(), 1e-6 * 256e3);
  EXPECT_GT(plan["mfu"].get<double>(), 0);
  EXPECT_LE(plan["mfu"].get<double>(), 1.1);
  EXPECT_FALSE(fs::exists(scratch / "run")) << "a plan leaves nothing behind";
}

TEST(Plan, SaysWhatIsStoredInWhichPrecision) {
  const std::string mixed = "training: {steps: 200, global_batch_size: 8, micro_batch_size: 2, precision: bf16";
  const auto plan = [&](const std::string& more) {
    std::string yaml = nano("/tmp/x");
    const std::string plain = "training: {steps: 200, global_batch_size: 8, micro_batch_size: 2";
    return plan_of(yaml.replace(yaml.find(plain), plain.size(), mixed + more));
  };
  EXPECT_TRUE(plan_of(nano("/tmp/x")).precisions.empty());
  const auto operands = [](const RunPlan& of, const std::string& kind) {
    return std::ranges::find(of.precisions, kind, &PrecisionRow::kind)->operands;
  };
  const RunPlan usual = plan("");
  EXPECT_EQ(usual.precision, "bf16");
  for (const char* kind : {"matmul", "attention", "residual", "activation", "norm"})
    EXPECT_EQ(operands(usual, kind), "bf16") << kind;
  for (const char* kind : {"softmax", "loss"}) EXPECT_EQ(operands(usual, kind), "fp32") << kind;
  EXPECT_FALSE(mentions(usual.warnings, "stay in fp32"));
  EXPECT_NE(describe(usual).find("residual     reads bf16"), std::string::npos) << describe(usual);

  const RunPlan wide = plan(", fp32_ops: [norm, softmax, loss, activation, matmul, residual]");
  for (const char* kind : {"matmul", "residual", "norm"}) EXPECT_EQ(operands(wide, kind), "fp32") << kind;
  EXPECT_TRUE(mentions(wide.warnings, "stay in fp32"));
  // Copies of the weights that products read, half as large as these.
  EXPECT_GT(usual.memory.weights, wide.memory.weights);
  EXPECT_LT(usual.memory.kept, wide.memory.kept);
}

TEST(Plan, PrintsTheSameForPeople) {
  const ScratchDirectory scratch;
  const std::string config = scratch / "config.yaml";
  ASSERT_TRUE(write_file_atomic(config, nano(scratch / "run")).ok());
  const Outcome outcome = run_ingot({"plan", config});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* word :
       {"embedding", "attention", "mlp", "weights", "gradients", "optimizer", "activations", "disk", "TFLOP",
        "tokens/s", "1 rank × 2 sequences × 4 accumulated = 8 sequences of 32", "end of the warm-up", "fits"})
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << " is missing in\n" << outcome.out;
}

TEST(Plan, ARunThatCannotFitIsPrintedAllTheSameAndRefused) {
  const ScratchDirectory scratch;
  const std::string config = scratch / "config.yaml";
  ASSERT_TRUE(write_file_atomic(
                  config, fmt::format("output_dir: {}\nmodel: {{preset: gpt-13b}}\ndata: {{sequence_length: 2048}}\n"
                                      "training: {{steps: 10, global_batch_size: 4096, micro_batch_size: 4096}}\n",
                                      scratch / "run"))
                  .ok());
  const Outcome outcome = run_ingot({"plan", config, "--json"});
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  const Json plan = Json::parse(outcome.out);
  EXPECT_EQ(plan["fits"], false);
  EXPECT_GT(plan["memory"]["total"].get<double>(), plan["available_memory"].get<double>());
  EXPECT_FALSE(plan["remedies"].empty());
  EXPECT_NE(outcome.err.find("MB of memory"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("what would help"), std::string::npos) << outcome.err;
}

TEST(Plan, ListsPresetsAndFamilies) {
  const Outcome outcome = run_ingot({"plan", "--presets", "--families", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json lists = Json::parse(outcome.out);
  EXPECT_EQ(lists["presets"].size(), list_presets().size());
  EXPECT_EQ(lists["families"].size(), family_names().size());
  EXPECT_EQ(run_ingot({"plan"}).status, 2);
}

TEST(Plan, RefusesWhatARunWouldRefuse) {
  const auto refusal = [](const std::string& yaml) {
    const auto config = parse_config(yaml, "test");
    if (!config.ok()) return config.error();
    const auto plan = plan_run(*config, kMachine, kPlenty, ThreadPool(1));
    return plan.ok() ? Error{ErrorKind::failed, "planned"} : plan.error();
  };
  const Error too_long = refusal("model: {preset: gpt2-nano}\ntraining: {steps: 1}");  // 1024 tokens, 256 positions
  EXPECT_EQ(too_long.kind, ErrorKind::usage);
  EXPECT_NE(too_long.message.find("256"), std::string::npos) << too_long.message;
  EXPECT_EQ(refusal(nano("/tmp/x", "recompute: {policy: full, layers: [99]}")).kind, ErrorKind::usage);
  EXPECT_EQ(refusal("model: {path: /no/such/directory}\ntraining: {steps: 1}").kind, ErrorKind::input);
  EXPECT_EQ(refusal("training: {steps: 1}").kind, ErrorKind::usage);
}

TEST(Plan, LargeModelsArePlannedWithoutTheirMemory) {
  for (const char* preset : {"llama2-7b", "gpt-13b"}) {
    const RunPlan plan =
        plan_of(fmt::format("model: {{preset: {}}}\ndata: {{sequence_length: 1024}}\n"
                            "training: {{steps: 100, micro_batch_size: 1}}",
                            preset));
    EXPECT_GT(plan.parameters, 6'000'000'000) << preset;
    EXPECT_EQ(plan.memory.weights, 4 * plan.parameters) << preset;
    EXPECT_EQ(plan.memory.gradients, 4 * plan.parameters) << preset;
    EXPECT_EQ(plan.memory.optimizer, 8 * plan.parameters) << preset;
    EXPECT_EQ(plan.memory.staging, 12 * plan.parameters) << preset;
    // The compiled programs do what the model's formula says, up to a tenth.
    EXPECT_NEAR(plan.program_flops / plan.model_flops, 1, 0.1) << preset;
  }
  EXPECT_LT(peak_resident_bytes(), uint64_t{2} << 30);
}

TEST(Plan, NamesWhatWouldMakeARunFit) {
  const ScratchDirectory scratch;
  const auto with_rows = [&](int rows) {
    return fmt::format(
        "output_dir: {}\nmodel: {{preset: gpt2-micro}}\ndata: {{sequence_length: 512}}\n"
        "training: {{steps: 100, global_batch_size: 8, micro_batch_size: {}}}\n",
        scratch / "run", rows);
  };
  const int64_t of_two = plan_of(with_rows(2)).memory.total();
  const RunPlan smaller_batch = plan_of(with_rows(8), of_two);
  EXPECT_FALSE(smaller_batch.fits());
  EXPECT_TRUE(mentions(smaller_batch.remedies, "training.micro_batch_size=2"));

  const MemoryEstimate of_one = plan_of(with_rows(1)).memory;
  const RunPlan no_staging = plan_of(with_rows(8), of_one.total() - of_one.staging);
  EXPECT_TRUE(mentions(no_staging.remedies, "checkpoint.async=false with training.micro_batch_size=1"));

  const RunPlan shorter =
      plan_of(with_rows(1) + "checkpoint: {async: false}\n", of_one.fixed() - of_one.staging + of_one.activations / 2);
  EXPECT_TRUE(mentions(shorter.remedies, "data.sequence_length="));

  const RunPlan hopeless = plan_of(with_rows(1), int64_t{80} << 20);
  EXPECT_TRUE(mentions(hopeless.remedies, "a machine with"));
  EXPECT_TRUE(mentions(hopeless.remedies, "smaller model"));
}

TEST(Plan, TakesTheLargestMicroBatchThatFits) {
  const ScratchDirectory scratch;
  const std::string yaml = fmt::format(
      "output_dir: {}\nmodel: {{preset: gpt2-micro}}\ndata: {{sequence_length: 512}}\n"
      "training: {{steps: 100, global_batch_size: 8}}\n",
      scratch / "run");
  const RunPlan plenty = plan_of(yaml);
  EXPECT_EQ(plenty.micro_batch, 8);
  EXPECT_EQ(plenty.accumulation, 1);
  const RunPlan less = plan_of(yaml, plenty.memory.total() - 1);
  EXPECT_TRUE(less.fits());
  EXPECT_EQ(less.micro_batch * less.accumulation, 8);
  EXPECT_LT(less.micro_batch, 8);
}

TEST(Plan, SaysWhatItAssumesWhereTokenizerAndDataAreMissing) {
  const RunPlan plan = plan_of(
      "model: {preset: llama-10m}\ntokenizer: {path: /no/such/tokenizer.json, train_vocab_size: 1000}\n"
      "data: {train: [{path: /no/such/text.txt}], sequence_length: 64}\ntraining: {steps: 100}");
  EXPECT_TRUE(mentions(plan.assumptions, "1000 tokens"));
  EXPECT_TRUE(mentions(plan.assumptions, "/no/such/text.txt"));
  EXPECT_EQ(plan.components.at(0), (std::pair<std::string, int64_t>("embedding", 1000 * 256)));
  EXPECT_EQ(plan.total_steps, 100);
  EXPECT_FALSE(plan.steps_per_epoch);
  const RunPlan epochs =
      plan_of("model: {preset: llama-10m}\ndata: {train: [{path: /no/such}]}\ntraining: {epochs: 2}");
  EXPECT_FALSE(epochs.total_steps);
  EXPECT_TRUE(epochs.rates.empty());
}

TEST(Plan, RatesAreTheScheduleOfTheRun) {
  const RunPlan plan = plan_of(nano("/tmp/unused"));
  ASSERT_EQ(plan.rates.size(), 3u);
  EXPECT_EQ(plan.rates[0].learning_rate, 0);
  EXPECT_EQ(plan.rates[1].step, 4);
  EXPECT_DOUBLE_EQ(plan.rates[1].learning_rate, 3e-4);
  EXPECT_EQ(plan.rates[2].step, 200);
  EXPECT_NEAR(plan.rates[2].learning_rate, 3e-5, 1e-12);
}

TEST(Plan, WarnsOfUnusualChoices) {
  EXPECT_TRUE(plan_of(nano("/tmp/unused")).warnings.empty());
  const RunPlan plan = plan_of(nano("/tmp/unused", "optimizer: {learning_rate: 0.009}\n"));
  EXPECT_TRUE(mentions(plan.warnings, "may diverge"));
}

// A corpus, a tokenizer of bytes and some merges, and its shards.
class PlannedRun : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 6000; ++i) text += fmt::format("line {} says {}\n", i, (i * 7919) % 1000);
    ASSERT_TRUE(write_file_atomic(scratch_ / "text.txt", text).ok());
    yaml_ = nano(scratch_ / "run",
                 fmt::format("tokenizer: {{path: {}, train_vocab_size: 384}}\ncheckpoint: {{every_steps: 6}}\n"
                             "logging: {{tensorboard: false}}\n",
                             scratch_ / "tokenizer.json"));
    const std::string from = "data: {";
    yaml_.replace(yaml_.find(from), from.size(),
                  fmt::format("data: {{train: [{{path: {}}}], validation_fraction: 0.1, ", scratch_ / "text.txt"));
  }

  const ScratchDirectory scratch_;
  std::string yaml_;
};

TEST_F(PlannedRun, StepsOfAnEpochAreEstimatedFromTextAndExactOnceShardsAreThere) {
  RunConfig config = config_of(yaml_);
  const ThreadPool pool(2);
  const RunPlan before = value_of(plan_run(config, kMachine, kPlenty, pool));
  ASSERT_TRUE(before.steps_per_epoch.has_value());
  EXPECT_TRUE(mentions(before.assumptions, "is not tokenized yet"));
  const RunSetup setup = value_of(set_up_run(config, pool));
  const RunPlan after = value_of(plan_run(config, kMachine, kPlenty, pool));
  EXPECT_FALSE(mentions(after.assumptions, "is not tokenized yet"));
  EXPECT_NEAR(static_cast<double>(*after.steps_per_epoch), static_cast<double>(setup.sequences_per_epoch / 8), 1);
  EXPECT_NEAR(static_cast<double>(*before.steps_per_epoch) / static_cast<double>(*after.steps_per_epoch), 1, 0.5);
}

TEST_F(PlannedRun, TheRunsProgramsTakeWhatThePlanSays) {
  const RunConfig config = config_of(yaml_);
  const ThreadPool pool(2);
  const RunSetup setup = value_of(set_up_run(config, pool));
  const RunPlan plan = value_of(plan_run(config, kMachine, kPlenty, pool));
  const auto programs =
      value_of(TrainingPrograms::create(setup.model, program_settings(config, plan.micro_batch), pool));
  EXPECT_EQ(programs->memory().total(), plan.memory.total());
  const int64_t arena = plan.memory.total() - plan.memory.staging - plan.memory.process;
  EXPECT_GE(programs->arena().bytes(), arena);
  // The arena is cut in huge pages: three blocks may be a page longer each.
  EXPECT_LE(programs->arena().bytes(), arena + 4 * (2 << 20));
}

TEST_F(PlannedRun, TheProcessTakesNoMoreMemoryThanThePlanSays) {
  const std::string config = scratch_ / "config.yaml";
  ASSERT_TRUE(write_file_atomic(config, yaml_).ok());
  // Large enough that the process itself is a small part of it.
  const auto with_sizes = [&](const char* verb) {
    return run_ingot({verb, config, "training.steps=12", "model.preset=gpt2-micro", "data.sequence_length=256",
                      "training.micro_batch_size=8", "--json"});
  };
  const Outcome plan = with_sizes("plan");
  ASSERT_EQ(plan.status, 0) << plan.err;
  const Outcome run = with_sizes("train");
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string metrics = value_of(read_file(scratch_ / "run/metrics.csv"));
  const std::string last = metrics.substr(metrics.rfind('\n', metrics.size() - 2) + 1);
  std::vector<std::string> columns(1);
  for (const char c : last)
    if (c == ',')
      columns.emplace_back();
    else
      columns.back() += c;
  const double measured = std::stod(columns.at(11)) * (1 << 20);
  const double planned = Json::parse(plan.out)["memory"]["total"].get<double>();
  EXPECT_LT(measured, 1.05 * planned);
  EXPECT_GT(measured, 0.8 * planned);
}

}  // namespace
}  // namespace ingot::integration
