#include "train/config_fields.h"

#include <limits>

#include "train/config_codec.h"

namespace ingot {
namespace {

// In the order of the enumerators.
constexpr std::string_view kModelInits[] = {"pretrained", "random"};
constexpr std::string_view kPrecisions[] = {"fp32", "bf16", "fp16"};
constexpr std::string_view kModes[] = {"graph", "eager"};
constexpr std::string_view kOptimizers[] = {"adamw", "lion", "adafactor", "muon", "adamw_8bit"};
constexpr std::string_view kSchedules[] = {"cosine",       "linear",      "constant", "wsd",
                                           "inverse_sqrt", "exponential", "table"};
constexpr std::string_view kScalings[] = {"none", "linear", "sqrt"};
constexpr std::string_view kPolicies[] = {"none", "selective", "full", "budget"};
constexpr std::string_view kPipelines[] = {"1f1b", "gpipe", "interleaved", "zero_bubble"};
constexpr std::string_view kOnNan[] = {"stop", "skip"};

// Upper ends of ranges: beyond any real use, low enough that no sum or product of them overflows.
constexpr int64_t kMaxSteps = 1'000'000'000'000;
constexpr int64_t kMaxTokens = 1'000'000'000'000'000;
constexpr int64_t kMaxBatch = 1 << 24;
constexpr int64_t kMaxRanks = 16384;
constexpr int64_t kMaxVocabulary = 1 << 24;
constexpr double kMaxNorm = 1e9;

}  // namespace

std::string_view name_of(Precision precision) {
  return kPrecisions[static_cast<size_t>(precision)];
}
DType dtype_of(Precision precision) {
  if (precision == Precision::fp32) return DType::f32;
  return precision == Precision::bf16 ? DType::bf16 : DType::f16;
}
std::string_view name_of(ExecutionMode mode) {
  return kModes[static_cast<size_t>(mode)];
}
std::string_view name_of(RecomputePolicy policy) {
  return kPolicies[static_cast<size_t>(policy)];
}
std::string_view name_of(ScheduleType type) {
  return kSchedules[static_cast<size_t>(type)];
}
std::string_view name_of(OptimizerType type) {
  return kOptimizers[static_cast<size_t>(type)];
}

namespace config {
namespace {

constexpr Bounds from(double low, double high) {
  return {low, high};
}
constexpr Bounds above(double low, double high) {
  return {low, high, true};
}
constexpr Bounds below(double low, double high) {
  return {low, high, false, true};
}
constexpr Bounds between(double low, double high) {
  return {low, high, true, true};
}

// Gives the visitor one field after the other.
class Walk {
 public:
  explicit Walk(FieldVisitor& visitor) : visitor_(visitor) {}

  template <class T>
  void field(std::string_view key, T& target, const Codec<T>& codec) {
    give(key, target, codec, false);
  }
  template <class T>
  void required(std::string_view key, T& target, const Codec<T>& codec) {
    give(key, target, codec, true);
  }
  template <class Section>
  void section(std::string_view key, Section& target) {
    visitor_.section(key, nullptr, [&] { fields(*this, target); });
  }
  template <class Section>
  void section(std::string_view key, Section& target, bool& automatic) {
    visitor_.section(key, &automatic, [&] { fields(*this, target); });
  }
  template <class Element>
  void list(std::string_view key, std::vector<Element>& target) {
    visitor_.list(
        key, target.size(), [&](size_t size) { target.resize(size); }, [&](size_t i) { fields(*this, target[i]); });
  }

 private:
  template <class T>
  void give(std::string_view key, T& target, const Codec<T>& codec, bool required) {
    visitor_.field({key, codec.expected, required, [&](const Value& value) { return codec.read(value, target); },
                    [&] { return codec.write(target); }});
  }

