// Sums: over leading axes (gradients of biases), trailing ones, any; and the squares of a gradient.
#include <algorithm>

#include "kernels/reduce/reduce.h"
#include "ops/sum.h"
#include "ops/sum_squares.h"
#include "runtime/bindings.h"
#include "runtime/staged_rows.h"

namespace ingot {
namespace {

// Rows that are widened before they are summed should stay in cache: smaller parts of them, and more.
int64_t rows_a_staged_partial(int64_t rows, int64_t columns) {
  return std::max<int64_t>(rows_a_tile(columns, 32768), (rows + 255) / 256);
}

KernelResult sum_leading(int64_t rows, int64_t columns, DType dtype) {
  const bool staged = is_narrow(dtype);
  const int64_t grain = staged ? rows_a_staged_partial(rows, columns) : rows_a_partial(rows, columns),
                parts = (rows + grain - 1) / grain;
  return make_kernel(
      [=](const RunArguments& args) {
        auto* partials = reinterpret_cast<float*>(args.temporary);
        const StagedRows x(args.inputs[0], dtype, columns);
        for_ranges(args, rows, grain, [&](int64_t begin, int64_t end, int thread) {
          const float* wide = x.read(begin, end - begin, reinterpret_cast<float*>(args.scratch_of(thread)));
          kernels::column_sums(wide, columns, columns, 0, end - begin, partials + begin / grain * columns);
        });
        for_ranges(args, columns, 512, [&](int64_t begin, int64_t end, int) {
          kernels::add_partials(partials, parts, columns, begin, end, false, args.out(0));
        });
      },
      parts * columns * 4, staged ? grain * columns * 4 : 0);
}

KernelResult sum_any(const NodeView& node, const std::vector<int64_t>& axes) {
  const Shape &in = node.input(0).shape, strides = dense_strides(in);
  std::vector<int64_t> kept, kept_strides, reduced, reduced_strides;
  for (int axis = 0; axis < in.rank(); ++axis) {
    const bool is_summed = std::ranges::find(axes, axis) != axes.end();
    (is_summed ? reduced : kept).push_back(in[axis]);
    (is_summed ? reduced_strides : kept_strides).push_back(strides[axis]);
  }
  const kernels::StridedSum shape{Shape(kept), Shape(kept_strides), Shape(reduced), Shape(reduced_strides)};
  const int64_t outputs = node.output(0).shape.elements();
  return make_kernel([shape, outputs](const RunArguments& args) {
    for_ranges(args, outputs, rows_a_tile(shape.reduced.elements()), [&](int64_t begin, int64_t end, int) {
      kernels::strided_sum(args.in(0), shape, begin, end, args.out(0));
    });
  });
}

bool sums_leading_axes(const Shape& in, const std::vector<int64_t>& axes) {
  bool is_leading = !axes.empty() && axes.size() < static_cast<size_t>(in.rank());
  for (size_t i = 0; i < axes.size(); ++i) is_leading = is_leading && axes[i] == static_cast<int64_t>(i);
  return is_leading;
}

bool sums_narrow_rows(const NodeView& node) {
  return node.output(0).dtype == DType::f32 &&
         sums_leading_axes(node.input(0).shape, node.node.attributes.as<SumAttributes>().axes);
}

KernelResult bind_sum(const NodeView& node) {
  const auto& axes = node.node.attributes.as<SumAttributes>().axes;
  const Shape in = node.input(0).shape;
  if (!sums_leading_axes(in, axes)) return sum_any(node, axes);
  const int64_t columns = node.output(0).shape.elements();
  return sum_leading(columns == 0 ? 0 : in.elements() / columns, columns, node.input(0).dtype);
}

KernelResult bind_sum_squares(const NodeView& node) {
  constexpr int64_t kGrain = 65536;
  const int64_t elements = node.input(0).shape.elements(), parts = (elements + kGrain - 1) / kGrain;
  return make_kernel(
      [=](const RunArguments& args) {
        auto* partials = reinterpret_cast<double*>(args.temporary);
        for_ranges(args, elements, kGrain, [&](int64_t begin, int64_t end, int) {
          partials[begin / kGrain] = kernels::sum_squares(args.in(0) + begin, end - begin);
        });
        double total = 0;
        for (int64_t i = 0; i < parts; ++i) total += partials[i];
        *args.out(0) = static_cast<float>(total);
      },
      std::max<int64_t>(parts, 1) * 8);
}

}  // namespace

std::span<const Binding> reduction_bindings() {
  static constexpr Binding kBindings[] = {{"sum", bind_sum, sums_narrow_rows}, {"sum_squares", bind_sum_squares}};
  return kBindings;
}

}  // namespace ingot
