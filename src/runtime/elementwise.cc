#include "runtime/elementwise.h"

#include "base/rng.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/registry.h"
#include "ops/scale.h"

namespace ingot {
namespace {

using kernels::EwOp;

std::optional<EwOp> kernel_op(std::string_view name) {
  static constexpr EwOp kAll[] = {
#define INGOT_LIST_EW_OP(op, operands) EwOp::op,
      INGOT_ELEMENTWISE_OPS(INGOT_LIST_EW_OP)
#undef INGOT_LIST_EW_OP
  };
  for (EwOp op : kAll)
    if (kernels::name_of(op) == name) return op;
  return std::nullopt;
}

// What a cast does to a register, which holds f32.
std::optional<EwOp> rounding_op(const ProgramInstruction& cast) {
  switch (instruction_attributes(cast).as<CastAttributes>().dtype) {
    case DType::f32:
      return EwOp::copy;
    case DType::bf16:
      return EwOp::round_bf16;
    case DType::f16:
      return EwOp::round_f16;
    default:
      return std::nullopt;
  }
}

// An output that is cast to the dtype it is stored in is written from before the cast: storing rounds it.
std::vector<int64_t> without_last_rounding(const Program& program, size_t inputs, std::vector<int64_t> outputs,
                                           std::span<const DType> dtypes) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] < static_cast<int64_t>(inputs)) continue;
    const ProgramInstruction& last = program[static_cast<size_t>(outputs[i]) - inputs];
    if (last.op == "cast" && is_narrow(dtypes[i])) outputs[i] = last.inputs[0];
  }
  return outputs;
}

// Which instructions lead to an output.
std::vector<bool> needed_instructions(const Program& program, size_t inputs, const std::vector<int64_t>& outputs) {
  std::vector<bool> needed(inputs + program.size(), false);
  for (const int64_t output : outputs) needed[static_cast<size_t>(output)] = true;
  for (size_t i = program.size(); i-- > 0;)
    if (needed[inputs + i])
      for (const int64_t input : program[i].inputs) needed[static_cast<size_t>(input)] = true;
  needed.erase(needed.begin(), needed.begin() + static_cast<int64_t>(inputs));
  return needed;
}

// Whether axes [begin, end) of an input, by its strides aligned to `shape`, are all repeated (0) or all dense: then the
// stride between neighbours along them as one axis; else nothing.
std::optional<int64_t> merged_stride(const Shape& shape, const std::vector<int64_t>& strides, int begin, int end) {
  std::optional<int64_t> inner;  // stride of the innermost axis with more than one element
  int64_t expected = 0;
  for (int axis = end - 1; axis >= begin; --axis) {
    if (shape[axis] == 1) continue;
    const int64_t stride = strides[static_cast<size_t>(axis)];
    if (!inner) {
      inner = stride;
    } else if (stride != expected) {
      return std::nullopt;
    }
    expected = stride * shape[axis];
  }
  return inner.value_or(0);
}

std::vector<int64_t> aligned_strides(const Shape& in, const Shape& out) {
  std::vector<int64_t> strides(static_cast<size_t>(out.rank()), 0);
  int64_t stride = 1;
  for (int i = 1; i <= in.rank(); ++i) {
    if (in[-i] != 1) strides[static_cast<size_t>(out.rank() - i)] = stride;
    stride *= in[-i];
  }
  return strides;
}

}  // namespace

Result<MatrixView> view_as_matrix(const Shape& shape, std::span<const Shape> inputs, int64_t fixed_columns) {
  std::vector<std::vector<int64_t>> strides;
  for (const Shape& input : inputs) strides.push_back(aligned_strides(input, shape));
  for (int cut = 0; cut <= shape.rank(); ++cut) {
    MatrixView view;
    for (int axis = 0; axis < shape.rank(); ++axis) (axis < cut ? view.rows : view.columns) *= shape[axis];
    if (fixed_columns > 0 && view.columns != fixed_columns) continue;
    bool fits = true;
    for (const auto& input : strides) {
      const auto row = merged_stride(shape, input, 0, cut), column = merged_stride(shape, input, cut, shape.rank());
      fits = row && column && *column <= 1;
      if (!fits) break;
      view.inputs.push_back({*row, *column});
    }
    if (fits) return view;
  }
  return failed_error("no cut of {} into rows and columns fits its broadcast inputs", shape.to_string());
}