  FieldVisitor& visitor_;
};

void fields(Walk& walk, ModelSection& s) {
  walk.field("path", s.path, optional_of(text()));
  walk.field("preset", s.preset, optional_of(text()));
  walk.field("config", s.config, json_object());
  walk.field("init", s.init, optional_of(one_of<ModelInit>(kModelInits)));
}

void fields(Walk& walk, TokenizerSection& s) {
  walk.field("path", s.path, optional_of(text()));
  walk.field("train_vocab_size", s.train_vocab_size, optional_of(integer(256, kMaxVocabulary)));
}

void fields(Walk& walk, DataSource& s) {
  walk.required("path", s.path, text());
  walk.field("weight", s.weight, real(above(0, 1e9)));
  walk.field("text_key", s.text_key, text());
  walk.field("template", s.template_text, optional_of(text()));
}

void fields(Walk& walk, DataSection& s) {
  walk.list("train", s.train);
  walk.list("validation", s.validation);
  walk.field("validation_fraction", s.validation_fraction, real(below(0, 1)));
  walk.field("sequence_length", s.sequence_length, integer(2, 1 << 24));
  walk.field("packing", s.packing, boolean());
  walk.field("document_mask", s.document_mask, boolean());
  walk.field("shuffle", s.shuffle, boolean());
  walk.field("prefetch_batches", s.prefetch_batches, integer(0, 4096));
  walk.field("workers", s.workers, optional_of(integer(0, 256), "auto"));
}

void fields(Walk& walk, LossScaleSection& s) {
  walk.field("initial", s.initial, real(from(LossScaler::kSmallest, LossScaler::kLargest)));
  walk.field("growth_interval", s.growth_interval, integer(1, kMaxSteps));
  walk.field("minimum", s.minimum, real(from(LossScaler::kSmallest, LossScaler::kLargest)));
}

void fields(Walk& walk, TrainingSection& s) {
  walk.field("steps", s.steps, optional_of(integer(1, kMaxSteps)));
  walk.field("epochs", s.epochs, optional_of(real(above(0, 1e6))));
  walk.field("tokens", s.tokens, optional_of(integer(1, kMaxTokens)));
  walk.field("global_batch_size", s.global_batch_size, integer(1, kMaxBatch));
  walk.field("micro_batch_size", s.micro_batch_size, optional_of(integer(1, kMaxBatch)));
  walk.field("precision", s.precision, one_of<Precision>(kPrecisions));
  walk.field("fp32_ops", s.fp32_ops, list_of(text()));
  walk.section("loss_scale", s.loss_scale);
  walk.field("max_grad_norm", s.max_grad_norm, real(from(0, kMaxNorm)));
  walk.field("mode", s.mode, one_of<ExecutionMode>(kModes));
  walk.field("freeze", s.freeze, list_of(text()));
}

void fields(Walk& walk, CompileSection& s) {
  walk.field("disable_passes", s.disable_passes, list_of(text()));
  walk.field("no_fuse", s.no_fuse, list_of(text()));
}

void fields(Walk& walk, ParameterGroupRule& s) {
  walk.required("match", s.match, text());
  walk.field("weight_decay", s.weight_decay, optional_of(real(from(0, 100))));
  walk.field("learning_rate_scale", s.learning_rate_scale, real(from(0, 1e6)));
  walk.field("max_grad_norm", s.max_grad_norm, optional_of(real(from(0, kMaxNorm))));
}

void fields(Walk& walk, OptimizerSection& s) {
  walk.field("type", s.type, one_of<OptimizerType>(kOptimizers));
  walk.field("learning_rate", s.learning_rate, real(above(0, 100)));
  walk.field("betas", s.betas, optional_of(pair_of(real(below(0, 1)))));
  walk.field("eps", s.eps, optional_of(real(above(0, 1))));
  walk.field("momentum", s.momentum, optional_of(real(below(0, 1))));
  walk.field("relative_step", s.relative_step, boolean());
  walk.field("weight_decay", s.weight_decay, real(from(0, 100)));
  walk.list("groups", s.groups);
}

void fields(Walk& walk, SchedulePoint& s) {
  walk.required("step", s.step, integer(0, kMaxSteps));
  walk.required("factor", s.factor, real(from(0, 1e6)));
}

void fields(Walk& walk, ScheduleSection& s) {
  walk.field("type", s.type, one_of<ScheduleType>(kSchedules));
  walk.field("warmup_steps", s.warmup_steps, integer(0, kMaxSteps));
  walk.field("warmup_ratio", s.warmup_ratio, optional_of(real(from(0, 1))));
  walk.field("min_lr_ratio", s.min_lr_ratio, real(from(0, 1)));
  walk.field("decay_steps", s.decay_steps, optional_of(integer(1, kMaxSteps)));
  walk.field("lr_scaling", s.lr_scaling, one_of<RateScaling>(kScalings));
  walk.field("base_batch_size", s.base_batch_size, optional_of(integer(1, kMaxBatch)));
  walk.list("table", s.table);
}

void fields(Walk& walk, RecomputeSection& s) {
  walk.field("policy", s.policy, one_of<RecomputePolicy>(kPolicies));
  walk.field("layers", s.layers, optional_of(list_of(integer(0, 65535)), "all"));
  walk.field("memory_budget", s.memory_budget, optional_of(byte_size()));
}

void fields(Walk& walk, ParallelSection& s) {
  walk.field("data", s.data, integer(1, kMaxRanks));
  walk.field("tensor", s.tensor, integer(1, kMaxRanks));
  walk.field("pipeline", s.pipeline, integer(1, kMaxRanks));
  walk.field("context", s.context, integer(1, kMaxRanks));
  walk.field("zero_stage", s.zero_stage, integer(0, 3));
  walk.field("sequence_parallel", s.sequence_parallel, boolean());
  walk.field("micro_batches", s.micro_batches, optional_of(integer(1, kMaxBatch)));
  walk.field("pipeline_schedule", s.pipeline_schedule, one_of<PipelineSchedule>(kPipelines));
  walk.field("virtual_stages", s.virtual_stages, integer(1, 1024));
  walk.field("bucket_mb", s.bucket_mb, real(above(0, 65536)));
  walk.field("overlap", s.overlap, boolean());
  walk.field("timeout_s", s.timeout_s, real(above(0, 1e6)));
}

void fields(Walk& walk, CheckpointSection& s) {
  walk.field("every_steps", s.every_steps, integer(0, kMaxSteps));
  walk.field("every_minutes", s.every_minutes, optional_of(real(above(0, 1e6))));
  walk.field("keep", s.keep, integer(1, 1'000'000));
  walk.field("async", s.async, boolean());
  walk.field("resume", s.resume, text());
}

void fields(Walk& walk, EvaluationSection& s) {
  walk.field("every_steps", s.every_steps, integer(0, kMaxSteps));
  walk.field("max_batches", s.max_batches, integer(1, 1'000'000'000));
}

void fields(Walk& walk, LoggingSection& s) {
  walk.field("every_steps", s.every_steps, integer(0, kMaxSteps));
  walk.field("tensorboard", s.tensorboard, boolean());
}

void fields(Walk& walk, ProfileSection& s) {
  walk.field("start_step", s.start_step, optional_of(integer(1, kMaxSteps)));
  walk.field("steps", s.steps, integer(1, 10000));
}

void fields(Walk& walk, DebugSection& s) {
  walk.field("dump", s.dump, list_of(text()));
  walk.field("steps", s.steps, list_of(integer(1, kMaxSteps)));
}

void fields(Walk& walk, GradientConsistencySection& s) {
  walk.field("every_steps", s.every_steps, integer(0, kMaxSteps));
  walk.field("threshold", s.threshold, real(above(0, 1)));
}

void fields(Walk& walk, AuditSection& s) {
  walk.field("every_steps", s.every_steps, integer(0, kMaxSteps));
}

void fields(Walk& walk, MonitorSection& s) {
  walk.field("on_nan", s.on_nan, one_of<OnNan>(kOnNan));
  walk.field("max_consecutive_skips", s.max_consecutive_skips, integer(0, 1'000'000));
  walk.field("loss_spike", s.loss_spike, optional_of(real(above(1, 1e6))));
  walk.field("grad_norm_range", s.grad_norm_range, optional_of(pair_of(real(from(0, kMaxNorm)))));
  walk.field("throughput_drop", s.throughput_drop, optional_of(real(between(0, 1))));
  walk.section("gradient_consistency", s.gradient_consistency);
  walk.section("audit", s.audit);
}

}  // namespace

void visit_fields(RunConfig& c, FieldVisitor& visitor) {
  Walk walk(visitor);
  walk.field("output_dir", c.output_dir, text());
  walk.field("seed", c.seed, integer(0, std::numeric_limits<int64_t>::max()));
  walk.field("threads", c.threads, optional_of(integer(1, 4096)));
  walk.section("model", c.model);
  walk.section("tokenizer", c.tokenizer);
  walk.section("data", c.data);
  walk.section("training", c.training);
  walk.section("compile", c.compile);
  walk.section("optimizer", c.optimizer);
  walk.section("schedule", c.schedule);
  walk.section("recompute", c.recompute);
  walk.section("parallel", c.parallel, c.parallel.automatic);
  walk.section("checkpoint", c.checkpoint);
  walk.section("evaluation", c.evaluation);
  walk.section("logging", c.logging);
  walk.section("profile", c.profile);
  walk.section("debug", c.debug);
  walk.section("monitor", c.monitor);
}

}  // namespace config
}  // namespace ingot
