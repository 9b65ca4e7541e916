#include "train/programs.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/system.h"
#include "train/recompute_choice.h"

namespace ingot {
namespace {

ConstTensorView view_of(const std::vector<int32_t>& values, const Shape& shape) {
  return {reinterpret_cast<const std::byte*>(values.data()), DType::i32, shape};
}

// Where the backward pass begins.
int32_t position_of_loss(const Program& program) {
  const auto& schedule = program.plan().schedule;
  const NodeId loss = program.graph().value(program.graph().find_output("loss")).producer;
  return static_cast<int32_t>(std::ranges::find(schedule, loss) - schedule.begin());
}

}  // namespace

Result<double> run_loss_program(const Program& program, const Arena& arena, const ThreadPool& pool, const Batch& batch,
                                float loss_scale, const RandomState& random, const NodeObserver* observer) {
  const Shape shape{batch.rows, batch.sequence_length};
  const std::array<ProgramInput, 5> inputs{
      {{"ids", view_of(batch.ids, shape)},
       {"positions", view_of(batch.positions, shape)},
       {"first_visible", view_of(batch.segment_start, shape)},
       {"targets", view_of(batch.targets, shape)},
       {"loss_scale", {reinterpret_cast<const std::byte*>(&loss_scale), DType::f32, {}}}}};
  INGOT_TRY(program.run(arena, pool, inputs, random, observer));
  return static_cast<double>(*program.output(arena, "loss").as<float>());
}

Result<std::unique_ptr<TrainingPrograms>> TrainingPrograms::plan(const Model& model, const ProgramSettings& settings,
                                                                 const ThreadPool& pool) {
  const int64_t layer_count = model.config().num_hidden_layers;
  const RecomputeSection& recompute = settings.recompute;
  INGOT_ASSIGN(const std::vector<int64_t> layers, recomputed_layers(recompute, layer_count));
  if (!settings.fuse) return plan_at(model, settings, pool, {});
  if (recompute.policy != RecomputePolicy::budget)
    return plan_at(model, settings, pool, fixed_levels(recompute.policy, layers, layer_count));

  const auto start = Clock::now();
  std::unique_ptr<TrainingPrograms> fitting;  // the last that fits is that of the least step
  const auto needed = [&](int64_t step) -> Result<int64_t> {
    INGOT_ASSIGN(auto programs, plan_at(model, settings, pool, budget_levels(step, layers, layer_count)));
    const int64_t bytes = programs->memory().total();
    if (bytes <= *recompute.memory_budget) fitting = std::move(programs);
    return bytes;
  };
  INGOT_ASSIGN([[maybe_unused]] const int64_t step,
               least_step_within(*recompute.memory_budget, static_cast<int64_t>(layers.size()), needed));
  fitting->compile_seconds_ = seconds_since(start);
  return fitting;
}

Result<std::unique_ptr<TrainingPrograms>> TrainingPrograms::plan_at(const Model& model, const ProgramSettings& settings,
                                                                    const ThreadPool& pool,
                                                                    std::vector<RecomputeLevel> levels) {
  std::unique_ptr<TrainingPrograms> programs(new TrainingPrograms(model, settings, pool));
  programs->context_.recompute = std::move(levels);
  INGOT_TRY(programs->compile());
  return programs;
}

Result<std::unique_ptr<TrainingPrograms>> TrainingPrograms::create(const Model& model, const ProgramSettings& settings,
                                                                   const ThreadPool& pool) {
  INGOT_ASSIGN(auto programs, plan(model, settings, pool));
  INGOT_TRY(programs->allocate());
  return programs;
}

Status TrainingPrograms::compile() {
  context_.no_fuse = settings_.no_fuse;
  context_.disabled = settings_.disabled_passes;
  context_.precision = settings_.precision;
  INGOT_TRY(check_pass_names(settings_.disabled_passes));
  INGOT_ASSIGN(trained_, trained_parameters(model_, settings_.freeze));
  optimizer_state_ = ingot::optimizer_state(trained_, settings_.optimizer);
  std::vector<ParameterInfo> infos;
  for (const TrainedParameter& parameter : trained_) infos.push_back({parameter.name, parameter.type.shape.rank()});
  ParameterGroups groups = assign_groups(infos, settings_.groups, settings_.weight_decay, settings_.max_grad_norm);
  warnings_ = std::move(groups.warnings);

  INGOT_ASSIGN(Graph step, graph_of(Kind::micro_step, settings_.rows, settings_.tokens));
  copies_ = weight_copies(step);
  Graph update = update_graph(trained_, groups, settings_.optimizer, copies_);
  add_variables_of(step, variables_);
  add_variables_of(update, variables_);
  INGOT_ASSIGN(update_, Program::create(std::move(update), variables_, pool_.threads()));
  if (settings_.accumulates) INGOT_TRY(compile(Kind::accumulating_micro_step));
  if (settings_.evaluates) INGOT_TRY(compile(Kind::evaluation));
  auto usual = keep(Kind::micro_step, settings_.rows, settings_.tokens, std::move(step));
  return usual.ok() ? Status() : usual.error();
}

Status TrainingPrograms::compile(Kind kind) {
  auto made = program(kind, settings_.rows, settings_.tokens);
  return made.ok() ? Status() : made.error();
}

Status TrainingPrograms::allocate() {
  const int64_t needed = memory().total();
  const auto available = static_cast<int64_t>(available_memory());
  if (needed > available)
    return usage_error(
        "the run needs {} MB of memory, {} MB are available; use a smaller training.micro_batch_size, "
        "data.sequence_length or model",
        needed >> 20, available >> 20);
  INGOT_ASSIGN(Arena arena, Arena::create(variables_, pool_));
  arena_ = std::make_unique<Arena>(std::move(arena));
  INGOT_TRY(reserve(*update_));
  for (const Entry& entry : cache_) INGOT_TRY(reserve(*entry.program));
  return {};
}

Status TrainingPrograms::reserve(const Program& program) {
  if (!arena_) return {};
  return arena_->reserve(program.plan().workspace_bytes, program.scratch_bytes(), pool_);
}

MemoryEstimate TrainingPrograms::memory() const {
  constexpr int64_t kProcess = int64_t{32} << 20;  // measured, with small data
  MemoryEstimate memory;
  memory.process = kProcess;
  for (const Variable& variable : variables_.variables()) {
    const bool is_gradient = variable.name.starts_with(gradient_name(""));
    (is_gradient ? memory.gradients : memory.weights) += variable.type.bytes();
  }
  for (const OptimizerState& state : optimizer_state_) memory.optimizer += state.type.bytes();
  memory.weights -= memory.optimizer;
  int64_t copies = 0;
  for (const WeightCopy& copy : copies_) copies += copy.type.bytes();
  if (settings_.stages_checkpoints) memory.staging = memory.weights - copies + memory.optimizer;
  int64_t scratch = update_->scratch_bytes();
  memory.activations = update_->plan().workspace_bytes;
  memory.lower_bound = update_->plan().lower_bound_bytes;
  for (const Entry& entry : cache_) {
    const MemoryPlan& plan = entry.program->plan();
    memory.activations = std::max(memory.activations, plan.workspace_bytes);
    memory.lower_bound = std::max(memory.lower_bound, plan.lower_bound_bytes);
    if (entry.kind != Kind::evaluation)
      memory.kept = std::max(memory.kept, bytes_held_across(plan, position_of_loss(*entry.program)));
    scratch = std::max(scratch, entry.program->scratch_bytes());
  }
  memory.workspace = scratch * pool_.threads();
  return memory;
}

Result<Graph> TrainingPrograms::graph_of(Kind kind, int64_t rows, int64_t tokens) {
  StepGraphOptions options;
  options.rows = rows;
  options.tokens = tokens;
  options.fuse = settings_.fuse;
  options.dropout = settings_.dropout;
  options.accumulate = kind == Kind::accumulating_micro_step;
  options.freeze = settings_.freeze;
  options.keep_activations = settings_.keep_activations;
  options.keep_state_gradients = settings_.keep_state_gradients;
  const auto start = Clock::now();
  auto graph = kind == Kind::evaluation ? evaluation_graph(model_, options, context_)
                                        : micro_step_graph(model_, options, context_);
  compile_seconds_ += seconds_since(start);
  return graph;
}

Result<const Program*> TrainingPrograms::keep(Kind kind, int64_t rows, int64_t tokens, Graph graph) {
  const auto start = Clock::now();
  INGOT_ASSIGN(auto program, Program::create(std::move(graph), variables_, pool_.threads()));
  compile_seconds_ += seconds_since(start);
  INGOT_TRY(reserve(*program));
  cache_.push_front({kind, rows, tokens, std::move(program)});
  while (!keeps_all_ && cache_.size() > kMaxShapes) cache_.pop_back();
  return cache_.front().program.get();
}

Result<const Program*> TrainingPrograms::program(Kind kind, int64_t rows, int64_t tokens) {
  const auto found = std::ranges::find_if(
      cache_, [&](const Entry& e) { return e.kind == kind && e.rows == rows && e.tokens == tokens; });
  if (found != cache_.end()) {
    cache_.splice(cache_.begin(), cache_, found);
    return cache_.front().program.get();
  }
  INGOT_ASSIGN(Graph graph, graph_of(kind, rows, tokens));
  return keep(kind, rows, tokens, std::move(graph));
}

Result<const Program*> TrainingPrograms::micro_step_program(int64_t rows, int64_t tokens, bool accumulate) {
  return program(accumulate ? Kind::accumulating_micro_step : Kind::micro_step, rows, tokens);
}

Result<const Program*> TrainingPrograms::evaluation_program(int64_t rows, int64_t tokens) {
  return program(Kind::evaluation, rows, tokens);
}

void TrainingPrograms::refresh_copies() {
  if (copies_are_stale_) fill_weight_copies(*arena_);
  copies_are_stale_ = false;
}

Result<double> TrainingPrograms::micro_step(const Batch& batch, float loss_scale, bool accumulate,
                                            const RandomState& random, const NodeObserver* observer) {
  INGOT_ASSIGN(const Program* step, micro_step_program(batch.rows, batch.sequence_length, accumulate));
  refresh_copies();
  return run_loss_program(*step, *arena_, pool_, batch, loss_scale, random, observer);
}

Result<double> TrainingPrograms::evaluate(const Batch& batch, float loss_scale) {
  INGOT_ASSIGN(const Program* evaluation, evaluation_program(batch.rows, batch.sequence_length));
  refresh_copies();
  return run_loss_program(*evaluation, *arena_, pool_, batch, loss_scale, {.batch = batch.rows});
}

Result<UpdateResult> TrainingPrograms::update(double learning_rate, int64_t t, const NodeObserver* observer,
                                              double gradient_scale) {
  const std::array<float, 3> control = update_control(learning_rate, settings_.optimizer, t);
  const auto scale = static_cast<float>(gradient_scale);
  const std::array<ProgramInput, 2> inputs{
      {{"control", {reinterpret_cast<const std::byte*>(control.data()), DType::f32, {3}}},
       {"gradient_scale", {reinterpret_cast<const std::byte*>(&scale), DType::f32, {}}}}};
  INGOT_TRY(update_->run(*arena_, pool_, inputs, {}, observer));
  const float* clip = update_->output(*arena_, "clip").as<float>();
  return UpdateResult{clip[2], clip[1] != 0};
}

}  // namespace ingot
