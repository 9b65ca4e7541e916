#include "runtime/program.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/system.h"
#include "graph/text.h"
#include "runtime/bindings.h"

namespace ingot {
namespace {

// Operands of one node, kept on the stack so that a step allocates nothing. The clip factor has one for each parameter
// and one more; a program with a larger node is refused when it is made.
constexpr size_t kMaxOperands = 4096;

bool only_renames(const Node& node) {
  const OpTraits& traits = node.op->traits;
  return traits.view || traits.part.has_value() || traits.join.has_value();
}

// Whether the plan lets a renaming node's outputs lie in its inputs' bytes, so that nothing has to be done.
bool is_in_place(const Graph& graph, const MemoryPlan& plan, const Node& node) {
  const auto place = [&](ValueId id) { return plan.values[static_cast<size_t>(id)]; };
  if (!only_renames(node)) return false;
  if (node.op->traits.join.has_value()) {
    const Placement out = place(node.outputs[0]);
    int64_t at = out.offset;
    for (ValueId input : node.inputs) {
      if (place(input).segment != out.segment || place(input).offset != at) return false;
      at += place(input).bytes;
    }
    for (int axis = 0; axis < (*node.op->traits.join)(node.attributes); ++axis)
      if (graph.shape(node.outputs[0])[axis] != 1) return false;
    return true;
  }
  const Placement in = place(node.inputs[0]);
  for (ValueId output : node.outputs) {
    const Placement out = place(output);
    if (out.segment != in.segment || out.offset < in.offset || out.offset + out.bytes > in.offset + in.bytes)
      return false;
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<Program>> Program::create(Graph graph, const VariableLayout& variables, int threads) {
  std::unique_ptr<Program> program(new Program());
  program->graph_ = graph.compacted();
  const Graph& g = program->graph_;
  INGOT_TRY(verify_graph(g));
  INGOT_ASSIGN(auto kernels, program->bind(threads));
  std::vector<int64_t> temporaries;
  for (const auto& kernel : kernels) temporaries.push_back(kernel->temporary_bytes);
  program->plan_ = plan_memory(g, variables, temporaries);
  INGOT_TRY(check_plan(g, variables, program->plan_));
  const MemoryPlan& plan = program->plan_;
  for (size_t i = 0; i < plan.schedule.size(); ++i) {
    const Node& node = g.node(plan.schedule[i]);
    Step step{&node, nullptr, {}, {}, plan.temporaries[i]};
    for (ValueId input : node.inputs) step.inputs.push_back(plan.values[static_cast<size_t>(input)]);
    for (ValueId output : node.outputs) step.outputs.push_back(plan.values[static_cast<size_t>(output)]);
    if (!is_in_place(g, plan, node)) step.kernel = std::move(kernels[i]);
    if (step.kernel) program->scratch_bytes_ = std::max(program->scratch_bytes_, step.kernel->scratch_bytes);
    program->most_operands_ = std::max(program->most_operands_, node.inputs.size() + node.outputs.size());
    program->steps_.push_back(std::move(step));
  }
  INGOT_CHECK(program->most_operands_ <= kMaxOperands, "a node with {} operands, at most {}", program->most_operands_,
              kMaxOperands);
  for (const Source& source : g.sources)
    if (source.kind == SourceKind::input) program->inputs_.push_back(&source);
  return program;
}

Result<std::vector<std::unique_ptr<NodeKernel>>> Program::bind(int threads) {
  std::vector<std::unique_ptr<NodeKernel>> kernels;
  SharedTables tables;
  for (NodeId id : graph_.schedule()) {
    auto kernel = bind_node({graph_, graph_.node(id), threads, tables});
    if (!kernel.ok())
      return Error{kernel.error().kind, fmt::format("{} at \"{}\": {}", graph_.node(id).op->name, graph_.node(id).path,
                                                    kernel.error().message)};
    kernels.push_back(std::move(*kernel));
  }
  return kernels;
}

std::byte* Program::address(const Arena& arena, const Placement& placement) const {
  return (placement.segment == Segment::persistent ? arena.persistent() : arena.workspace()) + placement.offset;
}

Status Program::copy_inputs(const Arena& arena, std::span<const ProgramInput> inputs) const {
  for (const Source* source : inputs_) {
    const auto given = std::ranges::find(inputs, source->name, &ProgramInput::name);
    const Type& type = graph_.type(source->value);
    INGOT_CHECK(given != inputs.end(), "{}: the input {} is not given", graph_.name, source->name);
    INGOT_CHECK(given->content.dtype == type.dtype && given->content.shape == type.shape,
                "{}: the input {} is {}, given {} {}", graph_.name, source->name, type.to_string(),
                name_of(given->content.dtype), given->content.shape.to_string());
    std::memcpy(address(arena, plan_.values[static_cast<size_t>(source->value)]), given->content.data,
                static_cast<size_t>(type.bytes()));
  }
  return {};
}

void Program::run_kernel(const Step& step, const Arena& arena, const ThreadPool& pool, std::span<std::byte*> operands,
                         const RandomState& random) const {
  size_t n = 0;
  for (const Placement& input : step.inputs) operands[n++] = address(arena, input);
  for (const Placement& output : step.outputs) operands[n++] = address(arena, output);
  step.kernel->run({pool, operands.first(step.inputs.size()), operands.subspan(step.inputs.size(), step.outputs.size()),
                    address(arena, step.temporary), arena.scratch(), arena.scratch_stride(), random});
}

Status Program::run_observed(size_t at, const Arena& arena, const ThreadPool& pool, std::span<std::byte*> operands,
                             const RandomState& random, const NodeObserver& observer) const {
  const Step& step = steps_[at];
  std::ranges::fill(observer.thread_times, ThreadTime());
  const int64_t begin = steady_ns();
  if (step.kernel) run_kernel(step, arena, pool, operands, random);
  return observer.on_node({*this, arena, at, *step.node, begin, steady_ns()});
}

Status Program::run(const Arena& arena, const ThreadPool& pool, std::span<const ProgramInput> inputs,
                    const RandomState& random, const NodeObserver* observer) const {
  INGOT_TRY(copy_inputs(arena, inputs));
  std::array<std::byte*, kMaxOperands> operands;
  if (observer == nullptr) {
    for (const Step& step : steps_)
      if (step.kernel) run_kernel(step, arena, pool, operands, random);
  } else {
    const bool timed = !observer->thread_times.empty();
    const ThreadPool watched = timed ? pool.timed(observer->thread_times) : pool;
    for (size_t at = 0; at < steps_.size(); ++at)
      INGOT_TRY(run_observed(at, arena, watched, operands, random, *observer));
  }
  for (const FinalCopy& copy : plan_.copies) {
    const Placement& from = plan_.values[static_cast<size_t>(copy.value)];
    std::memmove(arena.persistent() + copy.offset, address(arena, from), static_cast<size_t>(from.bytes));
  }
  return {};
}

ConstTensorView NodeEvent::output(size_t i) const {
  return program.value(arena, node.outputs[i]);
}

ConstTensorView Program::value(const Arena& arena, ValueId id) const {
  return {address(arena, plan_.values[static_cast<size_t>(id)]), graph_.type(id).dtype, graph_.type(id).shape};
}

ConstTensorView Program::output(const Arena& arena, std::string_view name) const {
  const ValueId id = graph_.find_output(name);
  INGOT_CHECK(id != kNone, "{} has no output {}", graph_.name, name);
  return value(arena, id);
}

Result<Arena> make_arena(const VariableLayout& variables, const Program& program, const ThreadPool& pool) {
  const int64_t workspace = program.plan().workspace_bytes, scratch = program.scratch_bytes();
  const int64_t needed = variables.bytes() + workspace + scratch * pool.threads();
  const auto available = static_cast<int64_t>(available_memory());
  if (needed > available)
    return usage_error(
        "the model needs {} MB of memory ({} MB of weights and caches), {} MB are available; use a shorter context or "
        "a smaller model",
        needed >> 20, variables.bytes() >> 20, available >> 20);
  INGOT_ASSIGN(Arena arena, Arena::create(variables, pool));
  INGOT_TRY(arena.reserve(workspace, scratch, pool));
  return arena;
}

}  // namespace ingot
