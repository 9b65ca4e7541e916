#include "train/trainer.h"

#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/log.h"
#include "base/system.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "kernels/peak/peak.h"
#include "optim/loss_scale.h"
#include "optim/schedule.h"
#include "train/config_changes.h"
#include "train/debug_dump.h"
#include "train/evaluation.h"
#include "train/metrics.h"
#include "train/model_directory.h"
#include "train/monitors.h"
#include "train/non_finite.h"
#include "train/progress.h"
#include "train/run_profile.h"
#include "train/signals.h"
#include "train/tensorboard.h"

namespace ingot {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

// A step's figures before they are judged and written.
struct StepOutcome {
  double loss = 0, grad_norm = 0, learning_rate = 0;
  int64_t tokens = 0, counted = 0;
  double seconds = 0, data_seconds = 0;
  double loss_scale = 1;  // of the gradients; the loss is without
  bool skipped = false;
  std::string non_finite;  // eager mode: the first op that made a NaN or infinity, and where
};

class Run {
 public:
  Run(const RunConfig& config, const TrainerHooks& hooks)
      : config_(config),
        hooks_(hooks),
        pool_(default_threads(static_cast<int>(config.threads.value_or(0)))),
        monitors_(config.monitor) {}

  Result<TrainingResult> execute() {
    INGOT_TRY(prepare());
    INGOT_TRY(loop());
    INGOT_TRY(finish());
    return std::move(result_);
  }

 private:
  const Tokenizer* tokenizer() const { return setup_->tokenizer ? &*setup_->tokenizer : nullptr; }
  fs::path output() const { return config_.output_dir; }

  Status prepare() {
    INGOT_TRY(check_consistent(config_));
    INGOT_TRY(check_supported(config_));
    INGOT_TRY(ingot::create_directories(output()));
    INGOT_TRY(remove_abandoned_files(output()));
    INGOT_TRY(set_log_file(output() / "log.txt"));
    for (const std::string& text : unusual_choices(config_)) log_warning("{}", text);
    INGOT_TRY(set_up());
    INGOT_ASSIGN(std::optional<Checkpoint> checkpoint, checkpoint_to_resume());
    if (checkpoint) {
      INGOT_TRY(compare_settings(*checkpoint));
      INGOT_TRY(read_state(*checkpoint));
    }
    start_loss_scale();
    INGOT_TRY(make_programs());
    INGOT_TRY(resume_or_start(checkpoint));
    INGOT_TRY(write_file_atomic(output() / "config.yaml", to_yaml(config_)));  // of a run that can start, no other
    INGOT_TRY(open_outputs());
    return {};
  }

  Status set_up() {
    if (hooks_.sources.empty()) {
      INGOT_ASSIGN(RunSetup setup, set_up_run(config_, pool_));
      setup_ = std::make_unique<RunSetup>(std::move(setup));
      return {};
    }
    INGOT_ASSIGN(Model model, resolve_model(config_.model, kNone));
    setup_ = std::make_unique<RunSetup>(RunSetup{std::nullopt, std::move(model), hooks_.sources, {}, 0});
    for (const MixturePart& part : hooks_.sources) setup_->sequences_per_epoch += part.sequences->count();
    return {};
  }

