#include "train/config.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "base/rng.h"

namespace ingot {
namespace {

constexpr const char* kSmall = "model: {preset: llama-15m}\ntraining: {steps: 100}\n";

Result<RunConfig> parse(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return parse_config(yaml, "run.yaml", overrides);
}

RunConfig good(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  auto config = parse(yaml, overrides);
  EXPECT_TRUE(config.ok()) << config.error().message;
  return config.ok() ? std::move(config).value() : RunConfig{};
}

// The message of the usage error that reading must end in.
std::string refused(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const auto config = parse(yaml, overrides);
  EXPECT_FALSE(config.ok()) << yaml;
  if (config.ok()) return "";
  EXPECT_EQ(config.error().kind, ErrorKind::usage);
  return config.error().message;
}

void expect_contains(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

TEST(Config, AbsentKeysTakeTheDocumentedDefaults) {
  const RunConfig config = good(kSmall);
  EXPECT_EQ(config.output_dir, "runs/demo");
  EXPECT_EQ(config.seed, 42);
  EXPECT_FALSE(config.threads);
  EXPECT_FALSE(config.model.init);
  EXPECT_EQ(config.data.sequence_length, 1024);
  EXPECT_TRUE(config.data.packing && config.data.document_mask && config.data.shuffle);
  EXPECT_FALSE(config.data.workers);
  EXPECT_EQ(config.training.global_batch_size, 8);
  EXPECT_EQ(config.training.precision, Precision::fp32);
  EXPECT_EQ(config.training.mode, ExecutionMode::graph);
  EXPECT_EQ(config.training.fp32_ops, (std::vector<std::string>{"norm", "softmax", "loss", "activation"}));
  EXPECT_EQ(config.training.max_grad_norm, 1.0);
  EXPECT_EQ(config.optimizer.learning_rate, 3.0e-4);
  EXPECT_EQ(config.optimizer.betas, (std::array{0.9, 0.95}));
  EXPECT_EQ(config.optimizer.eps, 1.0e-8);
  EXPECT_EQ(config.optimizer.weight_decay, 0.1);
  EXPECT_EQ(config.schedule.type, ScheduleType::cosine);
  EXPECT_EQ(config.schedule.min_lr_ratio, 0.1);
  EXPECT_EQ(config.recompute.policy, RecomputePolicy::none);
  EXPECT_FALSE(config.recompute.layers);
  EXPECT_EQ(config.parallel.ranks(), 1);
  EXPECT_EQ(config.parallel.bucket_mb, 16);
  EXPECT_EQ(config.checkpoint.every_steps, 500);
  EXPECT_EQ(config.checkpoint.keep, 5);
  EXPECT_EQ(config.checkpoint.resume_mode(), ResumeMode::automatic);
  EXPECT_EQ(config.evaluation.max_batches, 50);
  EXPECT_EQ(config.logging.every_steps, 10);
  EXPECT_EQ(config.monitor.on_nan, OnNan::stop);
  EXPECT_EQ(config.monitor.max_consecutive_skips, 10);
}

TEST(Config, ReadsWhatTheFileSays) {
  const RunConfig config = good(R"(
output_dir: "runs/a b"
threads: 4
model:
  path: models/base
  init: random
  config: {model_type: llama, hidden_size: 256, rms_norm_eps: 1e-5, tie_word_embeddings: true, rope_scaling: null,
           name: "12", layers: [1, 2.5]}
data:
  train:
    - {path: "corpus/*.txt", weight: 0.25}
    - path: more.jsonl
      text_key: body
      template: "{question} {answer}"
  workers: 2
training:
  tokens: 2e9
  precision: bf16
  epochs: null
optimizer:
  learning_rate: 3e-4
  groups: [{match: "*embed*", weight_decay: 0, max_grad_norm: 0.5}, {match: "*"}]
schedule: {type: wsd, warmup_ratio: 0.01, decay_steps: 100}
recompute: {policy: budget, layers: [0, 3], memory_budget: 1.5GiB}
parallel: {data: 2, tensor: 2, pipeline_schedule: 1f1b}
checkpoint: {resume: runs/old/checkpoints/step-00000500, async: false}
monitor: {grad_norm_range: [0.01, 100], loss_spike: 2, gradient_consistency: {every_steps: 50}}
)");
  EXPECT_EQ(config.output_dir, "runs/a b");
  EXPECT_EQ(config.threads, 4);
  EXPECT_EQ(config.model.init, ModelInit::random);
  EXPECT_EQ(config.model.config,
            R"({"model_type":"llama","hidden_size":256,"rms_norm_eps":1e-05,"tie_word_embeddings":true,)"
            R"("rope_scaling":null,"name":"12","layers":[1,2.5]})");
  ASSERT_EQ(config.data.train.size(), 2u);
  EXPECT_EQ(config.data.train[0], (DataSource{"corpus/*.txt", 0.25, "text", std::nullopt}));
  EXPECT_EQ(config.data.train[1], (DataSource{"more.jsonl", 1.0, "body", "{question} {answer}"}));
  EXPECT_EQ(config.data.workers, 2);
  EXPECT_EQ(config.training.tokens, 2'000'000'000);
  EXPECT_EQ(config.training.precision, Precision::bf16);
  EXPECT_EQ(config.optimizer.learning_rate, 3e-4);
  ASSERT_EQ(config.optimizer.groups.size(), 2u);
  EXPECT_EQ(config.optimizer.groups[0], (ParameterGroupRule{"*embed*", 0.0, 1.0, 0.5}));
  EXPECT_EQ(config.schedule.warmup_ratio, 0.01);
  EXPECT_EQ(config.recompute.layers, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(config.recompute.memory_budget, int64_t{3} << 29);
  EXPECT_EQ(config.parallel.ranks(), 4);
  EXPECT_EQ(config.checkpoint.resume_mode(), ResumeMode::path);
  EXPECT_EQ(config.monitor.grad_norm_range, (std::array{0.01, 100.0}));
  EXPECT_EQ(config.monitor.gradient_consistency.every_steps, 50);
}

TEST(Config, OverridesWinOverTheFileAndTheLastOverTheFirst) {
  const RunConfig config =
      good(kSmall, {"optimizer.learning_rate=3e-4", "optimizer.learning_rate=1.0e-3", "seed=7", "model.preset=null",
                    "model.config.hidden_size=64", "model.config.model_type=llama", "training.mode=eager",
                    "optimizer.betas=[0.8, 0.9]", "monitor.gradient_consistency.every_steps=5", "output_dir=runs/x=y"});
  EXPECT_EQ(config.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(config.seed, 7);
  EXPECT_FALSE(config.model.preset);
  EXPECT_EQ(config.model.config, R"({"hidden_size":64,"model_type":"llama"})");
  EXPECT_EQ(config.training.mode, ExecutionMode::eager);
  EXPECT_EQ(config.optimizer.betas, (std::array{0.8, 0.9}));
  EXPECT_EQ(config.monitor.gradient_consistency.every_steps, 5);
  EXPECT_EQ(config.output_dir, "runs/x=y");
}

TEST(Config, OverridesReachIntoListsAndAppendToThem) {
  const std::string yaml = std::string(kSmall) + "data: {train: [{path: a.txt, weight: 2}]}\n";
  const RunConfig config =
      good(yaml, {"data.train.0.path=b.txt", "data.train.1.path=*.txt", "data.validation.0.path=v.txt",
                  "optimizer.groups=[{match: x}]", "training.freeze.0=*embed*"});
  ASSERT_EQ(config.data.train.size(), 2u);
  EXPECT_EQ(config.data.train[0], (DataSource{"b.txt", 2.0, "text", std::nullopt}));
  EXPECT_EQ(config.data.train[1].path, "*.txt");
  EXPECT_EQ(config.data.validation.at(0).path, "v.txt");
  EXPECT_EQ(config.optimizer.groups.at(0).match, "x");
  EXPECT_EQ(config.training.freeze, std::vector<std::string>{"*embed*"});
  expect_contains(refused(yaml, {"data.train.2.path=c"}), {"override \"data.train.2.path=c\"", "index 2", "at most 1"});
  expect_contains(refused(yaml, {"data.train.first.path=c"}), {"'first'", "index"});
}

TEST(Config, OverridesThatAreNoneAreRefused) {
  expect_contains(refused(kSmall, {"seed"}), {"override \"seed\"", "key=value"});
  expect_contains(refused(kSmall, {"=3"}), {"key=value"});
  expect_contains(refused(kSmall, {"training..steps=3"}), {"empty name"});
  expect_contains(refused(kSmall, {"seed=[1"}), {"override \"seed=[1\"", "YAML"});
  expect_contains(refused(kSmall, {"training.steps.more=1"}), {"'more'", "run.yaml:2"});
  expect_contains(refused(kSmall, {"optmizer.learning_rate=1e-3"}),
                  {"override \"optmizer.learning_rate=1e-3\"", "unknown key 'optmizer'", "'optimizer'"});
  expect_contains(
      refused(kSmall, {"optimizer.learning_rate=-1"}),
      {"override \"optimizer.learning_rate=-1\": optimizer.learning_rate: expected a number above 0", "found -1"});
}

TEST(Config, ParallelMayBeLeftToThePlanner) {
  EXPECT_TRUE(good(std::string(kSmall) + "parallel: auto\n").parallel.automatic);
  EXPECT_TRUE(good(std::string(kSmall) + "parallel: {data: 2}\n", {"parallel=auto"}).parallel.automatic);
  EXPECT_FALSE(good(kSmall).parallel.automatic);
  expect_contains(refused(std::string(kSmall) + "parallel: fast\n"), {"run.yaml:3", "parallel", "a section or auto"});
}

TEST(Config, UnknownKeysNameTheNearest) {
  const auto expect_nearest = [](const std::string& yaml, const char* line, const char* key, const char* nearest) {
    expect_contains(refused(kSmall + yaml), {line, ("unknown key '" + std::string(key) + "'").c_str(),
                                             ("nearest known key is '" + std::string(nearest) + "'").c_str()});
  };
  expect_nearest("sead: 1\n", "run.yaml:3:", "sead", "seed");
  expect_nearest("optimizer:\n  type: adamw\n  learning_rat: 1\n", "run.yaml:5:", "optimizer.learning_rat",
                 "optimizer.learning_rate");
  expect_nearest("optimizer: {lr: 1}\n", "run.yaml:3:", "optimizer.lr", "optimizer.learning_rate");
  expect_nearest("learning_rate: 1\n", "run.yaml:3:", "learning_rate", "optimizer.learning_rate");
  expect_nearest("steps: 1\n", "run.yaml:3:", "steps", "training.steps");
  expect_nearest("schedule: {warmup: 5}\n", "run.yaml:3:", "schedule.warmup", "schedule.warmup_steps");
  expect_nearest("evaluation: {max_batch: 5}\n", "run.yaml:3:", "evaluation.max_batch", "evaluation.max_batches");
  expect_nearest("optimizer:\n  groups:\n    - {match: a}\n    - {match: b, weigth_decay: 0}\n",
                 "run.yaml:6:", "optimizer.groups.1.weigth_decay", "optimizer.groups.1.weight_decay");
  expect_nearest("data: {train: [{path: a, wieght: 2}]}\n", "run.yaml:3:", "data.train.0.wieght",
                 "data.train.0.weight");
  expect_nearest("monitor: {audit: {every_step: 2}}\n", "run.yaml:3:", "monitor.audit.every_step",
                 "monitor.audit.every_steps");
}

TEST(Config, ErrorsSayLineKeyExpectedAndFound) {
  EXPECT_EQ(
      refused("model: {preset: a}\ntraining:\n  steps: 5\n  global_batch_size: many\n"),
      "run.yaml:4: training.global_batch_size: expected a whole number from 1 to 16777216, found the string \"many\"");
  EXPECT_EQ(refused(std::string(kSmall) + "optimizer:\n  betas: [0.9, 1.0]\n"),
            "run.yaml:4: optimizer.betas: expected a list of two, each a number of at least 0 and below 1 or null, "
            "found a list of 2");
  EXPECT_EQ(refused(std::string(kSmall) + "recompute: {policy: some}\n"),
            "run.yaml:3: recompute.policy: expected none, selective, full or budget, found the string \"some\"");
  EXPECT_EQ(refused(std::string(kSmall) + "data: {train: [{weight: 1}]}\n").substr(0, 57),
            "run.yaml:3: the key 'data.train.0.path' is missing: expec");
  expect_contains(refused(std::string(kSmall) + "output_dir: 2024\n"),
                  {"output_dir", "a string", "quotes", "found 2024"});
  expect_contains(refused(std::string(kSmall) + "seed: \"42\"\n"), {"seed", "found the string \"42\""});
  expect_contains(refused(std::string(kSmall) + "data: [a]\n"),
                  {"run.yaml:3", "data", "expected a section", "a list of 1"});
  expect_contains(refused(std::string(kSmall) + "data: {packing: yes}\n"),
                  {"data.packing", "true or false", "\"yes\""});
  expect_contains(refused(std::string(kSmall) + "data: {train: a.txt}\n"), {"data.train", "a list of sections"});
  expect_contains(refused(std::string(kSmall) + "model: {}\n"), {"run.yaml:3", "'model' is given twice", "run.yaml:1"});
  expect_contains(refused("model: {preset: a, config: {x: .nan}}\ntraining: {steps: 1}\n"), {"model.config", "finite"});
}

TEST(Config, BrokenYamlIsRefusedWithItsLine) {
  expect_contains(refused("training:\n  steps: [1\n"), {"run.yaml:", "not valid YAML"});
  expect_contains(refused("training: {steps: 1}\ndata: {train: [{path: *.txt}]}\n"), {"run.yaml:2", "quotes"});
  expect_contains(refused("a: 1\n\tb: 2\n"), {"run.yaml:2", "not valid YAML"});
  expect_contains(refused("seed: 1\noutput_dir: \xC3\xA9\xF9\n"), {"run.yaml:2: the byte 0xf9 is not UTF-8"});
  expect_contains(refused("training: {steps: 1}\n---\nseed: 1\n"), {"run.yaml:2", "one YAML document"});
  for (const char* lonely : {",", "}", "]", "a: 1\n}"}) expect_contains(refused(lonely), {"run.yaml:"});
  expect_contains(refused("just words\n"), {"run.yaml:1", "sections"});
  expect_contains(refused("- a\n"), {"sections"});
  expect_contains(refused("a: &x [*x]\n"), {"nested"});
  expect_contains(refused("? [a, b]\n: 1\n"), {"a key must be a name"});
  expect_contains(refused(std::string(100000, '[')), {"run.yaml:1"});
  expect_contains(refused(""), {"exactly one of steps, epochs and tokens"});
}

TEST(Config, DamagedTextIsAnErrorOrAConfigurationNeverMore) {
  const std::string text = to_yaml(good(kSmall)) + "# *a &b ? : [ ] { } ! | > % @ `\n";
  for (uint64_t round = 0; round < 1500; ++round) {
    std::string damaged = text.substr(0, bounded_at(1, round, text.size()) + 1);
    for (uint64_t i = 0; i < 4; ++i)
      damaged[bounded_at(2, 4 * round + i, damaged.size())] = static_cast<char>(philox(3, 4 * round + i)[0] & 0x7f);
    const auto config = parse(damaged);
    EXPECT_TRUE(config.ok() || !config.error().message.empty());
  }
}

TEST(Config, AliasesThatMultiplyAreRefused) {
  std::string yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    yaml += fmt::format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j) yaml += fmt::format("{}*a{}", j ? ", " : "", i - 1);
    yaml += "]\n";
  }
  expect_contains(refused(yaml), {"values"});
}

TEST(Config, LengthIsSaidExactlyOnce) {
  const std::string model = "model: {preset: a}\n";
  expect_contains(refused(model), {"run.yaml", "exactly one of steps, epochs and tokens", "found 0"});
  expect_contains(refused(model + "training: {steps: 1, tokens: 5}\n"), {"found 2"});
  EXPECT_EQ(good(model + "training: {steps: 1}\n", {"training.steps=null", "training.epochs=0.5"}).training.epochs,
            0.5);
}

TEST(Config, ContradictionsAreRefused) {
  const auto fails = [](const std::vector<std::string>& overrides, std::initializer_list<const char*> parts) {
    expect_contains(refused(kSmall, overrides), parts);
  };
  fails({"training.global_batch_size=6", "training.micro_batch_size=4"}, {"global_batch_size is 6", "multiple of 4"});
  fails({"training.global_batch_size=6", "training.micro_batch_size=3", "parallel.data=4"}, {"multiple of 12"});
  fails({"training.global_batch_size=6", "parallel.data=4"}, {"multiple of 4"});
  fails({"parallel.micro_batches=3"}, {"parallel.micro_batches is 3"});
  fails({"parallel.micro_batches=2", "training.micro_batch_size=2"}, {"parallel.micro_batches is 2"});
  fails({"parallel.virtual_stages=2"}, {"virtual_stages", "interleaved"});
  fails({"parallel.pipeline_schedule=interleaved"}, {"virtual_stages"});
  fails({"schedule.warmup_steps=5", "schedule.warmup_ratio=0.1"}, {"warmup_steps", "warmup_ratio"});
  fails({"schedule.lr_scaling=linear"}, {"base_batch_size"});
  fails({"schedule.type=exponential", "schedule.min_lr_ratio=0"}, {"min_lr_ratio"});
  fails({"schedule.type=table"}, {"schedule.table"});
  fails({"schedule.type=constant", "schedule.decay_steps=5"}, {"decay_steps"});
  fails({"recompute.policy=budget"}, {"memory_budget"});
  fails({"recompute.policy=budget", "recompute.memory_budget=6GB", "training.mode=eager"}, {"eager", "none"});
  fails({"recompute.policy=full", "compile.disable_passes=[\"rec*\"]"}, {"disable_passes"});
  fails({"recompute.memory_budget=6GB"}, {"memory_budget", "none"});
  fails({"training.loss_scale.initial=2", "training.loss_scale.minimum=4"}, {"minimum 4", "initial 2"});
  fails({"training.loss_scale.initial=0.5"}, {"minimum 1", "initial 0.5"});
  fails({"training.loss_scale.minimum=1e-30"}, {"training.loss_scale.minimum", "1e-30"});
  fails({"monitor.grad_norm_range=[2, 1]"}, {"grad_norm_range"});
  fails({"tokenizer.train_vocab_size=512"}, {"tokenizer.path"});
  fails({"debug.dump=[x]"}, {"debug.steps"});
  fails({"model.path=a"}, {"model.path", "model.preset"});
  fails({"model.preset=null"}, {"nothing says which model"});
  fails({"model.init=pretrained"}, {"model.path"});
  good(kSmall,
       {"training.global_batch_size=12", "training.micro_batch_size=3", "parallel.data=2", "parallel.micro_batches=2"});
  good(kSmall, {"schedule.type=table", "schedule.table=[{step: 1, factor: 1}, {step: 9, factor: 0.5}]"});
  good(kSmall, {"training.global_batch_size=6", "training.micro_batch_size=4", "parallel=auto"});
}

TEST(Config, WritesWhatReadsBackEqual) {
  const std::vector<std::string> everything = {
      "output_dir='runs/ä \"q\" \\ x'",
      "threads=3",
      "model.config={a: [1, {b: 'x y'}], c: 1e-5, d: \"no\"}",
      "data.train=[{path: '*.txt', template: 'a: {b}, [c] #d'}, {path: null2, weight: 1e-3}]",
      "data.workers=0",
      "optimizer.learning_rate=0.1234567890123456",
      "optimizer.groups=[{match: '*.bias', weight_decay: 0}]",
      "schedule.type=table",
      "schedule.table=[{step: 1, factor: 0.3}]",
      "recompute.layers=[]",
      "training.freeze=['true', '12', '-', 'null', 'ok.name', 'multi\\nline', '~', '---']",
      "monitor.grad_norm_range=[0, 1e9]",
      "monitor.throughput_drop=0.5",
      "checkpoint.resume=never",
      "seed=9223372036854775807"};
  for (const RunConfig& config : {good(kSmall), good(kSmall, everything), good(kSmall, {"parallel=auto"})}) {
    const std::string yaml = to_yaml(config);
    const RunConfig again = good(yaml);
    EXPECT_TRUE(again == config) << yaml;
    EXPECT_EQ(to_yaml(again), yaml);
  }
  expect_contains(to_yaml(good(kSmall)),
                  {"output_dir: runs/demo\n", "\n  learning_rate: 0.0003\n", "\n  workers: auto\n", "\n  layers: all\n",
                   "\n  preset: llama-15m\n", "\n  audit:\n    every_steps: 0\n"});
}

TEST(Config, ReadsFilesAndSaysWhichIsMissing) {
  const fs::path path = fs::path(::testing::TempDir()) / "ingot_config_test.yaml";
  ASSERT_TRUE(write_file_atomic(path, std::string(kSmall) + "seed: x\n").ok());
  const auto bad = load_config(path);
  ASSERT_FALSE(bad.ok());
  expect_contains(bad.error().message, {(path.string() + ":3: seed").c_str()});
  const std::vector<std::string> overrides = {"seed=3"};
  EXPECT_EQ(load_config(path, overrides).value().seed, 3);
  fs::remove(path);
  const auto missing = load_config(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::input);
  expect_contains(missing.error().message, {path.string().c_str()});
  EXPECT_EQ(load_config(::testing::TempDir()).error().kind, ErrorKind::input);  // a directory
}

TEST(Config, Fp32OpsCanOnlyBeExtended) {
  const auto error = [](std::vector<std::string> overrides) {
    overrides.push_back("training.precision=bf16");
    return parse_config(kSmall, "c.yaml", overrides).error().message;
  };
  EXPECT_EQ(good(kSmall, {"training.precision=bf16"}).training.fp32_ops.size(), 4u);
  EXPECT_EQ(good(kSmall, {"training.precision=fp16", "training.fp32_ops=[norm,softmax,loss,activation,matmul]"})
                .training.fp32_ops.back(),
            "matmul");
  expect_contains(error({"training.fp32_ops=[norm,softmax,loss]"}), {"activation", "in every precision"});
  expect_contains(error({"training.fp32_ops=[norm,softmax,loss,activation,matmuls]"}), {"\"matmuls\"", "attention"});
  expect_contains(error({"compile.disable_passes=[lower_*]"}), {"lower_*", "training.precision=fp32"});
}

TEST(Config, WhatThisVersionLacksIsRefusedByName) {
  EXPECT_TRUE(check_supported(good(kSmall)).ok());
  EXPECT_TRUE(check_supported(good(kSmall, {"parallel=auto"})).ok());
  const auto fails = [](const std::string& text, std::initializer_list<const char*> parts) {
    const Status status = check_supported(good(kSmall, {text, "training.global_batch_size=16"}));
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_EQ(status.error().kind, ErrorKind::usage);
    expect_contains(status.error().message, parts);
    expect_contains(status.error().message, {"does not have", "set "});
  };
  for (const char* dimension : {"data", "tensor", "pipeline", "context"})
    fails(fmt::format("parallel.{}=2", dimension), {"2 ranks", dimension});
  fails("parallel.zero_stage=1", {"zero_stage 1"});
  fails("parallel.sequence_parallel=true", {"sequence_parallel"});
  fails("monitor.audit.every_steps=5", {"monitor.audit"});
  fails("monitor.gradient_consistency.every_steps=5", {"gradient_consistency"});
  expect_contains(refused(kSmall, {"optimizer.type=sgd"}),
                  {"optimizer.type", "expected adamw, lion, adafactor, muon or adamw_8bit"});
}

TEST(Config, EachOptimizerTakesItsOwnValuesAndRefusesOthersKeys) {
  const OptimizerSection lion = good(kSmall, {"optimizer.type=lion"}).optimizer;
  EXPECT_EQ(lion.betas, (std::array{0.9, 0.99}));
  EXPECT_FALSE(lion.eps.has_value());
  EXPECT_EQ(good(kSmall, {"optimizer.type=lion", "optimizer.betas=[0.95, 0.98]"}).optimizer.betas,
            (std::array{0.95, 0.98}));
  const OptimizerSection muon = good(kSmall, {"optimizer.type=muon"}).optimizer;
  EXPECT_EQ(muon.momentum, 0.95);
  EXPECT_EQ(muon.betas, (std::array{0.9, 0.95}));
  EXPECT_EQ(muon.eps, 1e-8);
  EXPECT_TRUE(good(kSmall, {"optimizer.type=adafactor", "optimizer.relative_step=true"}).optimizer.relative_step);
  EXPECT_EQ(good(kSmall, {"optimizer.type=adamw_8bit"}).optimizer.betas, (std::array{0.9, 0.95}));
  for (const auto& [type, key] : {std::pair{"lion", "eps=1e-6"}, std::pair{"adafactor", "betas=[0.9, 0.99]"},
                                  std::pair{"adafactor", "eps=1e-6"}, std::pair{"adamw", "momentum=0.9"},
                                  std::pair{"adamw_8bit", "momentum=0.9"}, std::pair{"muon", "relative_step=true"}}) {
    const std::string name = std::string(key).substr(0, std::string(key).find('='));
    expect_contains(refused(kSmall, {fmt::format("optimizer.type={}", type), fmt::format("optimizer.{}", key)}),
                    {("optimizer." + name).c_str(), type, "does not read it"});
  }
  // The configuration as it is written reads back, the keys of others being null in it.
  for (const char* type : {"adamw", "lion", "adafactor", "muon", "adamw_8bit"}) {
    const RunConfig config = good(kSmall, {fmt::format("optimizer.type={}", type)});
    EXPECT_TRUE(good(to_yaml(config)) == config) << type;
  }
}

TEST(Config, UnusualChoicesAreNoted) {
  EXPECT_TRUE(unusual_choices(good(kSmall)).empty());
  for (const char* text : {"schedule.warmup_steps=101", "optimizer.learning_rate=0.5", "training.max_grad_norm=0",
                           "schedule.base_batch_size=8", "data.document_mask=false", "training.loss_scale.initial=4"})
    EXPECT_EQ(unusual_choices(good(kSmall, {text})).size(), 1u) << text;
  EXPECT_TRUE(unusual_choices(good(kSmall, {"training.loss_scale.initial=4", "training.precision=fp16"})).empty());
  EXPECT_EQ(unusual_choices(good(kSmall, {"training.mode=eager", "recompute.policy=full"})).size(), 1u);
}

TEST(Config, StepsFollowFromTheSequencesThatThereAre) {
  EXPECT_EQ(total_steps(good(kSmall), 3), 100);
  const auto steps = [](const std::string& length, int64_t sequences) {
    return total_steps(good("model: {preset: a}\n", {length, "training.global_batch_size=8",
                                                     "training.micro_batch_size=2", "data.sequence_length=128"}),
                       sequences);
  };
  EXPECT_EQ(steps("training.epochs=1", 80), 10);  // optimizer steps: four micro-batches are one
  EXPECT_EQ(steps("training.epochs=1", 81), 11);
  EXPECT_EQ(steps("training.epochs=3", 80), 30);
  EXPECT_EQ(steps("training.epochs=0.1", 80), 1);
  EXPECT_EQ(steps("training.epochs=0.3", 80), 3);
  EXPECT_EQ(steps("training.epochs=1", 1), 1);
  EXPECT_EQ(steps("training.tokens=10240", 1), 10);
  EXPECT_EQ(steps("training.tokens=10241", 1), 11);
  EXPECT_EQ(steps("training.tokens=1", 1), 1);
}

}  // namespace
}  // namespace ingot
