// The programs of one training run and the arena that they share: micro-steps for the shapes that occur, the
// evaluation, and the update.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/batch.h"
#include "models/model.h"
#include "optim/step_graph.h"
#include "optim/update_graph.h"
#include "plan/memory_estimate.h"
#include "runtime/program.h"
#include "train/config.h"

namespace ingot {

struct ProgramSettings {
  bool fuse = true;  // false: the plain ops one by one (training.mode eager)
  std::vector<std::string> disabled_passes, no_fuse, freeze;
  bool dropout = true;
  bool keep_activations = false, keep_state_gradients = false;  // as StepGraphOptions has them
  OptimizerConfig optimizer;
  double weight_decay = 0.1;
  double max_grad_norm = 1.0;
  std::vector<ParameterGroupRule> groups;
  MixedPrecision precision;      // bf16, f16: what is stored between ops (passes/lower_precision.h)
  RecomputeSection recompute;    // graph mode only: plain ops one by one are for looking at, not for saving memory
  int64_t rows = 1, tokens = 1;  // the usual shape of a micro-batch
  // What the run will do beside single micro-batches, so that its memory is counted and its programs are compiled
  // before the first step: several micro-batches a step, evaluations, checkpoints written in the background.
  bool accumulates = false, evaluates = false, stages_checkpoints = false;
};

struct UpdateResult {
  double grad_norm = 0;  // of the true gradients of all trained parameters, before clipping
  bool skipped = false;  // a gradient was not finite, nothing changed
};

// Runs a program of step_graph.h (a micro-step or an evaluation) on a batch of its shape and gives its output "loss".
Result<double> run_loss_program(const Program& program, const Arena& arena, const ThreadPool& pool, const Batch& batch,
                                float loss_scale, const RandomState& random, const NodeObserver* observer = nullptr);

// Not thread-safe. Owns the arena: weights under their Hugging Face names, gradients, the optimizer's state.
class TrainingPrograms {
 public:
  // Compiles the usual micro-step and the update, and lays out the variables, but takes no memory for them: what is
  // made so can be asked and not run. Recompute policy budget is searched for what fits it in the least time. Error:
  // usage where a pattern or a layer matches nothing, or the budget is too small.
  static Result<std::unique_ptr<TrainingPrograms>> plan(const Model& model, const ProgramSettings& settings,
                                                        const ThreadPool& pool);
  // The same with its arena; all variables are zero. Error: usage where the machine has no memory for it.
  static Result<std::unique_ptr<TrainingPrograms>> create(const Model& model, const ProgramSettings& settings,
                                                          const ThreadPool& pool);

  // One micro-batch: gradients are stored, or added to those there. Returns the loss part of it. loss_scale is what
  // both are multiplied with: 1 / counted targets of the step, under dynamic loss scaling times LossScaler::scale.
  Result<double> micro_step(const Batch& batch, float loss_scale, bool accumulate, const RandomState& random,
                            const NodeObserver* observer = nullptr);
  // The loss part of a batch, without gradients or dropout.
  Result<double> evaluate(const Batch& batch, float loss_scale);
  // The t-th update (1 at the first) from the gradients as they are, which are gradient_scale times the true ones.
  Result<UpdateResult> update(double learning_rate, int64_t t, const NodeObserver* observer = nullptr,
                              double gradient_scale = 1);

  // Where the copies of weights that products read in 16 bits are to be made anew before the next step, since the
  // weights were written other than by update(). So it is after create().
  void weights_changed() { copies_are_stale_ = true; }

  MemoryEstimate memory() const;

  const Arena& arena() const { return *arena_; }
  const VariableLayout& variables() const { return variables_; }
  // What the optimizer keeps for the trained parameters, in variables of their names.
  const std::vector<OptimizerState>& optimizer_state() const { return optimizer_state_; }
  const std::vector<TrainedParameter>& trained() const { return trained_; }
  const std::vector<std::string>& warnings() const { return warnings_; }  // about parameter groups
  const PassContext& passes() const { return context_; }  // what was fused where, recomputed in which layers
  // The program of a shape, compiled when first asked for. At most kMaxShapes are kept, the least recently used goes.
  Result<const Program*> micro_step_program(int64_t rows, int64_t tokens, bool accumulate);
  Result<const Program*> evaluation_program(int64_t rows, int64_t tokens);
  // While true none goes: what was recorded of a program may ask it still (runtime/profile.h).
  void keep_all(bool keep) { keeps_all_ = keep; }
  const Program& update_program() const { return *update_; }
  double compile_seconds() const { return compile_seconds_; }

  static constexpr size_t kMaxShapes = 24;

 private:
  enum class Kind { micro_step, accumulating_micro_step, evaluation };
  struct Entry {
    Kind kind;
    int64_t rows, tokens;
    std::unique_ptr<Program> program;
  };

  TrainingPrograms(const Model& model, const ProgramSettings& settings, const ThreadPool& pool)
      : model_(model), settings_(settings), pool_(pool) {}
  static Result<std::unique_ptr<TrainingPrograms>> plan_at(const Model& model, const ProgramSettings& settings,
                                                           const ThreadPool& pool, std::vector<RecomputeLevel> levels);
  Status compile();
  Status compile(Kind kind);  // for the usual shape
  Status allocate();
  Status reserve(const Program& program);
  void refresh_copies();
  Result<Graph> graph_of(Kind kind, int64_t rows, int64_t tokens);
  Result<const Program*> program(Kind kind, int64_t rows, int64_t tokens);
  Result<const Program*> keep(Kind kind, int64_t rows, int64_t tokens, Graph graph);

  const Model& model_;
  ProgramSettings settings_;
  const ThreadPool& pool_;
  PassContext context_;
  std::vector<TrainedParameter> trained_;
  std::vector<OptimizerState> optimizer_state_;
  std::vector<std::string> warnings_;
  VariableLayout variables_;
  std::unique_ptr<Arena> arena_;  // null: planned only
  std::unique_ptr<Program> update_;
  std::vector<WeightCopy> copies_;
  bool copies_are_stale_ = true;
  std::list<Entry> cache_;  // the most recently used first
  bool keeps_all_ = false;
  double compile_seconds_ = 0;
};

}  // namespace ingot
