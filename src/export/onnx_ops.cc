// What each op of a generation graph is in ONNX: the one list of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "export/onnx_attention.h"
#include "export/onnx_lowering.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/concat.h"
#include "ops/constant.h"
#include "ops/layer_norm.h"
#include "ops/matmul.h"
#include "ops/repeat_interleave.h"
#include "ops/rms_norm.h"
#include "ops/scale.h"
#include "ops/slice.h"
#include "ops/split.h"
#include "ops/sum.h"
#include "ops/transpose.h"

namespace ingot {
namespace {

constexpr int64_t kLast = -1;  // the last axis
constexpr double kLowest = std::numeric_limits<float>::lowest();

Status lower_add_scalar(OnnxLowering& to, const Node& node) {
  const double value = node.attributes.as<AddScalarAttributes>().value;
  to.define(node.outputs[0], to.emit("Add", {to.input(node, 0), to.scalar(value)}));
  return {};
}

Status lower_scale(OnnxLowering& to, const Node& node) {
  const double factor = node.attributes.as<ScaleAttributes>().factor;
  to.define(node.outputs[0], to.emit("Mul", {to.input(node, 0), to.scalar(factor)}));
  return {};
}

Status lower_rsqrt(OnnxLowering& to, const Node& node) {
  to.define(node.outputs[0], to.emit("Reciprocal", {to.emit("Sqrt", {to.input(node, 0)})}));
  return {};
}

Status lower_square(OnnxLowering& to, const Node& node) {
  const std::string x = to.input(node, 0);
  to.define(node.outputs[0], to.emit("Mul", {x, x}));
  return {};
}

Status lower_silu(OnnxLowering& to, const Node& node) {
  const std::string x = to.input(node, 0);
  to.define(node.outputs[0], to.emit("Mul", {x, to.emit("Sigmoid", {x})}));
  return {};
}

// Both forms of GELU in the order of operations that engines recognise and fuse.
Status lower_gelu(OnnxLowering& to, const Node& node) {
  const std::string x = to.input(node, 0);
  const std::string erf = to.emit("Erf", {to.emit("Div", {x, to.scalar(std::numbers::sqrt2)})});
  const std::string product = to.emit("Mul", {x, to.emit("Add", {erf, to.scalar(1.0)})});
  to.define(node.outputs[0], to.emit("Mul", {product, to.scalar(0.5)}));
  return {};
}

Status lower_gelu_tanh(OnnxLowering& to, const Node& node) {
  const std::string x = to.input(node, 0);
  const std::string cubed = to.emit("Mul", {to.emit("Pow", {x, to.scalar(3.0)}), to.scalar(0.044715)});
  const std::string inner = to.emit("Mul", {to.emit("Add", {x, cubed}), to.scalar(std::sqrt(2 / std::numbers::pi))});
  const std::string weight = to.emit("Add", {to.emit("Tanh", {inner}), to.scalar(1.0)});
  to.define(node.outputs[0], to.emit("Mul", {to.emit("Mul", {x, to.scalar(0.5)}), weight}));
  return {};
}

Status lower_sum(OnnxLowering& to, const Node& node) {
  const auto& axes = node.attributes.as<SumAttributes>().axes;
  to.define(node.outputs[0], to.emit("ReduceSum", {to.input(node, 0), to.integers(axes)}, {{"keepdims", int64_t{0}}}));
  return {};
}

// A row of nothing but -inf gives zeros, as in Ingot, where ONNX's Softmax alone would give NaN.
Status lower_softmax(OnnxLowering& to, const Node& node) {
  const std::string x = to.input(node, 0), lowest = to.scalar(kLowest);
  const std::string weights = to.emit("Softmax", {to.emit("Max", {x, lowest})}, {{"axis", kLast}});
  const std::string counts = to.cast(to.emit("GreaterOrEqual", {x, lowest}), onnx_type(DType::f32));
  to.define(node.outputs[0], to.emit("Mul", {weights, counts}));
  return {};
}

Status lower_layer_norm(OnnxLowering& to, const Node& node) {
  const auto& attributes = node.attributes.as<LayerNormAttributes>();
  OnnxLowering::Names inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(to.input(node, i));
  if (!attributes.has_weight) {  // ONNX has no form without
    const Extents& x = to.extents(node.inputs[0]);
    const Extents row(x.end() - attributes.axes, x.end());
    if (!std::ranges::all_of(row, &Extent::fixed))
      return usage_error("the op layer_norm at {} is over the batch or the tokens", node.path);
    const std::string ones = to.emit("Expand", {to.scalar(1.0), to.shape(row)});
    inputs.insert(inputs.begin() + 1, ones);
  }
  to.define(node.outputs[0], to.emit("LayerNormalization", std::move(inputs),
                                     {{"axis", -attributes.axes}, {"epsilon", static_cast<float>(attributes.eps)}}));
  return {};
}

// In the order of operations that engines recognise and fuse.
Status lower_rms_norm(OnnxLowering& to, const Node& node) {
  const auto& attributes = node.attributes.as<RmsNormAttributes>();
  const std::string x = to.input(node, 0);
  const std::string mean = to.emit("ReduceMean", {to.emit("Pow", {x, to.scalar(2.0)})},
                                   {{"axes", std::vector<int64_t>{kLast}}, {"keepdims", int64_t{1}}});
  const std::string root = to.emit("Sqrt", {to.emit("Add", {mean, to.scalar(attributes.eps)})});
  std::string y = to.emit("Div", {x, root});
  if (attributes.has_weight) y = to.emit("Mul", {y, to.input(node, 1)});
  to.define(node.outputs[0], y);
  return {};
}

std::string swapped(OnnxLowering& to, const std::string& x, size_t rank) {
  std::vector<int64_t> permutation(rank);
  for (size_t i = 0; i < rank; ++i) permutation[i] = static_cast<int64_t>(i);
  std::swap(permutation[rank - 2], permutation[rank - 1]);
  return to.emit("Transpose", {x}, {{"perm", permutation}});
}

Status lower_matmul(OnnxLowering& to, const Node& node) {
  const auto& [transpose_a, transpose_b] = node.attributes.as<MatmulAttributes>();
  const size_t a_rank = to.extents(node.inputs[0]).size(), b_rank = to.extents(node.inputs[1]).size();
  std::string a = to.input(node, 0), b = to.input(node, 1);
  if (a_rank == 2 && b_rank == 2) {
    to.define(node.outputs[0],
              to.emit("Gemm", {a, b}, {{"transA", int64_t{transpose_a}}, {"transB", int64_t{transpose_b}}}));
    return {};
  }
  if (transpose_a) a = swapped(to, a, a_rank);
  if (transpose_b && !to.is_stored_transposed(node.inputs[1])) b = swapped(to, b, b_rank);
  to.define(node.outputs[0], to.emit("MatMul", {a, b}));
  return {};
}

// Of a table in a narrow dtype only the rows that are looked up become f32.
Status lower_embedding(OnnxLowering& to, const Node& node) {
  const auto narrow = to.narrow_parameter(node.inputs[0]);
  const std::string table = narrow ? *narrow : to.input(node, 0);
  const std::string rows = to.emit("Gather", {table, to.input(node, 1)}, {{"axis", int64_t{0}}});
  to.define(node.outputs[0], narrow ? to.cast(rows, onnx_type(DType::f32)) : rows);
  return {};
}

Status lower_transpose(OnnxLowering& to, const Node& node) {
  const auto& permutation = node.attributes.as<TransposeAttributes>().permutation;
  to.define(node.outputs[0], to.emit("Transpose", {to.input(node, 0)}, {{"perm", permutation}}));
  return {};
}

Status lower_reshape(OnnxLowering& to, const Node& node) {
  to.define(node.outputs[0], to.reshaped(to.input(node, 0), to.extents(node.inputs[0]), to.extents(node.outputs[0])));
  return {};
}

Status lower_broadcast_to(OnnxLowering& to, const Node& node) {
  to.define(node.outputs[0], to.emit("Expand", {to.input(node, 0), to.shape(to.extents(node.outputs[0]))}));
  return {};
}

Status lower_constant(OnnxLowering& to, const Node& node) {
  const auto& [dtype, shape, values] = node.attributes.as<ConstantAttributes>();
  if (values.size() == 1 && !shape.empty()) {
    to.define(node.outputs[0], to.emit("Expand", {to.numbers(values, {}, dtype), to.integers(shape)}));
    return {};
  }
  to.define(node.outputs[0], to.numbers(values, shape, dtype));
  return {};
}

Status lower_cast(OnnxLowering& to, const Node& node) {
  const DType dtype = node.attributes.as<CastAttributes>().dtype;
  to.define(node.outputs[0], to.cast(to.input(node, 0), onnx_type(is_float(dtype) ? dtype : DType::i64)));
  return {};
}

Status lower_slice(OnnxLowering& to, const Node& node) {
  const auto& [axis, start, stop] = node.attributes.as<SliceAttributes>();
  to.define(node.outputs[0],
            to.emit("Slice", {to.input(node, 0), to.integers({start}), to.integers({stop}), to.integers({axis})}));
  return {};
}

Status lower_split(OnnxLowering& to, const Node& node) {
  const auto& [axis, sizes] = node.attributes.as<SplitAttributes>();
  const auto parts =
      to.emit_many("Split", {to.input(node, 0), to.integers(sizes)}, node.outputs.size(), {{"axis", axis}});
  for (size_t i = 0; i < parts.size(); ++i) to.define(node.outputs[i], parts[i]);
  return {};
}

Status lower_concat(OnnxLowering& to, const Node& node) {
  OnnxLowering::Names inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(to.input(node, i));
  const int64_t axis = node.attributes.as<ConcatAttributes>().axis;
  to.define(node.outputs[0], to.emit("Concat", std::move(inputs), {{"axis", axis}}));
  return {};
}

// x as [.., 1, ..] behind the axis, repeated there, and the two axes made one.
Status lower_repeat_interleave(OnnxLowering& to, const Node& node) {
  const auto& [axis, repeats] = node.attributes.as<RepeatInterleaveAttributes>();
  Extents wide = to.extents(node.inputs[0]);
  wide.insert(wide.begin() + axis + 1, Extent{repeats});
  std::vector<int64_t> times(wide.size(), 1);
  times[static_cast<size_t>(axis) + 1] = repeats;
  const std::string apart = to.emit("Unsqueeze", {to.input(node, 0), to.integers({axis + 1})});
  const std::string repeated = to.emit("Expand", {apart, to.integers(times)});
  to.define(node.outputs[0], to.reshaped(repeated, wide, to.extents(node.outputs[0])));
  return {};
}

}  // namespace

const OnnxMapping* find_onnx_mapping(std::string_view op) {
  static constexpr auto kAll = std::to_array<OnnxMapping>({
      {"add", "Add"},
      {"add_scalar", nullptr, lower_add_scalar},
      {"broadcast_to", nullptr, lower_broadcast_to, true},
      {"cache_write", nullptr, lower_cache_write, false, true},
      {"cached_attention", nullptr, lower_cached_attention, false, true},
      {"cast", nullptr, lower_cast},
      {"concat", nullptr, lower_concat},
      {"constant", nullptr, lower_constant},
      {"div", "Div"},
      {"embedding", nullptr, lower_embedding},
      {"erf", "Erf"},
      {"exp", "Exp"},
      {"gelu", nullptr, lower_gelu},
      {"gelu_tanh", nullptr, lower_gelu_tanh},
      {"layer_norm", nullptr, lower_layer_norm},
      {"log", "Log"},
      {"matmul", nullptr, lower_matmul},
      {"mul", "Mul"},
      {"neg", "Neg"},
      {"relu", "Relu"},
      {"repeat_interleave", nullptr, lower_repeat_interleave},
      {"reshape", nullptr, lower_reshape, true},
      {"rms_norm", nullptr, lower_rms_norm},
      {"rope", nullptr, lower_rope},
      {"rsqrt", nullptr, lower_rsqrt},
      {"scale", nullptr, lower_scale},
      {"sigmoid", "Sigmoid"},
      {"silu", nullptr, lower_silu},
      {"slice", nullptr, lower_slice},
      {"softmax", nullptr, lower_softmax},
      {"split", nullptr, lower_split},
      {"sqrt", "Sqrt"},
      {"square", nullptr, lower_square},
      {"sub", "Sub"},
      {"sum", nullptr, lower_sum},
      {"tanh", "Tanh"},
      {"transpose", nullptr, lower_transpose},
  });
  const auto it = std::ranges::find(kAll, op, &OnnxMapping::op);
  return it == kAll.end() ? nullptr : &*it;
}

}  // namespace ingot
