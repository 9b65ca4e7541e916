// Matrix products, plain and with an elementwise program around them: each tile of the product goes through the program
// while it is in cache.
#include <algorithm>
#include <optional>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/split_product.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/matmul_add.h"
#include "runtime/bindings.h"
#include "runtime/elementwise.h"

namespace ingot {
namespace {

using kernels::Matmul;
using kernels::MatmulShape;

MatmulShape shape_of(const MatmulExtents& extents, bool transpose_a, bool transpose_b) {
  MatmulShape shape;
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

// B is packed into temporary memory before the product where each packed element is used often enough to pay for it.
bool pays_to_pack(const MatmulShape& shape) {
  return shape.batch == 1 && shape.rows >= 64;
}

class Product {
 public:
  static Result<Product> create(MatmulShape shape, int threads) {
    if (kernels::SplitProduct::fits(shape)) return Product(kernels::SplitProduct(shape));
    shape.packed_b = pays_to_pack(shape);
    INGOT_ASSIGN(auto matmul, Matmul::create(shape, threads));
    return Product(std::move(matmul));
  }
  int64_t temporary_bytes() const {
    if (split_) return static_cast<int64_t>(split_->workspace_bytes());
    return matmul_->shape().packed_b ? static_cast<int64_t>(matmul_->packed_b_bytes()) : 0;
  }
  int64_t scratch_bytes() const { return split_ ? 0 : static_cast<int64_t>(matmul_->scratch_bytes()); }

  // after(tile, thread) is called by the thread that computed the tile.
  template <class After>
  void run(const RunArguments& args, const float* a, const float* b, float* c, const After& after) const {
    if (split_) return run_split(args, a, b, c, after);
    const std::byte* operand = reinterpret_cast<const std::byte*>(b);
    if (matmul_->shape().packed_b) {
      args.pool.run(matmul_->pack_tiles(), [&](int64_t part, int thread) {
        matmul_->pack_b(part, b, args.temporary, thread, args.scratch_of(thread));
      });
      operand = args.temporary;
    }
    args.pool.run(matmul_->tiles(), [&](int64_t tile, int thread) {
      matmul_->run(tile, a, operand, c, thread, args.scratch_of(thread));
      after(matmul_->tile(tile), thread);
    });
  }

 private:
  explicit Product(std::unique_ptr<Matmul> matmul) : matmul_(std::move(matmul)) {}
  explicit Product(const kernels::SplitProduct& split) : split_(split) {}

  template <class After>
  void run_split(const RunArguments& args, const float* a, const float* b, float* c, const After& after) const {
    args.pool.run(split_->parts(), [&](int64_t part, int) { split_->run_part(part, a, b, args.temporary); });
    args.pool.run(split_->tiles(), [&](int64_t tile, int thread) {
      split_->combine(tile, args.temporary, c);
      after(split_->tile(tile), thread);
    });
  }

  std::unique_ptr<Matmul> matmul_;  // or
  std::optional<kernels::SplitProduct> split_;
};

constexpr auto kNothingAfter = [](const Matmul::Tile&, int) {};

KernelResult bind_matmul(const NodeView& node) {
  const auto& flags = node.node.attributes.as<MatmulAttributes>();
  INGOT_ASSIGN(const MatmulExtents extents, matmul_extents(node.input(0).shape, node.input(1).shape, flags));
  INGOT_ASSIGN(Product product, Product::create(shape_of(extents, flags.transpose_a, flags.transpose_b), node.threads));
  const int64_t temporary = product.temporary_bytes(), scratch = product.scratch_bytes();
  return make_kernel(
      [product = std::move(product)](const RunArguments& args) {
        product.run(args, args.in(0), args.in(1), args.out(0), kNothingAfter);
      },
      temporary, scratch);
}

// The accumulator is copied to the output first where the plan did not put them in one place.
KernelResult bind_matmul_add(const NodeView& node) {
  const auto& flags = node.node.attributes.as<MatmulAttributes>();
  INGOT_ASSIGN(const MatmulExtents extents,
               matmul_extents(node.input(1).shape, node.input(2).shape, {flags.transpose_a, flags.transpose_b}));
  MatmulShape shape = shape_of(extents, flags.transpose_a, flags.transpose_b);
  shape.accumulate = true;
  INGOT_ASSIGN(Product product, Product::create(shape, node.threads));
  const int64_t temporary = product.temporary_bytes(), scratch = product.scratch_bytes(),
                elements = node.output(0).shape.elements();
  return make_kernel(
      [product = std::move(product), elements](const RunArguments& args) {
        bring_to_output(args, args.in(0), args.out(0), elements);
        product.run(args, args.in(1), args.in(2), args.out(0), kNothingAfter);
      },
      temporary, scratch);
}

class LinearKernel final : public NodeKernel {
 public:
  LinearKernel(Product product, ElementwiseRunner runner, MatrixView view, const LinearAttributes& attributes)
      : product_(std::move(product)),
        runner_(std::move(runner)),
        view_(std::move(view)),
        outputs_(attributes.outputs.size()) {
    // The product goes to its own output, or, if nobody wants it, where the first result will replace it.
    const auto own = std::ranges::find(attributes.outputs, 0);
    product_output_ = own == attributes.outputs.end() ? 0 : static_cast<size_t>(own - attributes.outputs.begin());
    temporary_bytes = product_.temporary_bytes();
    program_scratch_ = (product_.scratch_bytes() + 63) / 64 * 64;
    scratch_bytes = program_scratch_ + runner_.scratch_bytes();
  }

  void run(const RunArguments& args) const override {
    std::array<kernels::EwInput, kernels::kMaxEwRegisters> inputs;
    std::array<kernels::EwOutput, kernels::kMaxEwOutputs> outputs;
    float* c = args.out(product_output_);
    inputs[0] = {c, view_.columns, 1};
    for (size_t i = 0; i < view_.inputs.size(); ++i)
      inputs[i + 1] = {args.in(i + 2), view_.inputs[i].row, view_.inputs[i].column};
    for (size_t i = 0; i < outputs_; ++i) outputs[i] = {args.out(i), view_.columns, 0};
    const ElementwiseRunner::Call call{
        {inputs.data(), view_.inputs.size() + 1}, {outputs.data(), outputs_}, args.random, view_.rows, view_.columns};
    product_.run(args, args.in(0), args.in(1), c, [&](const Matmul::Tile& tile, int thread) {
      if (runner_.empty()) return;
      runner_.run(call, {tile.row_begin, tile.row_end, tile.column_begin, tile.column_end},
                  args.scratch_of(thread) + program_scratch_);
    });
  }

 private:
  Product product_;
  ElementwiseRunner runner_;
  MatrixView view_;
  size_t outputs_, product_output_ = 0;
  int64_t program_scratch_ = 0;
};

KernelResult bind_linear(const NodeView& node) {
  const auto& attributes = node.node.attributes.as<LinearAttributes>();
  INGOT_ASSIGN(const MatmulExtents extents,
               matmul_extents(node.input(0).shape, node.input(1).shape, {false, attributes.transpose_b}));
  if (extents.batch != 1) return failed_error("linear with a batch of matrices has no kernel");
  std::vector<Shape> extras;
  for (size_t i = 2; i < node.inputs(); ++i) extras.push_back(node.input(i).shape);
  INGOT_ASSIGN(MatrixView view, view_as_matrix(node.output(0).shape, extras, extents.n));
  INGOT_ASSIGN(ElementwiseRunner runner,
               ElementwiseRunner::create(attributes.program, extras.size() + 1, attributes.outputs));
  INGOT_ASSIGN(Product product, Product::create(shape_of(extents, false, attributes.transpose_b), node.threads));
  return std::unique_ptr<NodeKernel>(
      new LinearKernel(std::move(product), std::move(runner), std::move(view), attributes));
}

}  // namespace

std::span<const Binding> matmul_bindings() {
  static constexpr Binding kBindings[] = {
      {"linear", bind_linear}, {"matmul", bind_matmul}, {"matmul_add", bind_matmul_add}};
  return kBindings;
}

}  // namespace ingot