int64_t RowWalk::offset(size_t input, int64_t row) const {
  int64_t at = 0;
  for (int i = 1; i <= outer.rank(); ++i) {
    at += row % outer[-i] * strides[input][-i];
    row /= outer[-i];
  }
  return at;
}

RowWalk walk_rows(const Shape& shape, std::span<const Shape> inputs) {
  RowWalk walk;
  const auto dims = shape.dims();
  walk.columns = shape.rank() == 0 ? 1 : shape[-1];
  walk.outer = Shape(dims.first(dims.empty() ? 0 : dims.size() - 1));
  walk.rows = walk.outer.elements();
  for (const Shape& input : inputs) {
    const std::vector<int64_t> strides = aligned_strides(input, shape);
    walk.strides.emplace_back(std::span(strides).first(static_cast<size_t>(walk.outer.rank())));
    walk.column_strides.push_back(strides.empty() ? 0 : strides.back());
  }
  return walk;
}

ValueDtypes dtypes_of(const NodeView& node) {
  ValueDtypes dtypes;
  for (size_t i = 0; i < node.inputs(); ++i) dtypes.inputs.push_back(node.input(i).dtype);
  for (size_t i = 0; i < node.outputs(); ++i) dtypes.outputs.push_back(node.output(i).dtype);
  return dtypes;
}

Result<ElementwiseRunner> ElementwiseRunner::create(const Program& program, size_t inputs, std::vector<int64_t> outputs,
                                                    std::span<const DType> dtypes) {
  ElementwiseRunner runner;
  runner.outputs_ = without_last_rounding(program, inputs, std::move(outputs), dtypes);
  const std::vector<bool> needed = needed_instructions(program, inputs, runner.outputs_);
  for (size_t i = 0; i < program.size(); ++i) {
    if (!needed[i]) continue;
    const ProgramInstruction& from = program[i];
    const auto op = from.op == "cast" ? rounding_op(from) : kernel_op(from.op);
    if (!op) return failed_error("there is no elementwise kernel for the op {}", from.op);
    kernels::EwInstruction to{*op, static_cast<uint16_t>(inputs + i), 0, 0, 0, 0};
    to.a = static_cast<uint16_t>(from.inputs[0]);
    if (from.inputs.size() > 1) to.b = static_cast<uint16_t>(from.inputs[1]);
    const Attributes attributes = instruction_attributes(from);
    if (*op == EwOp::scale) to.imm = static_cast<float>(attributes.as<ScaleAttributes>().factor);
    if (*op == EwOp::add_scalar) to.imm = static_cast<float>(attributes.as<AddScalarAttributes>().value);
    if (*op == EwOp::dropout) {
      const auto& dropout = attributes.as<DropoutAttributes>();
      to.imm = static_cast<float>(dropout.p);
      to.stream = static_cast<uint16_t>(runner.streams_.size());
      runner.streams_.push_back({dropout.stream});
    }
    runner.instructions_.push_back(to);
  }
  const size_t registers = inputs + program.size();
  if (registers > kernels::kMaxEwRegisters || runner.outputs_.size() > kernels::kMaxEwOutputs ||
      runner.streams_.size() > 8)
    return failed_error("an elementwise program of {} registers, {} outputs and {} random streams is too large",
                        registers, runner.outputs_.size(), runner.streams_.size());
  runner.scratch_bytes_ =
      kernels::elementwise_scratch_floats(static_cast<int>(registers)) * static_cast<int64_t>(sizeof(float));
  return runner;
}

void ElementwiseRunner::run(const Call& call, const kernels::EwTile& tile, std::byte* scratch) const {
  std::array<kernels::EwOutput, kernels::kMaxEwOutputs> outputs;
  std::array<kernels::EwStream, 8> streams;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    outputs[i] = call.outputs[i];
    outputs[i].reg = static_cast<uint16_t>(outputs_[i]);
  }
  const int64_t first = call.random.first_sequence * (call.rows * call.columns / call.random.batch);
  for (size_t i = 0; i < streams_.size(); ++i)
    streams[i] = {stream_key(call.random.seed, streams_[i].path), call.random.step, call.columns, first};
  kernels::run_elementwise(
      {instructions_, call.inputs, {outputs.data(), outputs_.size()}, {streams.data(), streams_.size()}}, tile,
      reinterpret_cast<float*>(scratch));
}

}  // namespace ingot
