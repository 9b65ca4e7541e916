// Matrix products, plain and with an elementwise program around them: each tile of the product goes through the program
// while it is in cache.
#include <algorithm>

#include "kernels/matmul/matmul.h"
#include "memory/variables.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/matmul_add.h"
#include "runtime/bindings.h"
#include "runtime/elementwise.h"

namespace ingot {
namespace {

using kernels::Matmul;
using kernels::MatmulShape;

MatmulShape shape_of(const MatmulExtents& extents, bool transpose_a, bool transpose_b, const Type& a, const Type& b) {
  MatmulShape shape;
  shape.a = a.dtype;
  shape.b = shape.pack_source = b.dtype;
  shape.rows = extents.rows;
  shape.n = extents.n;
  shape.k = extents.k;
  shape.transpose_a = transpose_a;
  shape.transpose_b = transpose_b;
  shape.batch = extents.batch;
  shape.batch_stride_a = extents.rows * extents.k;
  shape.batch_stride_b = extents.k * extents.n;
  shape.batch_stride_c = extents.rows * extents.n;
  return shape;
}

class Product {
 public:
  static Result<Product> create(MatmulShape shape, int threads) {
    shape.packed_b = kernels::pays_to_pack(shape);
    INGOT_ASSIGN(auto matmul, Matmul::create(shape, threads));
    return Product(std::move(matmul));
  }
  int64_t temporary_bytes() const {
    return matmul_->shape().packed_b ? static_cast<int64_t>(matmul_->packed_b_bytes()) : 0;
  }
  int64_t scratch_bytes() const { return static_cast<int64_t>(matmul_->scratch_bytes()); }
  int64_t max_tile_elements() const { return matmul_->max_tile_elements(); }

  // after(tile, thread) is called by the thread that computed the tile.
  template <class After>
  void run(const RunArguments& args, const std::byte* a, const std::byte* b, std::byte* c, const After& after) const {
    const std::byte* operand = packed(args, b);
    args.pool.run(matmul_->tiles(), [&](int64_t tile, int thread) {
      matmul_->run(tile, a, operand, c, thread, args.scratch_of(thread));
      after(matmul_->tile(tile), thread);
    });
  }

  // Each tile into memory of its thread's, dense and in f32: buffer(thread). Not where it accumulates.
  template <class Buffer, class After>
  void run_into(const RunArguments& args, const std::byte* a, const std::byte* b, const Buffer& buffer,
                const After& after) const {
    const std::byte* operand = packed(args, b);
    args.pool.run(matmul_->tiles(), [&](int64_t index, int thread) {
      const Matmul::Tile tile = matmul_->tile(index);
      matmul_->run_into(index, a, operand, buffer(thread), tile.column_end - tile.column_begin, thread,
                        args.scratch_of(thread));
      after(tile, thread);
    });
  }

 private:
  const std::byte* packed(const RunArguments& args, const std::byte* b) const {
    if (!matmul_->shape().packed_b) return b;
    args.pool.run(matmul_->pack_tiles(), [&](int64_t part, int thread) {
      matmul_->pack_b(part, b, args.temporary, thread, args.scratch_of(thread));
    });
    return args.temporary;
  }

  explicit Product(std::unique_ptr<Matmul> matmul) : matmul_(std::move(matmul)) {}

  std::unique_ptr<Matmul> matmul_;
};

constexpr auto kNothingAfter = [](const Matmul::Tile&, int) {};

KernelResult bind_matmul(const NodeView& node) {
  const auto& flags = node.node.attributes.as<MatmulAttributes>();
  INGOT_ASSIGN(const MatmulExtents extents, matmul_extents(node.input(0).shape, node.input(1).shape, flags));
  MatmulShape shape = shape_of(extents, flags.transpose_a, flags.transpose_b, node.input(0), node.input(1));
  shape.c = node.output(0).dtype;
  INGOT_ASSIGN(Product product, Product::create(shape, node.threads));
  const int64_t temporary = product.temporary_bytes(), scratch = product.scratch_bytes();
  return make_kernel(
      [product = std::move(product)](const RunArguments& args) {
        product.run(args, args.inputs[0], args.inputs[1], args.outputs[0], kNothingAfter);
      },
      temporary, scratch);
}

// The accumulator is copied to the output first where the plan did not put them in one place.
KernelResult bind_matmul_add(const NodeView& node) {
  const auto& flags = node.node.attributes.as<MatmulAttributes>();
  INGOT_ASSIGN(const MatmulExtents extents,
               matmul_extents(node.input(1).shape, node.input(2).shape, {flags.transpose_a, flags.transpose_b}));
  MatmulShape shape = shape_of(extents, flags.transpose_a, flags.transpose_b, node.input(1), node.input(2));
  shape.accumulate = true;
  INGOT_ASSIGN(Product product, Product::create(shape, node.threads));
  const int64_t temporary = product.temporary_bytes(), scratch = product.scratch_bytes(),
                elements = node.output(0).shape.elements();
  return make_kernel(
      [product = std::move(product), elements](const RunArguments& args) {
        bring_to_output(args, args.in(0), args.out(0), elements);
        product.run(args, args.inputs[1], args.inputs[2], args.outputs[0], kNothingAfter);
      },
      temporary, scratch);
}

// Where a linear's product goes, before its program runs over it.
struct ProductPlace {
  bool in_output = true;  // else each tile to its thread's scratch
  size_t output = 0;      // its own output, or, if nobody wants it, the first, where a result will replace it
};

ProductPlace place_of_product(const LinearAttributes& attributes, const ValueDtypes& dtypes) {
  const auto own = std::ranges::find(attributes.outputs, 0);
  const auto index = own == attributes.outputs.end() ? 0 : own - attributes.outputs.begin();
  const bool stores_product = attributes.program.empty() && attributes.outputs.size() == 1;
  return {stores_product || dtypes.outputs[static_cast<size_t>(index)] == DType::f32, static_cast<size_t>(index)};
}

class LinearKernel final : public NodeKernel {
 public:
  LinearKernel(Product product, ElementwiseRunner runner, MatrixView view, ValueDtypes dtypes, ProductPlace place)
      : product_(std::move(product)),
        runner_(std::move(runner)),
        view_(std::move(view)),
        dtypes_(std::move(dtypes)),
        place_(place) {
    temporary_bytes = product_.temporary_bytes();
    tile_scratch_ = align_up(product_.scratch_bytes());
    const int64_t tile = place_.in_output ? 0 : product_.max_tile_elements() * static_cast<int64_t>(sizeof(float));
    program_scratch_ = tile_scratch_ + align_up(tile);
    scratch_bytes = program_scratch_ + runner_.scratch_bytes();
  }

