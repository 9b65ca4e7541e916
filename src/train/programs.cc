#include "train/programs.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace ingot {
namespace {

ConstTensorView view_of(const std::vector<int32_t>& values, const Shape& shape) {
  return {reinterpret_cast<const std::byte*>(values.data()), DType::i32, shape};
}

}  // namespace

Result<std::unique_ptr<TrainingPrograms>> TrainingPrograms::create(const Model& model, const ProgramSettings& settings,
                                                                   const ThreadPool& pool) {
  std::unique_ptr<TrainingPrograms> programs(new TrainingPrograms(model, settings, pool));
  INGOT_TRY(programs->start());
  return programs;
}

Status TrainingPrograms::start() {
  context_.no_fuse = settings_.no_fuse;
  context_.disabled = settings_.disabled_passes;
  INGOT_ASSIGN(trained_, trained_parameters(model_, settings_.freeze));
  std::vector<ParameterInfo> infos;
  for (const TrainedParameter& parameter : trained_) infos.push_back({parameter.name, parameter.type.shape.rank()});
  ParameterGroups groups = assign_groups(infos, settings_.groups, settings_.weight_decay, settings_.max_grad_norm);
  warnings_ = std::move(groups.warnings);

  INGOT_ASSIGN(Graph step, graph_of(Kind::micro_step, settings_.rows, settings_.tokens));
  Graph update = update_graph(trained_, groups, settings_.adamw);
  VariableLayout variables;
  add_variables_of(step, variables);
  add_variables_of(update, variables);
  INGOT_ASSIGN(Arena arena, Arena::create(std::move(variables), pool_));
  arena_ = std::make_unique<Arena>(std::move(arena));
  INGOT_ASSIGN(update_, Program::create(std::move(update), arena_->variables(), pool_.threads()));
  INGOT_TRY(arena_->reserve(update_->plan().workspace_bytes, update_->scratch_bytes(), pool_));
  auto usual = keep(Kind::micro_step, settings_.rows, settings_.tokens, std::move(step));
  if (!usual.ok()) return usual.error();
  return {};
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
  const auto start = std::chrono::steady_clock::now();
  auto graph = kind == Kind::evaluation ? evaluation_graph(model_, options, context_)
                                        : micro_step_graph(model_, options, context_);
  compile_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return graph;
}

Result<const Program*> TrainingPrograms::keep(Kind kind, int64_t rows, int64_t tokens, Graph graph) {
  const auto start = std::chrono::steady_clock::now();
  INGOT_ASSIGN(auto program, Program::create(std::move(graph), arena_->variables(), pool_.threads()));
  compile_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  INGOT_TRY(arena_->reserve(program->plan().workspace_bytes, program->scratch_bytes(), pool_));
  cache_.push_front({kind, rows, tokens, std::move(program)});
  if (cache_.size() > kMaxShapes) cache_.pop_back();
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

Result<double> TrainingPrograms::run_batch(const Program& program, const Batch& batch, float loss_scale,
                                           const RandomState& random, const NodeObserver* observer) {
  const Shape shape{batch.rows, batch.sequence_length};
  const std::array<ProgramInput, 5> inputs{
      {{"ids", view_of(batch.ids, shape)},
       {"positions", view_of(batch.positions, shape)},
       {"first_visible", view_of(batch.segment_start, shape)},
       {"targets", view_of(batch.targets, shape)},
       {"loss_scale", {reinterpret_cast<const std::byte*>(&loss_scale), DType::f32, {}}}}};
  INGOT_TRY(program.run(*arena_, pool_, inputs, random, observer));
  return static_cast<double>(*program.output(*arena_, "loss").as<float>());
}

Result<double> TrainingPrograms::micro_step(const Batch& batch, float loss_scale, bool accumulate,
                                            const RandomState& random, const NodeObserver* observer) {
  INGOT_ASSIGN(const Program* step, micro_step_program(batch.rows, batch.sequence_length, accumulate));
  return run_batch(*step, batch, loss_scale, random, observer);
}

Result<double> TrainingPrograms::evaluate(const Batch& batch, float loss_scale) {
  INGOT_ASSIGN(const Program* evaluation, evaluation_program(batch.rows, batch.sequence_length));
  return run_batch(*evaluation, batch, loss_scale, {.batch = batch.rows}, nullptr);
}

Result<UpdateResult> TrainingPrograms::update(double learning_rate, int64_t t, const NodeObserver* observer) {
  const std::array<float, 3> control = adamw_control(learning_rate, settings_.adamw, t);
  const ProgramInput input{"control", {reinterpret_cast<const std::byte*>(control.data()), DType::f32, {3}}};
  INGOT_TRY(update_->run(*arena_, pool_, {&input, 1}, {}, observer));
  const float* clip = update_->output(*arena_, "clip").as<float>();
  return UpdateResult{clip[2], clip[1] != 0};
}

}  // namespace ingot
