// What must hold between keys, what this version does not have, and what is allowed but unusual.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/glob.h"
#include "passes/lower_precision.h"
#include "train/config.h"
#include "train/config_optimizer.h"

namespace ingot {
namespace {

Status check_length(const TrainingSection& training) {
  const int given = training.steps.has_value() + training.epochs.has_value() + training.tokens.has_value();
  if (given == 1) return {};
  return usage_error("training: exactly one of steps, epochs and tokens says how long to train, found {}: {}", given,
                     given == 0 ? "set one, such as training.steps=1000" : "set the others to null");
}

Status check_model(const ModelSection& model) {
  if (model.path && model.preset)
    return usage_error("model.path '{}' and model.preset '{}' both name the model: keep one of them", *model.path,
                       *model.preset);
  if (!model.path && !model.preset && model.config == "{}")
    return usage_error(
        "model: nothing says which model to train: set model.preset, model.path or the keys in model.config");
  if (model.init == ModelInit::pretrained && !model.path)
    return usage_error("model.init pretrained needs model.path, the directory with the weights");
  return {};
}

// micro_batches is what the pipeline cuts the rank's batch into; without it the batch is cut by micro_batch_size alone.
Status check_batch(const TrainingSection& training, const ParallelSection& parallel) {
  if (parallel.automatic) return {};
  const int64_t global = training.global_batch_size, micro = training.micro_batch_size.value_or(1);
  if (global % (micro * parallel.data) != 0)
    return usage_error(
        "training.global_batch_size is {}: expected a multiple of {}, which is training.micro_batch_size {} "
        "× parallel.data {}",
        global, micro * parallel.data, micro, parallel.data);
  if (!parallel.micro_batches) return {};
  const int64_t unit = *parallel.micro_batches * parallel.data;
  const bool fits = training.micro_batch_size ? global == unit * micro : global % unit == 0;
  if (fits) return {};
  return usage_error(
      "parallel.micro_batches is {}, but training.global_batch_size {} is not {} micro-batches × {} "
      "data-parallel ranks × a micro-batch of {}; null takes what fits",
      *parallel.micro_batches, global, *parallel.micro_batches, parallel.data,
      training.micro_batch_size ? fmt::format("{}", micro) : "any whole size");
}

Status check_parallel(const ParallelSection& parallel) {
  const bool interleaved = parallel.pipeline_schedule == PipelineSchedule::interleaved;
  if (interleaved != (parallel.virtual_stages > 1))
    return usage_error(
        "parallel.virtual_stages is {}: expected more than 1 with parallel.pipeline_schedule interleaved, "
        "and 1 with any other",
        parallel.virtual_stages);
  return {};
}

Status check_recompute(const RecomputeSection& recompute, ExecutionMode mode) {
  if (recompute.policy == RecomputePolicy::budget && mode == ExecutionMode::eager)
    return usage_error(
        "recompute.policy budget needs training.mode graph: eager runs the plain ops one by one and keeps all that "
        "they "
        "compute; set recompute.policy=none to look at a run in eager mode");
  if ((recompute.policy == RecomputePolicy::budget) == recompute.memory_budget.has_value()) return {};
  return usage_error(
      "recompute.memory_budget must be set where recompute.policy is budget, and only there; the policy is {}",
      name_of(recompute.policy));
}

Status check_precision(const RunConfig& config) {
  INGOT_TRY(check_fp32_ops(config.training.fp32_ops));
  if (config.training.precision == Precision::fp32) return {};
  for (const std::string& pattern : config.compile.disable_passes)
    if (glob_match(pattern, "lower_precision"))
      return usage_error(
          "compile.disable_passes \"{}\" switches off the pass lower_precision, which training.precision {} "
          "is made by: set training.precision=fp32 instead",
          pattern, name_of(config.training.precision));
  return {};
}

Status check_rest(const RunConfig& config) {
  const auto& off = config.compile.disable_passes;
  if (config.recompute.policy != RecomputePolicy::none &&
      std::ranges::any_of(off, [](const std::string& glob) { return glob_match(glob, "recompute"); }))
    return usage_error(
        "recompute.policy {} and compile.disable_passes contradict each other: the pass recompute is off",
        name_of(config.recompute.policy));
  if (config.tokenizer.train_vocab_size && !config.tokenizer.path)
    return usage_error("tokenizer.train_vocab_size needs tokenizer.path, where the trained tokenizer is written");
  const LossScaleSection& scale = config.training.loss_scale;
  INGOT_TRY(check_precision(config));
  if (scale.minimum > scale.initial)
    return usage_error("training.loss_scale.minimum {} is above training.loss_scale.initial {}", scale.minimum,
                       scale.initial);
  if (const auto& range = config.monitor.grad_norm_range; range && (*range)[0] >= (*range)[1])
    return usage_error("monitor.grad_norm_range is [{}, {}]: expected the lower end first", (*range)[0], (*range)[1]);
  if (config.debug.dump.empty() != config.debug.steps.empty())
    return usage_error("debug.dump and debug.steps belong together (which tensors, at which steps), but only {} is set",
                       config.debug.dump.empty() ? "debug.steps" : "debug.dump");
  return {};
}

struct Missing {
  bool asked;
  std::string what;
  std::string instead;
};

std::vector<Missing> missing_features(const RunConfig& c) {
  const ParallelSection& p = c.parallel;
  return {
      {p.ranks() > 1,
       fmt::format("a layout of {} ranks (parallel.data {} × tensor {} × pipeline {} × context {})", p.ranks(), p.data,
                   p.tensor, p.pipeline, p.context),
       "all of them to 1"},
      {p.zero_stage > 0, fmt::format("parallel.zero_stage {}", p.zero_stage), "parallel.zero_stage=0"},
      {p.sequence_parallel, "parallel.sequence_parallel", "parallel.sequence_parallel=false"},
      {c.monitor.gradient_consistency.every_steps > 0, "monitor.gradient_consistency, which compares ranks",
       "monitor.gradient_consistency.every_steps=0"},
      {c.monitor.audit.every_steps > 0, "monitor.audit, which compares ranks", "monitor.audit.every_steps=0"},
  };
}

}  // namespace

Status check_consistent(const RunConfig& config) {
  INGOT_TRY(check_length(config.training));
  INGOT_TRY(check_model(config.model));
  INGOT_TRY(check_batch(config.training, config.parallel));
  INGOT_TRY(check_parallel(config.parallel));
  INGOT_TRY(check_recompute(config.recompute, config.training.mode));
  INGOT_TRY(check_schedule(config.schedule));
  INGOT_TRY(check_optimizer(config.optimizer));
  return check_rest(config);
}

Status check_supported(const RunConfig& config) {
  for (const Missing& feature : missing_features(config))
    if (feature.asked)
      return usage_error("this version of ingot does not have {}: set {}", feature.what, feature.instead);
  return {};
}

std::vector<std::string> unusual_choices(const RunConfig& config) {
  std::vector<std::string> notes;
  const ScheduleSection& schedule = config.schedule;
  const auto& steps = config.training.steps;
  if (steps && schedule.warmup_steps > *steps)
    notes.push_back(
        fmt::format("schedule.warmup_steps {} is more than training.steps {}: the rate never reaches its peak",
                    schedule.warmup_steps, *steps));
  if (config.optimizer.learning_rate > 0.01)
    notes.push_back(
        fmt::format("optimizer.learning_rate {} is far above what transformers usually train with (1e-5 to 1e-3)",
                    config.optimizer.learning_rate));
  if (config.recompute.policy != RecomputePolicy::none && config.training.mode == ExecutionMode::eager)
    notes.push_back(fmt::format("recompute.policy {} has no effect in training.mode eager, which keeps everything",
                                name_of(config.recompute.policy)));
  if (config.training.precision != Precision::fp16 && config.training.loss_scale != LossScaleSection())
    notes.push_back(fmt::format("training.loss_scale has no effect in training.precision {}, which needs no scale",
                                name_of(config.training.precision)));
  if (config.training.max_grad_norm == 0) notes.push_back("training.max_grad_norm 0 turns clipping off");
  if (schedule.base_batch_size && schedule.lr_scaling == RateScaling::none)
    notes.push_back("schedule.base_batch_size has no effect while schedule.lr_scaling is none");
  if (!config.data.validation.empty() && config.data.validation_fraction > 0)
    notes.push_back("data.validation_fraction has no effect while data.validation names files");
  if (config.data.packing && !config.data.document_mask)
    notes.push_back("data.document_mask false lets tokens attend to the documents packed before theirs");
  return notes;
}

int64_t total_steps(const RunConfig& config, int64_t sequences_per_epoch) {
  const TrainingSection& training = config.training;
  if (training.steps) return *training.steps;
  const int64_t batch = training.global_batch_size;
  if (training.tokens) {
    const int64_t tokens_per_step = batch * config.data.sequence_length;
    return (*training.tokens + tokens_per_step - 1) / tokens_per_step;
  }
  INGOT_CHECK(training.epochs && sequences_per_epoch >= 1, "epochs of {} sequences", sequences_per_epoch);
  const double sequences = *training.epochs * static_cast<double>(sequences_per_epoch);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(sequences / static_cast<double>(batch) * (1 - 1e-12))));
}

}  // namespace ingot
