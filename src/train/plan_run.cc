#include "train/plan_run.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/writer.h"
#include "cost/estimate.h"
#include "data/build.h"
#include "passes/lower_precision.h"
#include "plan/advice.h"
#include "train/model_directory.h"
#include "train/recompute_choice.h"
#include "train/setup.h"
#include "train/trainer.h"

namespace ingot {
namespace {

std::string megabytes(int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

// Sequences of one epoch, exact or estimated; nothing where data are missing.
class EpochEstimate {
 public:
  EpochEstimate(const RunConfig& config, const std::optional<Tokenizer>& tokenizer, RunPlan& plan)
      : config_(config), tokenizer_(tokenizer), plan_(plan) {}

  std::optional<int64_t> sequences() {
    if (config_.data.train.empty()) {
      plan_.assumptions.push_back("data.train is empty: how many steps an epoch has is not known");
      return std::nullopt;
    }
    std::optional<TextEncoder> encoder;
    if (tokenizer_) encoder = encoder_of(*tokenizer_);
    double total = 0;
    for (const DataSource& source : config_.data.train) {
      const std::optional<double> sequences = of_source(source, encoder);
      if (!sequences) return std::nullopt;
      total += *sequences;
    }
    if (config_.data.validation.empty()) total *= 1 - config_.data.validation_fraction;
    return std::max<int64_t>(1, static_cast<int64_t>(total));
  }

 private:
  std::optional<double> of_source(const DataSource& source, const std::optional<TextEncoder>& encoder) {
    const SourceSpec spec{source.path, std::nullopt, source.text_key, source.template_text, std::nullopt};
    if (const auto shards = existing_shards(spec, encoder)) {
      const auto sequences = make_sequences(
          Segments::all(shards), {config_.data.sequence_length, config_.data.packing, config_.data.document_mask});
      return sequences.ok() ? static_cast<double>((*sequences)->count()) : 0.0;
    }
    const auto files = find_source_files(spec);
    if (!files.ok()) {
      plan_.assumptions.push_back(files.error().message + "; how many steps an epoch has is not known");
      return std::nullopt;
    }
    return estimate(source, *files, encoder);
  }

  std::shared_ptr<const ShardSet> existing_shards(const SourceSpec& spec,
                                                  const std::optional<TextEncoder>& encoder) const {
    if (!encoder && !ShardSet::is_shard_directory(spec.path)) return nullptr;
    auto shards =
        encoder ? open_if_built(spec, *encoder, fs::path(config_.output_dir) / "data") : ShardSet::open(spec.path);
    return shards.ok() ? std::move(*shards) : nullptr;
  }

  std::optional<double> estimate(const DataSource& source, const SourceFiles& files,
                                 const std::optional<TextEncoder>& encoder) {
    uint64_t bytes = 0;
    for (const fs::path& file : files.files) {
      std::error_code unreadable;  // counts as empty: the run itself will say so
      const uint64_t size = fs::file_size(file, unreadable);
      if (!unreadable) bytes += size;
    }
    const double bytes_a_token = encoder ? sampled_bytes_a_token(files.files, *encoder) : kUsualBytesAToken;
    plan_.assumptions.push_back(fmt::format("{} ({}) is not tokenized yet: {:.1f} bytes a token {}", source.path,
                                            megabytes(static_cast<int64_t>(bytes)), bytes_a_token,
                                            encoder ? "as in its beginning" : "are assumed"));
    return static_cast<double>(bytes) / bytes_a_token / static_cast<double>(config_.data.sequence_length);
  }

  double sampled_bytes_a_token(const std::vector<fs::path>& files, const TextEncoder& encoder) const {
    constexpr size_t kSample = 1 << 16;
    for (const fs::path& path : files) {
      const auto file = MappedFile::open(path);
      if (!file.ok() || file->text().empty()) continue;
      const std::string_view text = file->text().substr(0, kSample);
      std::vector<int32_t> ids;
      encoder.encode(text, ids);
      if (!ids.empty()) return static_cast<double>(text.size()) / static_cast<double>(ids.size());
    }
    return kUsualBytesAToken;
  }

  static constexpr double kUsualBytesAToken = 4;  // of English with a vocabulary of some ten thousand entries

  const RunConfig& config_;
  const std::optional<Tokenizer>& tokenizer_;
  RunPlan& plan_;
};

class Planner {
 public:
  Planner(const RunConfig& config, const PlannedModel& planned, const MachineLimits& limits, int64_t available_memory,
          const ThreadPool& pool)
      : config_(config), model_(planned.model), tokenizer_(planned.tokenizer), pool_(pool) {
    plan_.machine = limits;
    plan_.available_memory = available_memory;
    plan_.assumptions = planned.assumptions;
    plan_.warnings = planned.warnings;
  }

  Result<RunPlan> make() {
    describe_model();
    INGOT_TRY(plan_programs());
    INGOT_TRY(plan_steps());
    INGOT_TRY(check_memory());
    INGOT_TRY(check_disk());
    add_warnings();
    return std::move(plan_);
  }

 private:
  void describe_model() {
    const ModelConfig& c = model_.config();
    plan_.model = fmt::format("{}, {} layers of width {}, vocabulary {}", c.model_type, c.num_hidden_layers,
                              c.hidden_size, c.vocab_size);
    plan_.parameters = model_.parameter_count();
    plan_.components = parameters_by_component(model_);
    plan_.threads = pool_.threads();
    plan_.sequence_length = config_.data.sequence_length;
  }

  Result<std::unique_ptr<TrainingPrograms>> programs_of(ProgramSettings settings) const {
    return TrainingPrograms::plan(model_, settings, pool_);
  }

  Status plan_programs() {
    // What does not fit has a plan too: that of the smallest micro-batch.
    const auto chosen = choose_micro_batch(config_, model_, pool_.threads(), plan_.available_memory);
    plan_.micro_batch = chosen.ok() ? *chosen : 1;
    plan_.accumulation = config_.training.global_batch_size / (plan_.micro_batch * plan_.layout.data);
    INGOT_ASSIGN(programs_, programs_of(program_settings(config_, plan_.micro_batch)));
    plan_.memory = programs_->memory();
    for (const TrainedParameter& parameter : programs_->trained())
      plan_.trained_parameters += parameter.type.shape.elements();
    INGOT_ASSIGN(const Program* first, programs_->micro_step_program(plan_.micro_batch, plan_.sequence_length, false));
    add_cost(*first, 1);
    plan_precision(first->graph());
    if (plan_.accumulation > 1) {
      INGOT_ASSIGN(const Program* more, programs_->micro_step_program(plan_.micro_batch, plan_.sequence_length, true));
      add_cost(*more, plan_.accumulation - 1);
    }
    add_cost(programs_->update_program(), 1);
    INGOT_TRY(plan_recomputation());
    plan_.model_flops = model_.flops_per_token(plan_.sequence_length) * static_cast<double>(plan_.tokens_per_step());
    return {};
  }

  void plan_precision(const Graph& step) {
    const Precision precision = config_.training.precision;
    plan_.precision = name_of(precision);
    if (precision == Precision::fp32) return;
    const std::vector<std::string>& fp32_ops = config_.training.fp32_ops;
    for (const PrecisionKind& kind : precision_kinds()) {
      const bool narrow = reads_narrow(kind, fp32_ops);
      const bool chosen = kind.reads_narrow && !narrow && !kind.computes_in_fp32;
      plan_.precisions.push_back({std::string(kind.name),
                                  chosen ? "fp32, by training.fp32_ops" : std::string(kind.what),
                                  narrow ? plan_.precision : "fp32"});
    }
    const std::vector<std::string> wide = products_in_fp32(step);
    if (!wide.empty())
      plan_.warnings.push_back(
          fmt::format("{} matrix products of a step stay in fp32 (the first at {}): they are the "
                      "slowest part of a step, and training.precision {} does not speed them up",
                      wide.size(), wide.front(), plan_.precision));
  }

  Status plan_recomputation() {
    const std::vector<RecomputeLevel>& levels = programs_->passes().recompute;
    if (std::ranges::all_of(levels, [](RecomputeLevel level) { return level == RecomputeLevel::none; })) return {};
    plan_.recomputed = describe_levels(levels);
    ProgramSettings keeping = program_settings(config_, plan_.micro_batch);
    keeping.recompute = {};
    INGOT_ASSIGN(const auto programs, programs_of(keeping));
    const auto seconds = [&](TrainingPrograms& of) -> Result<double> {
      INGOT_ASSIGN(const Program* program, of.micro_step_program(plan_.micro_batch, plan_.sequence_length, false));
      return estimate(program->graph(), plan_.machine).seconds;
    };
    INGOT_ASSIGN(const double with, seconds(*programs_));
    INGOT_ASSIGN(const double without, seconds(*programs));
    plan_.recompute_seconds = (with - without) * static_cast<double>(plan_.accumulation);
    return {};
  }

  void add_cost(const Program& program, int64_t times) {
    const GraphCost cost = estimate(program.graph(), plan_.machine);
    plan_.program_flops += cost.total.flops * static_cast<double>(times);
    plan_.step_seconds += cost.seconds * static_cast<double>(times);
  }

  Status plan_steps() {
    const auto sequences = EpochEstimate(config_, tokenizer_, plan_).sequences();
    if (sequences) plan_.steps_per_epoch = std::max<int64_t>(1, *sequences / config_.training.global_batch_size);
    if (!sequences && config_.training.epochs) return {};
    plan_.total_steps = total_steps(config_, sequences.value_or(1));
    INGOT_ASSIGN(const Schedule schedule, Schedule::make(config_.schedule, config_.optimizer.learning_rate,
                                                         *plan_.total_steps, config_.training.global_batch_size));
    const auto point = [&](std::string when, int64_t step) {
      plan_.rates.push_back({std::move(when), step, schedule.at(step)});
    };
    point("the start", 0);
    if (schedule.warmup_steps() > 0) point("end of the warm-up", schedule.warmup_steps());
    point("the end", *plan_.total_steps);
    peak_rate_ = schedule.peak();
    warmup_steps_ = schedule.warmup_steps();
    return {};
  }

  Status check_memory() {
    if (plan_.memory.total() <= plan_.available_memory) return {};
    plan_.problems.push_back(fmt::format("the run needs {} of memory, {} are available",
                                         megabytes(plan_.memory.total()), megabytes(plan_.available_memory)));
    return find_remedies();
  }

  bool fits(const MemoryEstimate& memory) const { return memory.total() <= plan_.available_memory; }

  Status find_remedies() {
    ProgramSettings settings = program_settings(config_, plan_.micro_batch);
    MemoryEstimate memory = plan_.memory;
    const bool hopeless = memory.fixed() - memory.staging >= plan_.available_memory;  // however small the batch
    for (int64_t rows = hopeless ? 1 : plan_.micro_batch - 1; rows >= 1 && !fits(memory); --rows) {
      if (config_.training.global_batch_size % rows != 0) continue;
      settings = program_settings(config_, rows);
      INGOT_ASSIGN(const auto programs, programs_of(settings));
      memory = programs->memory();
    }
    if (fits(memory)) {
      plan_.remedies.push_back(
          fmt::format("training.micro_batch_size={} (needs {})", settings.rows, megabytes(memory.total())));
      return {};
    }
    if (memory.staging > 0 && memory.total() - memory.staging <= plan_.available_memory) {
      plan_.remedies.push_back(
          fmt::format("checkpoint.async=false{} (needs {}; training waits while a checkpoint is written)",
                      settings.rows < plan_.micro_batch ? " with training.micro_batch_size=1" : "",
                      megabytes(memory.total() - memory.staging)));
      return {};
    }
    INGOT_TRY(try_shorter_sequences(settings, memory));
    name_larger_machine(memory);
    return {};
  }

  Status try_shorter_sequences(ProgramSettings settings, const MemoryEstimate& smallest) {
    constexpr int64_t kShortest = 64;
    if (smallest.fixed() >= plan_.available_memory) return {};
    while (settings.tokens / 2 >= kShortest) {
      settings.tokens /= 2;
      INGOT_ASSIGN(const auto programs, programs_of(settings));
      if (!fits(programs->memory())) continue;
      plan_.remedies.push_back(fmt::format("data.sequence_length={} with training.micro_batch_size={} (needs {})",
                                           settings.tokens, settings.rows, megabytes(programs->memory().total())));
      return {};
    }
    return {};
  }

  void name_larger_machine(const MemoryEstimate& smallest) {
    std::string without_staging;
    if (smallest.staging > 0)
      without_staging =
          fmt::format(" ({} with checkpoint.async=false)", megabytes(smallest.total() - smallest.staging));
    plan_.remedies.push_back(fmt::format("a machine with {} to spare for micro-batches of one sequence{}",
                                         megabytes(smallest.total()), without_staging));
    if (smallest.weights + smallest.process < plan_.available_memory)
      plan_.remedies.push_back(
          "training fewer of the weights (training.freeze): frozen ones need no gradients and moments");
    // Weights and gradients in fp32 and what the optimizer keeps; the rest of the memory is for activations.
    const double room = 0.8 * static_cast<double>(plan_.available_memory);
    const double bytes_a_parameter =
        8 + static_cast<double>(plan_.memory.optimizer) / static_cast<double>(plan_.trained_parameters);
    plan_.remedies.push_back(fmt::format("a smaller model: one of about {:.0f} million parameters can be trained here",
                                         room / bytes_a_parameter * 1e-6));
  }

  // The checkpoints' tensors by type alone; there are no bytes yet.
  Snapshot snapshot() const {
    Snapshot snapshot;
    snapshot.files.push_back({"config.yaml", to_yaml(config_)});
    for (auto& [name, content] : model_files(model_, tokenizer_ ? &*tokenizer_ : nullptr))
      snapshot.files.push_back({name, std::move(content)});
    const auto add = [&](const std::string& name, const std::string& kind, const Type& type) {
      snapshot.pieces.push_back(whole_piece(name, kind, {nullptr, type.dtype, type.shape}));
    };
    for (const ParameterSpec& parameter : model_.parameters())
      add(parameter.name, "weight", {DType::f32, parameter.shape});
    for (const OptimizerState& state : programs_->optimizer_state()) add(state.parameter, state.kind, state.type);
    return snapshot;
  }

  Status check_disk() {
    const fs::path directory = fs::path(config_.output_dir) / "checkpoints";
    const int keep = static_cast<int>(config_.checkpoint.keep);
    const uint64_t one = checkpoint_bytes(snapshot());
    INGOT_ASSIGN(const uint64_t room, free_disk_bytes(directory));
    plan_.disk = {static_cast<int64_t>(one), keep, static_cast<int64_t>(required_disk_bytes(one, keep)),
                  static_cast<int64_t>(room), 4 * plan_.parameters};
    if (const Status enough = check_disk_space(directory, one, keep); !enough.ok())
      plan_.problems.push_back(enough.error().message);
    return {};
  }

  void add_warnings() {
    const auto add = [&](const std::vector<std::string>& notes) {
      plan_.warnings.insert(plan_.warnings.end(), notes.begin(), notes.end());
    };
    add(unusual_choices(config_));
    add(programs_->warnings());
    TrainingChoices choices;
    choices.parameters = plan_.parameters;
    choices.learning_rate = peak_rate_.value_or(config_.optimizer.learning_rate);
    choices.tokens_per_step = plan_.tokens_per_step();
    choices.warmup_steps = warmup_steps_;
    choices.total_steps = plan_.total_steps;
    choices.pretrained =
        config_.model.path && config_.model.init != ModelInit::random && has_weights(*config_.model.path);
    add(advice(choices));
    const ModelConfig& c = model_.config();
    if (c.positions == PositionKind::rotary && plan_.sequence_length > c.max_position_embeddings)
      plan_.warnings.push_back(fmt::format("data.sequence_length {} is beyond the model's max_position_embeddings {}",
                                           plan_.sequence_length, c.max_position_embeddings));
  }

  const RunConfig& config_;
  const Model& model_;
  const std::optional<Tokenizer>& tokenizer_;
  const ThreadPool& pool_;
  std::unique_ptr<TrainingPrograms> programs_;
  std::optional<double> peak_rate_;
  int64_t warmup_steps_ = 0;
  RunPlan plan_;
};

struct PlannedTokenizer {
  std::optional<Tokenizer> tokenizer;  // where it is there
  int64_t vocab_size = kNone;          // kNone: the model's own
  std::vector<std::string> assumptions;
};

Result<PlannedTokenizer> find_tokenizer(const RunConfig& config) {
  PlannedTokenizer found;
  const TokenizerSection& section = config.tokenizer;
  std::optional<std::string> path = section.path;
  if (!path && config.model.path && Tokenizer::file_in(*config.model.path)) path = config.model.path;
  if (path && fs::exists(*path)) {
    INGOT_ASSIGN(found.tokenizer, Tokenizer::load(*path));
    found.vocab_size = found.tokenizer->vocab_size();
    return found;
  }
  if (section.train_vocab_size) {
    found.vocab_size = *section.train_vocab_size;
    found.assumptions.push_back(
        fmt::format("{} is not there yet: it will be trained to {} tokens, if the text is enough",
                    path.value_or("tokenizer.path"), found.vocab_size));
    return found;
  }
  found.vocab_size = shard_vocabulary(config);
  if (found.vocab_size == kNone)
    found.assumptions.push_back((path ? *path + " is not there" : "no tokenizer is named") +
                                ": the model's own vocabulary is assumed");
  return found;
}

}  // namespace

Result<PlannedModel> plan_model(const RunConfig& config) {
  INGOT_ASSIGN(PlannedTokenizer found, find_tokenizer(config));
  INGOT_ASSIGN(Model model, resolve_model(config.model, found.vocab_size));
  PlannedModel planned{std::move(model), std::move(found.tokenizer), std::move(found.assumptions), {}};
  INGOT_TRY(planned.model.check_length(config.data.sequence_length, "data.sequence_length"));
  if (planned.tokenizer) {
    INGOT_ASSIGN(const std::string warning, check_vocabulary(planned.model.config().vocab_size, *planned.tokenizer));
    if (!warning.empty()) planned.warnings.push_back(warning);
  }
  return planned;
}

Result<RunPlan> plan_run(const RunConfig& config, const MachineLimits& limits, int64_t available_memory,
                         const ThreadPool& pool) {
  INGOT_TRY(check_consistent(config));
  INGOT_TRY(check_supported(config));
  INGOT_ASSIGN(const PlannedModel planned, plan_model(config));
  return Planner(config, planned, limits, available_memory, pool).make();
}

}  // namespace ingot