  void run(const RunArguments& args) const override {
    std::array<kernels::EwInput, kernels::kMaxEwRegisters> inputs;
    std::array<kernels::EwOutput, kernels::kMaxEwOutputs> outputs;
    const size_t input_count = view_.inputs.size() + 1, output_count = dtypes_.outputs.size();
    inputs[0] = {args.outputs[place_.output], view_.columns, 1};
    for (size_t i = 0; i < view_.inputs.size(); ++i)
      inputs[i + 1] = {args.inputs[i + 2], view_.inputs[i].row, view_.inputs[i].column, 0, 0, dtypes_.inputs[i + 2]};
    for (size_t i = 0; i < output_count; ++i)
      outputs[i] = {args.outputs[i], view_.columns, 0, 0, 0, dtypes_.outputs[i]};
    const std::span<kernels::EwInput> read(inputs.data(), input_count);
    const std::span<kernels::EwOutput> written(outputs.data(), output_count);
    place_.in_output ? run_in_output(args, read, written) : run_in_tiles(args, read, written);
  }

 private:
  void run_in_output(const RunArguments& args, std::span<const kernels::EwInput> inputs,
                     std::span<const kernels::EwOutput> outputs) const {
    product_.run(args, args.inputs[0], args.inputs[1], args.outputs[place_.output],
                 [&](const Matmul::Tile& tile, int thread) {
                   if (!runner_.empty()) run_program(args, inputs, outputs, tile, thread);
                 });
  }

  void run_in_tiles(const RunArguments& args, std::span<const kernels::EwInput> inputs,
                    std::span<const kernels::EwOutput> outputs) const {
    const auto buffer = [&](int thread) { return reinterpret_cast<float*>(args.scratch_of(thread) + tile_scratch_); };
    product_.run_into(args, args.inputs[0], args.inputs[1], buffer, [&](const Matmul::Tile& tile, int thread) {
      std::array<kernels::EwInput, kernels::kMaxEwRegisters> mine;
      std::ranges::copy(inputs, mine.begin());
      mine[0] = {buffer(thread), tile.column_end - tile.column_begin, 1, tile.row_begin, tile.column_begin};
      run_program(args, std::span(mine).first(inputs.size()), outputs, tile, thread);
    });
  }

  void run_program(const RunArguments& args, std::span<const kernels::EwInput> inputs,
                   std::span<const kernels::EwOutput> outputs, const Matmul::Tile& tile, int thread) const {
    runner_.run({inputs, outputs, args.random, view_.rows, view_.columns},
                {tile.row_begin, tile.row_end, tile.column_begin, tile.column_end},
                args.scratch_of(thread) + program_scratch_);
  }

  Product product_;
  ElementwiseRunner runner_;
  MatrixView view_;
  ValueDtypes dtypes_;
  ProductPlace place_;
  int64_t tile_scratch_ = 0, program_scratch_ = 0;  // bytes into a thread's scratch
};

KernelResult bind_linear(const NodeView& node) {
  const auto& attributes = node.node.attributes.as<LinearAttributes>();
  INGOT_ASSIGN(const MatmulExtents extents,
               matmul_extents(node.input(0).shape, node.input(1).shape, {false, attributes.transpose_b}));
  if (extents.batch != 1) return failed_error("linear with a batch of matrices has no kernel");
  std::vector<Shape> extras;
  for (size_t i = 2; i < node.inputs(); ++i) extras.push_back(node.input(i).shape);
  ValueDtypes dtypes = dtypes_of(node);
  INGOT_ASSIGN(MatrixView view, view_as_matrix(node.output(0).shape, extras, extents.n));
  INGOT_ASSIGN(ElementwiseRunner runner,
               ElementwiseRunner::create(attributes.program, extras.size() + 1, attributes.outputs, dtypes.outputs));
  const ProductPlace place = place_of_product(attributes, dtypes);
  MatmulShape shape = shape_of(extents, false, attributes.transpose_b, node.input(0), node.input(1));
  if (place.in_output) shape.c = dtypes.outputs[place.output];
  INGOT_ASSIGN(Product product, Product::create(shape, node.threads));
  return std::unique_ptr<NodeKernel>(
      new LinearKernel(std::move(product), std::move(runner), std::move(view), std::move(dtypes), place));
}

bool adds_to_f32(const NodeView& node) {
  return node.input(0).dtype == DType::f32 && node.output(0).dtype == DType::f32;
}

}  // namespace

std::span<const Binding> matmul_bindings() {
  static constexpr Binding kBindings[] = {{"linear", bind_linear, takes_any},
                                          {"matmul", bind_matmul, takes_any},
                                          {"matmul_add", bind_matmul_add, adds_to_f32}};
  return kBindings;
}

}  // namespace ingot
