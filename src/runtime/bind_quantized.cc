// Products and lookups with 8-bit weights.
#include "kernels/quantized/quantized.h"
#include "ops/quantized_embedding.h"
#include "runtime/bindings.h"

namespace ingot {
namespace {

kernels::QuantizedMatrix matrix_of(const NodeView& node, size_t values) {
  const Shape& shape = node.input(values).shape;
  return {.outputs = shape[0],
          .inputs = shape[1],
          .group = node.node.attributes.as<QuantizedAttributes>().group,
          .values = nullptr,
          .scales = nullptr};
}

kernels::QuantizedMatrix with_data(kernels::QuantizedMatrix matrix, const RunArguments& args, size_t values) {
  matrix.values = args.in<int8_t>(values);
  matrix.scales = args.in(values + 1);
  return matrix;
}

// A tile's weights fit a first-level cache, where the rows find them again.
constexpr int64_t kTileBytes = 1 << 15;

KernelResult bind_quantized_linear(const NodeView& node) {
  const kernels::QuantizedMatrix matrix = matrix_of(node, 1);
  const int64_t rows = node.output(0).shape.elements() / std::max<int64_t>(matrix.outputs, 1);
  return make_kernel([matrix, rows](const RunArguments& args) {
    const kernels::QuantizedProduct call{
        .matrix = with_data(matrix, args, 1), .rows = rows, .x = args.in(0), .y = args.out(0)};
    for_ranges(args, matrix.outputs, (rows_a_tile(matrix.inputs, kTileBytes) + 3) / 4 * 4,
               [&](int64_t begin, int64_t end, int) { kernels::quantized_product(call, begin, end); });
  });
}

KernelResult bind_quantized_embedding(const NodeView& node) {
  const kernels::QuantizedMatrix matrix = matrix_of(node, 0);
  const int64_t rows = node.input(2).shape.elements();
  return make_kernel([matrix, rows](const RunArguments& args) {
    const kernels::QuantizedMatrix table = with_data(matrix, args, 0);
    for_ranges(args, rows, rows_a_tile(table.inputs), [&](int64_t begin, int64_t end, int) {
      kernels::quantized_rows(table, args.in<int32_t>(2), args.out(0), begin, end);
    });
  });
}

}  // namespace

std::span<const Binding> quantized_bindings() {
  static constexpr Binding kBindings[] = {{"quantized_embedding", bind_quantized_embedding},
                                          {"quantized_linear", bind_quantized_linear}};
  return kBindings;
}

}  // namespace ingot