  Status make_programs() {
    const int64_t saved = state_.micro_batch_size;
    const bool keeps =
        !config_.training.micro_batch_size && saved > 0 && config_.training.global_batch_size % saved == 0;
    if (keeps) {
      micro_batch_ = saved;
    } else {
      INGOT_ASSIGN(micro_batch_, choose_micro_batch(config_, setup_->model, pool_.threads()));
    }
    state_.micro_batch_size = micro_batch_;
    const int64_t planned_steps = total_steps(config_, setup_->sequences_per_epoch);
    profile_ = std::make_unique<RunProfile>(config_.profile, output() / "profile", state_.step, planned_steps,
                                            dtype_of(config_.training.precision), pool_);
    INGOT_ASSIGN(programs_, TrainingPrograms::create(setup_->model, program_settings(config_, micro_batch_), pool_));
    for (const std::string& text : programs_->warnings()) log_warning("{}", text);
    INGOT_TRY(reserve_profile());
    if (state_.total_steps != 0 && state_.total_steps != planned_steps)
      log_warning("the run was {} steps long, the configuration now says {}; the schedule is that of the new length",
                  state_.total_steps, planned_steps);
    state_.total_steps = planned_steps;
    peak_gflops_ = kernels::peak_gflops(pool_, dtype_of(config_.training.precision));
    const MemoryEstimate memory = programs_->memory();
    log_info(
        "{} parameters, {} steps of {} sequences of {} tokens in micro-batches of {}, {} threads, {:.0f} MB of memory",
        setup_->model.parameter_count(), state_.total_steps, config_.training.global_batch_size,
        config_.data.sequence_length, micro_batch_, pool_.threads(), static_cast<double>(memory.total()) * 1e-6);
    return {};
  }

  Status reserve_profile() {
    StepSize size{programs_->update_program().step_count(),
                  static_cast<size_t>(config_.training.global_batch_size / micro_batch_)};
    for (const bool accumulate : {false, true}) {
      const size_t times = accumulate ? size.micro_batches - 1 : 1;
      if (times == 0) continue;
      INGOT_ASSIGN(const Program* program,
                   programs_->micro_step_program(micro_batch_, config_.data.sequence_length, accumulate));
      size.ops += times * program->step_count();
    }
    profile_->reserve(size);
    return {};
  }

  Status resume_or_start(const std::optional<Checkpoint>& checkpoint) {
    if (checkpoint) {
      INGOT_TRY(load_checkpoint(*checkpoint));
    } else if (config_.model.path && config_.model.init.value_or(ModelInit::pretrained) == ModelInit::pretrained &&
               has_weights(*config_.model.path)) {
      INGOT_TRY(load_weights(*config_.model.path, setup_->model, programs_->arena()));
      log_info("weights from {}", *config_.model.path);
    } else if (config_.model.init == ModelInit::pretrained) {
      return input_error("model.init is pretrained, but {} holds no weights",
                         config_.model.path.value_or("(no model.path)"));
    } else {
      initialize_weights(setup_->model, static_cast<uint64_t>(config_.seed), programs_->arena(), pool_);
    }
    INGOT_ASSIGN(Schedule schedule, Schedule::make(config_.schedule, config_.optimizer.learning_rate,
                                                   state_.total_steps, config_.training.global_batch_size));
    schedule_ = std::make_unique<Schedule>(std::move(schedule));
    StreamOptions options = stream_options(config_, micro_batch_);
    options.log = profile_->data_log();
    INGOT_ASSIGN(stream_, BatchStream::create(setup_->train, options, state_.cursor));
    return {};
  }

  Result<std::optional<Checkpoint>> checkpoint_to_resume() const {
    switch (config_.checkpoint.resume_mode()) {
      case ResumeMode::never:
        return std::optional<Checkpoint>();
      case ResumeMode::automatic:
        return find_newest_checkpoint(output() / "checkpoints");
      case ResumeMode::path:
        break;
    }
    INGOT_ASSIGN(const std::vector<fs::path> found, resolve_checkpoints(config_.checkpoint.resume));
    INGOT_ASSIGN(Checkpoint checkpoint, Checkpoint::open(found.back()));
    return std::optional(std::move(checkpoint));
  }

  Status read_state(const Checkpoint& checkpoint) {
    INGOT_ASSIGN(const std::string text, checkpoint.read_file("state.json"));
    INGOT_ASSIGN(state_, RunState::parse(text, (checkpoint.path() / "state.json").string()));
    return {};
  }

  // A checkpoint of a run that did not scale its loss has no scale to go on with.
  void start_loss_scale() {
    const bool scales = config_.training.precision == Precision::fp16 || hooks_.scale_loss;
    const LossScaleConfig& scale = config_.training.loss_scale;
    if (scales && state_.clean_steps)
      scaler_.emplace(scale, LossScaler::State{state_.loss_scale, *state_.clean_steps});
    else if (scales)
      scaler_.emplace(scale);
    keep_loss_scale();
  }

