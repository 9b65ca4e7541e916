// Ops that move elements without computing: they are strided copies, or nothing at all where the memory plan made their
// outputs views.
#include <cstring>

#include "kernels/layout/layout.h"
#include "ops/concat.h"
#include "ops/constant.h"
#include "ops/mask_scores.h"
#include "ops/repeat_interleave.h"
#include "ops/slice.h"
#include "ops/split.h"
#include "ops/transpose.h"
#include "runtime/bindings.h"

namespace ingot {
namespace {

using kernels::StridedCopy;

// One copy from an input to an output, offsets in elements.
struct Move {
  size_t input = 0, output = 0;
  int64_t from_offset = 0, to_offset = 0;
  StridedCopy copy;
};

// Axes of extent 1 dropped and axes that lie alike in both joined, so that the rows of the copy are long.
StridedCopy simplified(const StridedCopy& copy) {
  std::vector<int64_t> extents, from, to;
  for (int axis = 0; axis < copy.shape.rank(); ++axis) {
    const int64_t extent = copy.shape[axis];
    if (extent == 1) continue;
    if (!extents.empty() && from.back() == copy.from_strides[axis] * extent &&
        to.back() == copy.to_strides[axis] * extent) {
      extents.back() *= extent;
      from.back() = copy.from_strides[axis];
      to.back() = copy.to_strides[axis];
      continue;
    }
    extents.push_back(extent);
    from.push_back(copy.from_strides[axis]);
    to.push_back(copy.to_strides[axis]);
  }
  if (extents.empty()) return {{1}, {1}, {1}, copy.size};
  return {Shape(extents), Shape(from), Shape(to), copy.size};
}

Status check_width(const NodeView& node) {
  for (size_t i = 0; i < node.inputs(); ++i)
    if (size_of(node.input(i).dtype) != 4)
      return failed_error("{} of {} has no kernel", node.node.op->name, name_of(node.input(i).dtype));
  return {};
}

KernelResult moves_kernel(const NodeView& node, std::vector<Move> moves) {
  INGOT_TRY(check_width(node));
  for (Move& move : moves) move.copy = simplified(move.copy);
  return make_kernel([moves = std::move(moves)](const RunArguments& args) {
    for (const Move& move : moves) {
      const auto* source = args.in<uint32_t>(move.input) + move.from_offset;
      auto* destination = args.out<uint32_t>(move.output) + move.to_offset;
      for_ranges(
          args, kernels::rows_of(move.copy), rows_a_tile(move.copy.shape[-1]),
          [&](int64_t begin, int64_t end, int) { kernels::strided_copy(move.copy, source, destination, begin, end); });
    }
  });
}

KernelResult bind_reshape(const NodeView& node) {
  const Shape flat{node.output(0).shape.elements()};
  return moves_kernel(node, {{0, 0, 0, 0, {flat, {1}, {1}}}});
}

KernelResult bind_transpose(const NodeView& node) {
  const auto& permutation = node.node.attributes.as<TransposeAttributes>().permutation;
  const Shape in = dense_strides(node.input(0).shape), &out = node.output(0).shape;
  Shape from = out;
  for (int axis = 0; axis < out.rank(); ++axis)
    from[axis] = in[static_cast<int>(permutation[static_cast<size_t>(axis)])];
  return moves_kernel(node, {{0, 0, 0, 0, {out, from, dense_strides(out)}}});
}

KernelResult bind_parts(const NodeView& node) {
  const Shape from = dense_strides(node.input(0).shape);
  std::vector<Move> moves;
  for (size_t i = 0; i < node.outputs(); ++i) {
    const PartOf part = (*node.node.op->traits.part)(node.node.attributes, static_cast<int32_t>(i));
    const Shape& out = node.output(i).shape;
    moves.push_back({0, i, part.start * from[static_cast<int>(part.axis)], 0, {out, from, dense_strides(out)}});
  }
  return moves_kernel(node, std::move(moves));
}

KernelResult bind_concat(const NodeView& node) {
  const auto axis = static_cast<int>(node.node.attributes.as<ConcatAttributes>().axis);
  const Shape to = dense_strides(node.output(0).shape);
  std::vector<Move> moves;
  int64_t at = 0;
  for (size_t i = 0; i < node.inputs(); ++i) {
    const Shape& in = node.input(i).shape;
    moves.push_back({i, 0, 0, at * to[axis], {in, dense_strides(in), to}});
    at += in[axis];
  }
  return moves_kernel(node, std::move(moves));
}

KernelResult bind_broadcast_to(const NodeView& node) {
  const Shape &in = node.input(0).shape, &out = node.output(0).shape, strides = dense_strides(in);
  Shape from = out;
  for (int i = 1; i <= out.rank(); ++i) from[-i] = i <= in.rank() && in[-i] != 1 ? strides[-i] : 0;
  return moves_kernel(node, {{0, 0, 0, 0, {out, from, dense_strides(out)}}});
}

// The output's axis seen as [extent, repeats].
KernelResult bind_repeat_interleave(const NodeView& node) {
  const auto& a = node.node.attributes.as<RepeatInterleaveAttributes>();
  const auto axis = static_cast<int>(a.axis);
  const Shape& in = node.input(0).shape;
  int64_t before = 1, below = 1;
  for (int i = 0; i < in.rank(); ++i) (i < axis ? before : below) *= i == axis ? 1 : in[i];
  const Shape extents{before, in[axis], a.repeats, below};
  return moves_kernel(node, {{0, 0, 0, 0, {extents, {in[axis] * below, below, 0, 1}, dense_strides(extents)}}});
}

KernelResult bind_constant(const NodeView& node) {
  const auto& constant = node.node.attributes.as<ConstantAttributes>();
  const DType dtype = node.output(0).dtype;
  if (dtype != DType::f32 && dtype != DType::i32) return failed_error("a constant of {} has no kernel", name_of(dtype));
  std::vector<uint32_t> words;
  for (double value : constant.values)
    words.push_back(dtype == DType::f32 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                                        : static_cast<uint32_t>(static_cast<int32_t>(value)));
  const int64_t elements = node.output(0).shape.elements();
  return make_kernel([words = std::move(words), elements](const RunArguments& args) {
    auto* out = args.out<uint32_t>(0);
    for_ranges(args, elements, 65536, [&](int64_t begin, int64_t end, int) {
      if (words.size() == 1)
        std::fill(out + begin, out + end, words[0]);
      else
        std::copy(words.begin() + begin, words.begin() + end, out + begin);
    });
  });
}

KernelResult bind_mask_scores(const NodeView& node) {
  const auto& a = node.node.attributes.as<MaskScoresAttributes>();
  const Shape& shape = node.input(0).shape;
  const auto fill = static_cast<float>(a.fill);
  return make_kernel([shape, window = a.window, fill](const RunArguments& args) {
    const int64_t heads = shape[1], tokens = shape[2], keys = shape[3];
    for_ranges(args, shape[0] * heads * tokens, rows_a_tile(keys), [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t t = row % tokens, b = row / (heads * tokens);
        int64_t first = std::max<int64_t>(args.in<int32_t>(1)[b * tokens + t], window > 0 ? t - window + 1 : 0);
        first = std::clamp<int64_t>(first, 0, t + 1);
        const float* in = args.in(0) + row * keys;
        float* out = args.out(0) + row * keys;
        std::fill(out, out + first, fill);
        std::copy(in + first, in + t + 1, out + first);
        std::fill(out + t + 1, out + keys, fill);
      }
    });
  });
}

}  // namespace

std::span<const Binding> movement_bindings() {
  static constexpr Binding kBindings[] = {{"broadcast_to", bind_broadcast_to},
                                          {"concat", bind_concat},
                                          {"constant", bind_constant},
                                          {"mask_scores", bind_mask_scores},
                                          {"repeat_interleave", bind_repeat_interleave},
                                          {"reshape", bind_reshape},
                                          {"slice", bind_parts},
                                          {"split", bind_parts},
                                          {"transpose", bind_transpose}};
  return kBindings;
}

}  // namespace ingot
