// Program: a graph made ready to run (schedule, kernels, memory plan), and how it is run over an arena.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memory/plan.h"
#include "runtime/arena.h"
#include "runtime/kernel.h"

namespace ingot {

// The content of one input of a run; the bytes are copied into the workspace.
struct ProgramInput {
  std::string_view name;
  ConstTensorView content;
};

class Program;

// What an observer is told of a node that has just run.
struct NodeEvent {
  const Program& program;
  const Arena& arena;
  size_t step;  // its place in the program's schedule
  const Node& node;
  int64_t begin, end;  // in steady_ns()

  double seconds() const { return static_cast<double>(end - begin) * 1e-9; }
  ConstTensorView output(size_t i) const;
};

// An error ends the run with that error (what is stored then is undefined).
struct NodeObserver {
  std::function<Status(const NodeEvent&)> on_node;
  // [threads of the pool] or empty (not asked for): during on_node, what each thread did for that node.
  std::span<ThreadTime> thread_times = {};
};

class Program {
 public:
  // Binds kernels and plans memory; the plan is checked. Every parameter and state of the graph must be in `variables`.
  static Result<std::unique_ptr<Program>> create(Graph graph, const VariableLayout& variables, int threads);

  const Graph& graph() const { return graph_; }
  const MemoryPlan& plan() const { return plan_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }  // for each thread
  // In the order in which they run.
  size_t step_count() const { return steps_.size(); }
  const Node& node_at(size_t step) const { return *steps_[step].node; }
  // Null: nothing has to be done, the outputs are already where the inputs are.
  const NodeKernel* kernel_at(size_t step) const { return steps_[step].kernel.get(); }

  // Runs over an arena that has reserved plan().workspace_bytes and scratch_bytes(). All inputs must be given, with the
  // graph's types. Allocates nothing of its own.
  Status run(const Arena& arena, const ThreadPool& pool, std::span<const ProgramInput> inputs,
             const RandomState& random, const NodeObserver* observer = nullptr) const;

  // An output of the last run over this arena; valid until another program (or this one) runs there.
  ConstTensorView output(const Arena& arena, std::string_view name) const;
  ConstTensorView value(const Arena& arena, ValueId id) const;

 private:
  struct Step {
    const Node* node = nullptr;
    std::unique_ptr<NodeKernel> kernel;  // null: its outputs are already where its inputs are
    std::vector<Placement> inputs, outputs;
    Placement temporary;
  };

  Program() = default;
  Result<std::vector<std::unique_ptr<NodeKernel>>> bind(int threads);
  std::byte* address(const Arena& arena, const Placement& placement) const;
  Status copy_inputs(const Arena& arena, std::span<const ProgramInput> inputs) const;
  void run_kernel(const Step& step, const Arena& arena, const ThreadPool& pool, std::span<std::byte*> operands,
                  const RandomState& random) const;
  Status run_observed(size_t step, const Arena& arena, const ThreadPool& pool, std::span<std::byte*> operands,
                      const RandomState& random, const NodeObserver& observer) const;

  Graph graph_;
  MemoryPlan plan_;
  std::vector<Step> steps_;
  std::vector<const Source*> inputs_;
  size_t most_operands_ = 0;
  int64_t scratch_bytes_ = 0;
};

// An arena for `variables` that `program` and smaller ones can run over; all variables are zero. Error (usage): the
// memory that is available does not hold it.
Result<Arena> make_arena(const VariableLayout& variables, const Program& program, const ThreadPool& pool);

}  // namespace ingot