  void keep_loss_scale() {
    state_.loss_scale = scaler_ ? scaler_->scale() : 1;
    state_.clean_steps = scaler_ ? std::optional(scaler_->state().clean_steps) : std::nullopt;
  }

  // Shapes alone would let another rotary base or epsilon through.
  Status compare_settings(const Checkpoint& checkpoint) const {
    INGOT_ASSIGN(const std::string model, checkpoint.read_file("config.json"));
    for (const auto& [name, content] : model_files(setup_->model, tokenizer()))
      if (name == "config.json") INGOT_TRY(check_same_model(model, content, checkpoint.path().string()));
    INGOT_ASSIGN(const std::string settings, checkpoint.read_file("config.yaml"));
    INGOT_TRY(check_can_go_on(settings, to_yaml(config_), checkpoint.path().string()));
    for (const std::string& change : changed_settings(settings, to_yaml(config_)))
      log_warning("the run goes on with another setting: {}", change);
    return {};
  }

  Status load_checkpoint(const Checkpoint& checkpoint) {
    for (const ParameterSpec& parameter : setup_->model.parameters())
      INGOT_TRY(checkpoint.read_tensor(parameter.name, "weight", programs_->arena().variable(parameter.name)));
    for (const OptimizerState& state : programs_->optimizer_state()) {
      INGOT_TRY(check_has_state(checkpoint, state));
      INGOT_TRY(checkpoint.read_tensor(state.parameter, state.kind, programs_->arena().variable(state.variable())));
    }
    resumed_step_ = state_.step;
    monitors_.resume(state_.consecutive_skips);
    log_info("resumed from {} at step {}", checkpoint.path().string(), state_.step);
    return {};
  }

  static Status check_has_state(const Checkpoint& checkpoint, const OptimizerState& state) {
    if (checkpoint.find(state.parameter, state.kind) != nullptr) return {};
    return usage_error(
        "{} holds no {} of {}, which the optimizer needs: go on with the optimizer.type and training.freeze of the "
        "run's config.yaml, or begin a new run (another output_dir, or checkpoint.resume=never)",
        checkpoint.path().string(), state.kind, state.parameter);
  }

  Status open_outputs() {
    if (!setup_->validation.empty()) {
      EvaluationOptions options{config_.data.sequence_length, micro_batch_, config_.evaluation.max_batches};
      INGOT_ASSIGN(EvaluationBatches batches, EvaluationBatches::create(setup_->validation, options));
      validation_ = std::make_unique<EvaluationBatches>(std::move(batches));
    }
    INGOT_ASSIGN(MetricsWriter metrics, MetricsWriter::open(output(), state_.step));
    metrics_ = std::make_unique<MetricsWriter>(std::move(metrics));
    warn_of_missing_metrics();
    INGOT_ASSIGN(EvaluationWriter evaluations, EvaluationWriter::open(output(), state_.step));
    evaluations_ = std::make_unique<EvaluationWriter>(std::move(evaluations));
    if (config_.logging.tensorboard) {
      INGOT_ASSIGN(EventWriter events, EventWriter::create(output(), state_.step));
      events_ = std::make_unique<EventWriter>(std::move(events));
    }
    for (auto& [name, content] : model_files(setup_->model, tokenizer()))
      checkpoint_files_.push_back({name, std::move(content)});
    checkpoint_files_.push_back({"config.yaml", to_yaml(config_)});
    const Snapshot snapshot = make_snapshot();
    INGOT_TRY(check_disk_space(output() / "checkpoints", checkpoint_bytes(snapshot),
                               static_cast<int>(config_.checkpoint.keep)));
    INGOT_ASSIGN(writer_, CheckpointWriter::create({output() / "checkpoints", static_cast<int>(config_.checkpoint.keep),
                                                    config_.checkpoint.async, resumed_step_}));
    if (config_.checkpoint.async && saves_regularly()) {
      uint64_t bytes = 0;
      for (const SavedPiece& piece : snapshot.pieces) bytes += piece.data.bytes();
      INGOT_TRY(writer_->reserve(bytes));
    }
    return {};
  }

