// The configuration of a run: plain structs that mirror the YAML file, its reading, checking and writing.
// The keys, their types, ranges and spellings are described once, in config_fields.cc; defaults are the initializers
// here.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "optim/loss_scale.h"
#include "optim/optimizer.h"
#include "optim/parameter_groups.h"
#include "optim/schedule.h"

namespace ingot {

// The first of each is the default.
enum class ModelInit { pretrained, random };
enum class Precision { fp32, bf16, fp16 };
enum class ExecutionMode { graph, eager };
enum class RecomputePolicy { none, selective, full, budget };
enum class PipelineSchedule { one_forward_one_backward, gpipe, interleaved, zero_bubble };
enum class OnNan { stop, skip };

// As the configuration spells them ("bf16").
std::string_view name_of(Precision precision);
DType dtype_of(Precision precision);  // what values between ops are stored in
std::string_view name_of(ExecutionMode mode);
std::string_view name_of(RecomputePolicy policy);
std::string_view name_of(ScheduleType type);
std::string_view name_of(OptimizerType type);

struct ModelSection {
  std::optional<std::string> path;    // directory with config.json [+ weights]
  std::optional<std::string> preset;  // not both
  std::string config = "{}";          // a JSON object with Hugging Face's keys; overrides preset and path
  std::optional<ModelInit> init;      // null: pretrained where path has weights, else random
  bool operator==(const ModelSection&) const = default;
};

struct TokenizerSection {
  std::optional<std::string> path;          // null: model.path's own
  std::optional<int64_t> train_vocab_size;  // trains one on data.train where path does not exist
  bool operator==(const TokenizerSection&) const = default;
};

struct DataSource {
  std::string path;
  double weight = 1.0;
  std::string text_key = "text";
  std::optional<std::string> template_text;  // key `template`
  bool operator==(const DataSource&) const = default;
};

struct DataSection {
  std::vector<DataSource> train;
  std::vector<DataSource> validation;
  double validation_fraction = 0.0;
  int64_t sequence_length = 1024;
  bool packing = true;
  bool document_mask = true;
  bool shuffle = true;
  int64_t prefetch_batches = 4;
  std::optional<int64_t> workers;  // key value `auto`
  bool operator==(const DataSection&) const = default;
};

using LossScaleSection = LossScaleConfig;

struct TrainingSection {
  std::optional<int64_t> steps;  // of steps, epochs and tokens exactly one is set
  std::optional<double> epochs;
  std::optional<int64_t> tokens;
  int64_t global_batch_size = 8;
  std::optional<int64_t> micro_batch_size;  // null: the largest that fits the plan
  Precision precision = Precision::fp32;
  std::vector<std::string> fp32_ops = {"norm", "softmax", "loss", "activation"};
  LossScaleSection loss_scale;
  double max_grad_norm = 1.0;  // 0: off
  ExecutionMode mode = ExecutionMode::graph;
  std::vector<std::string> freeze;  // patterns on tensor names
  bool operator==(const TrainingSection&) const = default;
};

struct CompileSection {
  std::vector<std::string> disable_passes;
  std::vector<std::string> no_fuse;
  bool operator==(const CompileSection&) const = default;
};

struct OptimizerSection {
  OptimizerType type = OptimizerType::adamw;
  double learning_rate = 3.0e-4;
  // null: the type's own, which parse_config fills in. Keys that the type does not read must be null or false.
  std::optional<std::array<double, 2>> betas;
  std::optional<double> eps;
  std::optional<double> momentum;
  bool relative_step = false;  // adafactor: steps relative to the parameter's root mean square
  double weight_decay = 0.1;
  std::vector<ParameterGroupRule> groups;
  OptimizerConfig resolved() const;  // with the type's own values where they are null
  bool operator==(const OptimizerSection&) const = default;
};

using ScheduleSection = ScheduleConfig;

struct RecomputeSection {
  RecomputePolicy policy = RecomputePolicy::none;
  std::optional<std::vector<int64_t>> layers;  // key value `all`
  std::optional<int64_t> memory_budget;        // bytes; also written "6GB", "512MiB"
  bool operator==(const RecomputeSection&) const = default;
};

struct ParallelSection {
  bool automatic = false;  // `parallel: auto`: everything below is left to the planner
  int64_t data = 1;
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t context = 1;
  int64_t zero_stage = 0;
  bool sequence_parallel = false;
  std::optional<int64_t> micro_batches;  // null: global ÷ (micro × data)
  PipelineSchedule pipeline_schedule = PipelineSchedule::one_forward_one_backward;
  int64_t virtual_stages = 1;
  double bucket_mb = 16;
  bool overlap = true;
  double timeout_s = 300;
  int64_t ranks() const { return data * tensor * pipeline * context; }
  bool operator==(const ParallelSection&) const = default;
};

enum class ResumeMode { automatic, never, path };

struct CheckpointSection {
  int64_t every_steps = 500;  // 0: never
  std::optional<double> every_minutes;
  int64_t keep = 5;
  bool async = true;
  std::string resume = "auto";  // or "never", or a checkpoint's directory
  ResumeMode resume_mode() const {
    if (resume == "auto") return ResumeMode::automatic;
    return resume == "never" ? ResumeMode::never : ResumeMode::path;
  }
  bool operator==(const CheckpointSection&) const = default;
};

struct EvaluationSection {
  int64_t every_steps = 500;  // 0: never
  int64_t max_batches = 50;
  bool operator==(const EvaluationSection&) const = default;
};

struct LoggingSection {
  int64_t every_steps = 10;  // 0: never
  bool tensorboard = true;
  bool operator==(const LoggingSection&) const = default;
};

struct ProfileSection {
  std::optional<int64_t> start_step;
  int64_t steps = 3;
  bool operator==(const ProfileSection&) const = default;
};

struct DebugSection {
  std::vector<std::string> dump;  // patterns on tensor names
  std::vector<int64_t> steps;
  bool operator==(const DebugSection&) const = default;
};

struct GradientConsistencySection {
  int64_t every_steps = 0;
  double threshold = 1.0e-4;
  bool operator==(const GradientConsistencySection&) const = default;
};

struct AuditSection {
  int64_t every_steps = 0;
  bool operator==(const AuditSection&) const = default;
};

struct MonitorSection {
  OnNan on_nan = OnNan::stop;
  int64_t max_consecutive_skips = 10;
  std::optional<double> loss_spike;                      // warn above this factor of the running median
  std::optional<std::array<double, 2>> grad_norm_range;  // warn outside [low, high]
  std::optional<double> throughput_drop;  // warn where the rate falls by more than this part of its median
  GradientConsistencySection gradient_consistency;
  AuditSection audit;
  bool operator==(const MonitorSection&) const = default;
};

struct RunConfig {
  std::string output_dir = "runs/demo";
  int64_t seed = 42;
  std::optional<int64_t> threads;
  ModelSection model;
  TokenizerSection tokenizer;
  DataSection data;
  TrainingSection training;
  CompileSection compile;
  OptimizerSection optimizer;
  ScheduleSection schedule;
  RecomputeSection recompute;
  ParallelSection parallel;
  CheckpointSection checkpoint;
  EvaluationSection evaluation;
  LoggingSection logging;
  ProfileSection profile;
  DebugSection debug;
  MonitorSection monitor;
  bool operator==(const RunConfig&) const = default;
};

// Reads a configuration file, applies the overrides in order ("optimizer.learning_rate=3e-4",
// "data.train.0.path=a.txt", "parallel=auto"; what follows the first `=` is YAML, and an index that equals a list's
// size appends), and checks keys, types, ranges and what must hold between keys. Errors: input where the file cannot be
// read; else usage, one message that says file and line (or the override), key, what was expected and what was found.
Result<RunConfig> load_config(const std::filesystem::path& path, std::span<const std::string> overrides = {});
// The same from text; `name` stands for the file in messages.
Result<RunConfig> parse_config(std::string_view yaml, std::string_view name,
                               std::span<const std::string> overrides = {});

// Every key with its value, in YAML that parse_config reads back to an equal configuration.
std::string to_yaml(const RunConfig& config);

// What must hold between keys, as load_config checks it: for configurations that were built in code.
Status check_consistent(const RunConfig& config);
// Refuses what this version does not have (usage error: what, and what to set instead), so that nothing is ignored
// silently.
Status check_supported(const RunConfig& config);
// Choices that are allowed but unusual, one sentence each.
std::vector<std::string> unusual_choices(const RunConfig& config);

// Optimizer steps of the run. sequences_per_epoch: the packed sequences (or rows) that the training data really has; it
// matters for epochs only. epochs and tokens are rounded up to whole steps, and there is at least one.
int64_t total_steps(const RunConfig& config, int64_t sequences_per_epoch);

// A key of the configuration as documentation and tests need it. Elements of lists of sections stand at index 0
// ("data.train.0.path").
struct ConfigKey {
  std::string path;
  std::string expected;       // "a whole number from 1 to 16777216"
  std::string default_value;  // as YAML; "" where the key must be given
};
std::vector<ConfigKey> config_keys();

}  // namespace ingot