  void warn_of_missing_metrics() const {
    const int64_t every = config_.logging.every_steps, last = metrics_->last_step();
    if (every > 0 && state_.step - last > every)
      log_warning("{} ends at step {}, and the run goes on at step {}: the rows between are lost",
                  (output() / "metrics.csv").string(), last, state_.step);
  }

  bool saves_regularly() const {
    const bool by_steps = config_.checkpoint.every_steps > 0 && config_.checkpoint.every_steps < state_.total_steps;
    return by_steps || config_.checkpoint.every_minutes.has_value();
  }

  Status loop() {
    progress_ = std::make_unique<Progress>(state_.total_steps, state_.step, progress_on_stderr());
    last_save_ = Clock::now();
    const auto start = Clock::now();
    result_.finished = true;
    while (state_.step < state_.total_steps) {
      INGOT_TRY(step());
      if (!signals_.requested()) continue;
      result_.finished = state_.step >= state_.total_steps;
      result_.stopped_by = signals_.name();
      break;
    }
    profile_->finish();
    result_.train_seconds = seconds_since(start);
    progress_->finish();
    return {};
  }

  Status step() {
    profile_->begin_step(state_.step + 1);
    programs_->keep_all(profile_->current() != nullptr);
    const auto start = Clock::now();
    StepOutcome outcome;
    outcome.learning_rate = schedule_->at(state_.step + 1);
    outcome.loss_scale = state_.loss_scale;
    INGOT_ASSIGN(const StepBatches* batches, next_batches());
    outcome.data_seconds = seconds_since(start);
    outcome.tokens = batches->tokens;
    outcome.counted = batches->counted;
    INGOT_TRY(run_micro_batches(*batches, outcome));
    INGOT_TRY(apply_update(outcome));
    outcome.seconds = seconds_since(start);
    return end_step(*batches, outcome);
  }

  Result<const StepBatches*> next_batches() {
    const ActivityScope scope(profile_->current(), Activity::wait_for_data);
    return stream_->next();
  }

  Status run_micro_batches(const StepBatches& batches, StepOutcome& outcome) {
    const float scale =
        batches.counted > 0 ? static_cast<float>(outcome.loss_scale / static_cast<double>(batches.counted)) : 0.0f;
    DebugDump dump(config_.debug, state_.step + 1);
    Profile* const profile = profile_->current();
    const NodeObserver look{[&](const NodeEvent& event) { return observe(event, dump, outcome); },
                            profile != nullptr ? profile->thread_times() : std::span<ThreadTime>()};
    const bool looks = config_.training.mode == ExecutionMode::eager || dump.active();
    const NodeObserver* const observer = looks ? &look : profile != nullptr ? &profile->observer() : nullptr;
    int64_t sequence = 0;
    bool accumulate = false;
    for (const Batch& batch : batches.micro) {
      const RandomState random{static_cast<uint64_t>(config_.seed), static_cast<uint64_t>(state_.step + 1), sequence,
                               batch.rows};
      const ActivityScope scope(profile, Activity::micro_step, &batch - batches.micro.data() + 1);
      INGOT_ASSIGN(const double loss, programs_->micro_step(batch, scale, accumulate, random, observer));
      outcome.loss += loss / outcome.loss_scale;
      sequence += batch.rows;
      accumulate = true;
    }
    return dump.write(output() / "debug");
  }

  Status observe(const NodeEvent& event, DebugDump& dump, StepOutcome& outcome) const {
    if (Profile* const profile = profile_->current()) profile->add(event);
    if (config_.training.mode == ExecutionMode::eager && outcome.non_finite.empty())
      outcome.non_finite = describe_non_finite(event);
    dump.add(event);
    return {};
  }

  Result<UpdateResult> update_weights(const StepOutcome& outcome) {
    Profile* const profile = profile_->current();
    const ActivityScope scope(profile, Activity::update);
    const NodeObserver* const observer = profile != nullptr ? &profile->observer() : nullptr;
    return programs_->update(outcome.learning_rate, state_.updates + 1, observer, outcome.loss_scale);
  }

  // The monitors see loss and norm before the parameters change for good: a non-finite loss keeps the update from
  // running, and the update leaves everything as it is where a gradient is not finite.
  Status apply_update(StepOutcome& outcome) {
    if (std::isfinite(outcome.loss)) {
      INGOT_ASSIGN(const UpdateResult update, update_weights(outcome));
      outcome.grad_norm = update.grad_norm;
      outcome.skipped = update.skipped;
    } else {
      outcome.grad_norm = kNotKnown;
      outcome.skipped = true;
    }
    const Verdict verdict = monitors_.judge(figures_of(outcome));
    if (!verdict.warnings.empty() || verdict.action != StepAction::proceed) progress_->clear();
    for (const std::string& text : verdict.warnings) log_warning("{}", text);
    if (verdict.action == StepAction::proceed) return {};
    std::string text = verdict.diagnosis;
    if (!outcome.non_finite.empty()) text += "; the first such value came from " + outcome.non_finite;
    if (verdict.action == StepAction::stop)
      return failed_error("{}{}", text, describe_non_finite_gradients(*programs_));
    if (verdict.is_expected)
      log_info("{}", text);
    else
      log_warning("{}", text);
    outcome.skipped = true;
    return {};
  }

  StepFigures figures_of(const StepOutcome& outcome) const {
    StepFigures figures{state_.step + 1,   outcome.counted,       outcome.loss,
                        outcome.grad_norm, outcome.learning_rate, last_speed_};
    if (!scaler_) return figures;
    figures.loss_scale = outcome.loss_scale;
    figures.loss_scale_can_fall = !scaler_->is_at_minimum();
    return figures;
  }

  // A step in which nothing counts says nothing about the scale.
  void adjust_loss_scale(const StepOutcome& outcome) {
    if (!scaler_) return;
    if (outcome.skipped)
      scaler_->overflowed();
    else if (outcome.counted > 0)
      scaler_->stayed_finite();
    keep_loss_scale();
  }

  Status end_step(const StepBatches& batches, const StepOutcome& outcome) {
    ++state_.step;
    state_.tokens += outcome.tokens;
    state_.cursor = batches.cursor;
    if (outcome.skipped)
      ++state_.skipped;
    else
      ++state_.updates;
    state_.consecutive_skips = monitors_.consecutive_skips();
    adjust_loss_scale(outcome);
    last_speed_ = static_cast<double>(outcome.tokens) / outcome.seconds;
    result_.last_loss = outcome.loss;
    const int64_t every = config_.logging.every_steps;
    const bool is_last = state_.step == state_.total_steps;
    const bool logged = (every > 0 && (state_.step == 1 || state_.step % every == 0)) || is_last;
    if (logged) write_metrics(outcome);
    progress_->step({state_.step, outcome.loss, outcome.learning_rate, outcome.grad_norm, last_speed_}, logged);
    for (const StepCallback& callback : hooks_.on_step_end)
      INGOT_TRY(callback({state_.step, state_.total_steps, state_.tokens, outcome.loss, outcome.learning_rate,
                          outcome.grad_norm, outcome.skipped, outcome.loss_scale, *programs_}));
    profile_->end_step(state_.step);
    const int64_t evaluate_every = config_.evaluation.every_steps;
    if (validation_ && ((evaluate_every > 0 && state_.step % evaluate_every == 0) || is_last))
      INGOT_TRY(run_evaluation());
    return save_if_due(is_last);
  }

  void write_metrics(const StepOutcome& outcome) {
    StepMetrics row;
    row.step = state_.step;
    row.tokens = state_.tokens;
    row.counted_tokens = outcome.counted;
    row.loss = outcome.loss;
    row.learning_rate = outcome.learning_rate;
    row.grad_norm = outcome.grad_norm;
    row.tokens_per_second = last_speed_;
    row.step_ms = outcome.seconds * 1e3;
    row.data_wait_ms = outcome.data_seconds * 1e3;
    row.mfu = setup_->model.flops_per_token(config_.data.sequence_length) * last_speed_ * 1e-9 / peak_gflops_;
    row.peak_memory_mb = static_cast<double>(peak_resident_bytes()) / (1 << 20);
    row.loss_scale = outcome.loss_scale;
    row.skipped = state_.skipped;
    metrics_->write(row);
    if (events_) events_->write(row.step, scalars_of(row));
  }

  Status run_evaluation() {
    const ActivityScope scope(profile_->current(), Activity::evaluation);
    const auto loss_of = [&](const Batch& batch, float scale) { return programs_->evaluate(batch, scale); };
    INGOT_ASSIGN(const EvaluationResult e, evaluate(loss_of, *validation_));
    const EvaluationMetrics row{state_.step, e.loss, e.perplexity, e.bits_per_byte};
    result_.validation_loss = e.loss;
    result_.perplexity = e.perplexity;
    result_.bits_per_byte = e.bits_per_byte;
    evaluations_->write(row);
    if (events_) events_->write(state_.step, scalars_of(row));
    progress_->clear();
    log_info("step {}: validation loss {:.4f}, perplexity {:.3f}, {:.4f} bits per byte", state_.step, e.loss,
             e.perplexity, e.bits_per_byte);
    return {};
  }

  Status save_if_due(bool is_last) {
    const auto& c = config_.checkpoint;
    const bool by_steps = c.every_steps > 0 && state_.step % c.every_steps == 0;
    const bool by_time = c.every_minutes && seconds_since(last_save_) >= *c.every_minutes * 60;
    if (!by_steps && !by_time && !is_last && !signals_.requested()) return {};
    return save();
  }

  // What is in the files of a step's metrics must be on disk before a checkpoint that says the step is done.
  Status save() {
    const ActivityScope scope(profile_->current(), Activity::checkpoint);
    last_save_ = Clock::now();
    metrics_->sync();
    evaluations_->sync();
    const Status saved = writer_->save(make_snapshot(), &pool_);
    if (!saved.ok()) {
      progress_->clear();
      log_warning("no checkpoint of step {}: {}", state_.step, saved.error().message);
    }
    return {};
  }

  Snapshot make_snapshot() const {
    Snapshot snapshot;
    snapshot.step = state_.step;
    snapshot.layout = R"({"data":1,"tensor":1,"pipeline":1,"context":1})";
    snapshot.state = state_.to_json();
    snapshot.files = checkpoint_files_;
    const Arena& arena = programs_->arena();
    for (const ParameterSpec& parameter : setup_->model.parameters())
      snapshot.pieces.push_back(whole_piece(parameter.name, "weight", arena.variable(parameter.name)));
    for (const OptimizerState& state : programs_->optimizer_state())
      snapshot.pieces.push_back(whole_piece(state.parameter, state.kind, arena.variable(state.variable())));
    return snapshot;
  }

  Status finish() {
    result_.state = state_;
    metrics_->sync();
    evaluations_->sync();
    if (events_) events_->sync();
    const Status saved = writer_->wait();
    if (!result_.finished) {
      if (!saved.ok())
        return failed_error("stopped by {} at step {}, and the checkpoint could not be saved: {}", result_.stopped_by,
                            state_.step, saved.error().message);
      return {};
    }
    INGOT_TRY(check_trained());
    return write_model_directory(output() / "model", setup_->model, tokenizer(), programs_->arena());
  }

  // A run shorter than the skips that it may make in a row comes to its end with weights as they were.
  Status check_trained() const {
    if (state_.updates > 0 || state_.skipped == 0) return {};
    return failed_error(
        "all {} steps were skipped, since their loss or gradients were not finite: nothing was trained, and no model "
        "is written to {}; {}",
        state_.skipped, (output() / "model").string(),
        config_.training.precision == Precision::fp16
            ? "set training.precision=bf16, or a lower training.loss_scale.initial"
            : "look at the weights that the run starts from, or set training.mode=eager, which names the op that makes "
              "the first such number");
  }

  const RunConfig& config_;
  const TrainerHooks& hooks_;
  ThreadPool pool_;
  StopSignals signals_;
  Monitors monitors_;
  std::unique_ptr<RunSetup> setup_;
  int64_t micro_batch_ = 1;
  std::unique_ptr<TrainingPrograms> programs_;
  std::unique_ptr<Schedule> schedule_;
  std::optional<LossScaler> scaler_;     // of runs that scale their loss
  std::unique_ptr<RunProfile> profile_;  // before what it listens to
  std::unique_ptr<BatchStream> stream_;
  std::unique_ptr<EvaluationBatches> validation_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<EvaluationWriter> evaluations_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::vector<SavedFile> checkpoint_files_;  // those that are the same in every checkpoint of the run
  std::unique_ptr<Progress> progress_;
  Clock::time_point last_save_;
  double last_speed_ = 0;
  double peak_gflops_ = 0;  // measured at the start: what the column mfu is relative to
  RunState state_;
  std::optional<int64_t> resumed_step_;
  TrainingResult result_;
};

}  // namespace

MixedPrecision mixed_precision(const TrainingSection& training) {
  return {dtype_of(training.precision), training.fp32_ops};
}

ProgramSettings program_settings(const RunConfig& config, int64_t micro_batch) {
  ProgramSettings settings;
  settings.fuse = config.training.mode == ExecutionMode::graph;
  settings.disabled_passes = config.compile.disable_passes;
  settings.no_fuse = config.compile.no_fuse;
  settings.freeze = config.training.freeze;
  settings.optimizer = config.optimizer.resolved();
  settings.weight_decay = config.optimizer.weight_decay;
  settings.max_grad_norm = config.training.max_grad_norm;
  settings.groups = config.optimizer.groups;
  settings.precision = mixed_precision(config.training);
  settings.recompute = config.recompute;
  settings.rows = micro_batch;
  settings.tokens = config.data.sequence_length;
  settings.accumulates = config.training.global_batch_size > micro_batch * config.parallel.data;
  settings.evaluates = !config.data.validation.empty() || config.data.validation_fraction > 0;
  settings.stages_checkpoints = config.checkpoint.async;
  return settings;
}

Result<int64_t> choose_micro_batch(const RunConfig& config, const Model& model, int threads,
                                   std::optional<int64_t> available) {
  if (config.training.micro_batch_size) return *config.training.micro_batch_size;
  const ThreadPool pool(threads);
  const int64_t global = config.training.global_batch_size;
  const int64_t room = available.value_or(static_cast<int64_t>(available_memory()));
  int64_t needed = 0;
  // Beyond so many tokens a larger micro-batch is no faster, it only takes memory.
  constexpr int64_t kEnoughTokens = 4096;
  for (int64_t rows = global; rows >= 1; --rows) {
    if (global % rows != 0 || (rows > 1 && rows * config.data.sequence_length > kEnoughTokens)) continue;
    auto programs = TrainingPrograms::plan(model, program_settings(config, rows), pool);
    if (!programs.ok() && (rows == 1 || config.recompute.policy != RecomputePolicy::budget)) return programs.error();
    if (!programs.ok()) continue;  // fewer rows may keep to the budget
    needed = (*programs)->memory().total();
    if (needed <= room) return rows;
  }
  return usage_error(
      "one sequence of {} tokens needs {} MB of memory, {} MB are available; use a smaller data.sequence_length or "
      "model",
      config.data.sequence_length, needed >> 20, room >> 20);
}

Result<TrainingResult> train(const RunConfig& config, const TrainerHooks& hooks) {
  return Run(config, hooks).execute();
}

}  // namespace ingot
