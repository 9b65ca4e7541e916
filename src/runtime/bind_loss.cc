// Softmax, cross-entropy, and the output projection fused with cross-entropy: there a chunk of rows at a time goes
// through logits, loss and gradients, so that the logits of a whole batch never exist.
#include <algorithm>
#include <cstring>

#include "kernels/layout/layout.h"
#include "kernels/matmul/matmul.h"
#include "kernels/softmax/cross_entropy.h"
#include "kernels/softmax/softcap.h"
#include "kernels/softmax/softmax.h"
#include "memory/variables.h"
#include "ops/linear_cross_entropy.h"
#include "runtime/bindings.h"

namespace ingot {
namespace {

using kernels::Matmul;
using kernels::MatmulShape;

int64_t last_extent(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape[-1];
}

KernelResult bind_softmax(const NodeView& node) {
  const int64_t n = last_extent(node.input(0).shape), rows = node.input(0).shape.elements() / std::max<int64_t>(n, 1);
  return make_kernel([n, rows](const RunArguments& args) {
    const kernels::Softmax call{.x = args.in(0), .x_stride = n, .y = args.out(0), .y_stride = n, .n = n};
    for_ranges(args, rows, rows_a_tile(n),
               [&](int64_t begin, int64_t end, int) { kernels::softmax(call, begin, end); });
  });
}

KernelResult bind_softmax_grad(const NodeView& node) {
  const int64_t n = last_extent(node.input(0).shape), rows = node.input(0).shape.elements() / std::max<int64_t>(n, 1);
  return make_kernel([n, rows](const RunArguments& args) {
    const kernels::SoftmaxGrad call{
        .y = args.in(0), .y_stride = n, .dy = args.in(1), .dy_stride = n, .dx = args.out(0), .dx_stride = n, .n = n};
    for_ranges(args, rows, rows_a_tile(n),
               [&](int64_t begin, int64_t end, int) { kernels::softmax_grad(call, begin, end); });
  });
}

// The kernel knows one value for "does not count"; the op says: any negative target.
void copy_targets(const int32_t* from, int32_t* to, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) to[i] = from[i] < 0 ? kernels::kIgnoredTarget : from[i];
}

double sum_in_order(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

// Temporary memory of the plain losses: targets [rows] i32, then losses [rows] f32.
KernelResult bind_cross_entropy(const NodeView& node) {
  const int64_t rows = node.input(0).shape[0], vocab = node.input(0).shape[1];
  return make_kernel(
      [rows, vocab](const RunArguments& args) {
        auto* targets = reinterpret_cast<int32_t*>(args.temporary);
        auto* losses = reinterpret_cast<float*>(targets + rows);
        copy_targets(args.in<int32_t>(1), targets, rows);
        const kernels::CrossEntropy call{
            .logits = args.in(0), .stride = vocab, .vocab = vocab, .targets = targets, .loss = losses};
        for_ranges(args, rows, rows_a_tile(vocab),
                   [&](int64_t begin, int64_t end, int) { kernels::cross_entropy(call, begin, end); });
        *args.out(0) = static_cast<float>(sum_in_order(losses, rows) * *args.in(2));
      },
      rows * 8);
}

KernelResult bind_cross_entropy_grad(const NodeView& node) {
  const int64_t rows = node.input(0).shape[0], vocab = node.input(0).shape[1];
  return make_kernel(
      [rows, vocab](const RunArguments& args) {
        auto* targets = reinterpret_cast<int32_t*>(args.temporary);
        copy_targets(args.in<int32_t>(1), targets, rows);
        const kernels::CrossEntropy call{.logits = args.in(0),
                                         .stride = vocab,
                                         .vocab = vocab,
                                         .targets = targets,
                                         .grad = args.out(0),
                                         .grad_stride = vocab,
                                         .scale = *args.in(2) * *args.in(3)};
        for_ranges(args, rows, rows_a_tile(vocab),
                   [&](int64_t begin, int64_t end, int) { kernels::cross_entropy(call, begin, end); });
      },
      rows * 4);
}

// Rows of logits that exist at one time: enough for the products to run at speed, few enough that the logits stay small
// beside the weights.
int64_t chunk_rows(int64_t rows) {
  constexpr int64_t kRows = 512;
  const int64_t chunks = (rows + kRows - 1) / kRows;
  return (rows + chunks - 1) / std::max<int64_t>(chunks, 1);
}

// The three products over one chunk of rows.
struct ChunkProducts {
  std::unique_ptr<Matmul> logits;    // [rows,V] = x · W
  std::unique_ptr<Matmul> dx;        // [rows,C] = dlogits · W^T
  std::unique_ptr<Matmul> dw_first;  // dW = its first chunk's
  std::unique_ptr<Matmul> dw;        // dW += this chunk's
};

class LinearCrossEntropy final : public NodeKernel {
 public:
  static KernelResult create(const NodeView& node, bool with_gradients) {
    auto kernel = std::make_unique<LinearCrossEntropy>();
    const auto& flags = node.node.attributes.as<LinearCrossEntropyAttributes>();
    kernel->rows_ = node.input(0).shape[0];
    kernel->width_ = node.input(0).shape[1];
    kernel->vocab_ = node.input(1).shape[flags.transpose_b ? 0 : 1];
    kernel->chunk_ = std::max<int64_t>(1, chunk_rows(kernel->rows_));
    kernel->with_gradients_ = with_gradients;
    kernel->softcap_ = static_cast<float>(flags.softcap);
    kernel->x_dtype_ = node.input(0).dtype;
    kernel->w_dtype_ = node.input(1).dtype;
    if (with_gradients) kernel->dx_dtype_ = node.output(1).dtype;
    if (kernel->softcap_ > 0) kernel->scratch_bytes = kernel->vocab_ * 4;
    for (int64_t rows : {kernel->chunk_, kernel->rows_ % kernel->chunk_}) {
      if (rows == 0) continue;
      INGOT_ASSIGN(ChunkProducts products, kernel->make_products(rows, flags.transpose_b, node.threads));
      kernel->products_.push_back(std::move(products));
    }
    kernel->place_temporaries();
    for (const ChunkProducts& p : kernel->products_)
      for (const Matmul* m : {p.logits.get(), p.dx.get(), p.dw_first.get(), p.dw.get()})
        if (m != nullptr)
          kernel->scratch_bytes = std::max(kernel->scratch_bytes, static_cast<int64_t>(m->scratch_bytes()));
    return std::unique_ptr<NodeKernel>(std::move(kernel));
  }

  // Inputs x [R,C], w, targets [R], scale, (dloss); outputs loss, (dx [R,C], dw).
  void run(const RunArguments& args) const override {
    auto* targets = reinterpret_cast<int32_t*>(args.temporary);
    auto* losses = reinterpret_cast<float*>(targets + rows_);
    auto* logits = reinterpret_cast<float*>(args.temporary + logits_offset());
    copy_targets(args.in<int32_t>(2), targets, rows_);
    const float scale = with_gradients_ ? *args.in(3) * *args.in(4) : 0.0f;
    if (rows_ == 0 && with_gradients_) std::fill_n(args.out(2), width_ * vocab_, 0.0f);
    const void *weights = nullptr, *weights_back = nullptr;
    if (rows_ > 0) weights = packed(args, *products_[0].logits, args.inputs[1], packed_offset_);
    if (rows_ > 0 && with_gradients_)
      weights_back = packed(args, *products_[0].dx, args.inputs[1], packed_back_offset_);
    for (int64_t begin = 0; begin < rows_; begin += chunk_) {
      const int64_t count = std::min(chunk_, rows_ - begin);
      const ChunkProducts& products = count == chunk_ ? products_[0] : products_[1];
      const std::byte* x = row(args.inputs[0], x_dtype_, begin);
      product(args, *products.logits, x, weights, logits);
      kernels::CrossEntropy call{
          .logits = logits, .stride = vocab_, .vocab = vocab_, .targets = targets + begin, .loss = losses + begin};
      if (with_gradients_) {
        call.grad = logits;
        call.grad_stride = vocab_;
        call.scale = scale;
        if (softcap_ == 0) call.grad_dtype = x_dtype_;
      }
      for_ranges(args, count, rows_a_tile(vocab_), [&](int64_t first, int64_t last, int thread) {
        if (softcap_ == 0) return kernels::cross_entropy(call, first, last);
        for (int64_t at = first; at < last; ++at) {
          capped_cross_entropy(call, at, reinterpret_cast<float*>(args.scratch_of(thread)));
          if (with_gradients_ && is_narrow(x_dtype_)) round_in_place(logits + at * vocab_);
        }
      });
      if (!with_gradients_) continue;
      product(args, *products.dx, logits, weights_back, row(args.outputs[1], dx_dtype_, begin));
      const Matmul& dw = begin == 0 ? *products.dw_first : *products.dw;
      const bool transposed = dw.shape().rows == vocab_;
      const void *dlogits = logits, *rows = x;
      product(args, dw, transposed ? dlogits : rows, packed(args, dw, transposed ? rows : dlogits, packed_dw_offset_),
              args.out(2));
    }
    *args.out(0) = static_cast<float>(sum_in_order(losses, rows_) * *args.in(3));
  }

 private:
  template <class Byte>
  Byte* row(Byte* matrix, DType dtype, int64_t at) const {
    return matrix + at * width_ * static_cast<int64_t>(size_of(dtype));
  }

  // The gradient of a row of logits as the products read it, in the first half of its memory.
  void round_in_place(float* gradient) const {
    constexpr int64_t kChunk = 512;
    uint16_t buffer[kChunk];
    for (int64_t begin = 0; begin < vocab_; begin += kChunk) {
      const int64_t count = std::min(kChunk, vocab_ - begin);
      kernels::cast(gradient + begin, DType::f32, buffer, x_dtype_, count);
      std::memcpy(reinterpret_cast<uint16_t*>(gradient) + begin, buffer, static_cast<size_t>(count) * sizeof(uint16_t));
    }
  }

  // One row; `capped` [V] holds its capped logits, which the gradient needs when it has taken their place.
  void capped_cross_entropy(kernels::CrossEntropy call, int64_t row, float* capped) const {
    kernels::softcap(call.logits + row * vocab_, softcap_, vocab_, capped);
    call.logits = capped;
    call.targets += row;
    call.loss += row;
    if (call.grad != nullptr) call.grad += row * vocab_;
    kernels::cross_entropy(call, 0, 1);
    if (call.grad != nullptr) kernels::softcap_grad(capped, softcap_, vocab_, call.grad);
  }

  int64_t logits_offset() const { return align_up(rows_ * 8); }

  // Behind targets and losses: one chunk of logits, then the weights in the layouts of the products that read them once
  // for each chunk (with a single chunk packing would not pay), and what is summed into the weights' gradient.
  void place_temporaries() {
    temporary_bytes = logits_offset() + align_up(chunk_ * vocab_ * 4);
    if (products_.empty()) return;
    const auto place = [&](const Matmul* matmul) {
      const int64_t offset = temporary_bytes;
      if (matmul != nullptr && matmul->shape().packed_b)
        temporary_bytes += align_up(static_cast<int64_t>(matmul->packed_b_bytes()));
      return offset;
    };
    packed_offset_ = place(products_[0].logits.get());
    packed_back_offset_ = place(products_[0].dx.get());
    packed_dw_offset_ = place(products_[0].dw.get());
  }

  // The second operand as the product wants it: packed now at `offset` of the temporary memory, or as it is.
  static const void* packed(const RunArguments& args, const Matmul& matmul, const void* b, int64_t offset) {
    if (!matmul.shape().packed_b) return b;
    std::byte* to = args.temporary + offset;
    args.pool.run(matmul.pack_tiles(),
                  [&](int64_t part, int thread) { matmul.pack_b(part, b, to, thread, args.scratch_of(thread)); });
    return to;
  }

  Result<ChunkProducts> make_products(int64_t rows, bool transpose_b, int threads) const {
    ChunkProducts products;
    MatmulShape logits{.rows = rows, .n = vocab_, .k = width_, .transpose_b = transpose_b};
    logits.packed_b = rows_ > chunk_;
    logits.a = x_dtype_;
    logits.b = logits.pack_source = w_dtype_;
    INGOT_ASSIGN(products.logits, Matmul::create(logits, threads));
    if (!with_gradients_) return products;
    // Gradients of logits stand where these stood: rounded, a row is half as long.
    const int64_t stride = is_narrow(x_dtype_) ? 2 * vocab_ : vocab_;
    MatmulShape dx = logits;
    dx.n = width_;
    dx.k = vocab_;
    dx.transpose_b = !transpose_b;
    dx.lda = stride;
    dx.c = dx_dtype_;
    INGOT_ASSIGN(products.dx, Matmul::create(dx, threads));
    // dW is [V,C] = dlogits^T · x where W is [V,C], and [C,V] = x^T · dlogits where it is [C,V].
    MatmulShape dw{
        .rows = transpose_b ? vocab_ : width_, .n = transpose_b ? width_ : vocab_, .k = rows, .transpose_a = true};
    (transpose_b ? dw.lda : dw.ldb) = stride;
    // Where it is the rows of x, each panel meets the whole vocabulary.
    dw.packed_b = transpose_b;
    dw.a = dw.b = dw.pack_source = x_dtype_;
    INGOT_ASSIGN(products.dw_first, Matmul::create(dw, threads));
    dw.accumulate = true;
    INGOT_ASSIGN(products.dw, Matmul::create(dw, threads));
    return products;
  }

  static void product(const RunArguments& args, const Matmul& matmul, const void* a, const void* b, void* c) {
    args.pool.run(matmul.tiles(),
                  [&](int64_t tile, int thread) { matmul.run(tile, a, b, c, thread, args.scratch_of(thread)); });
  }

  int64_t rows_ = 0, width_ = 0, vocab_ = 0, chunk_ = 1;
  int64_t packed_offset_ = 0, packed_back_offset_ = 0, packed_dw_offset_ = 0;
  float softcap_ = 0;  // 0: none
  DType x_dtype_ = DType::f32, w_dtype_ = DType::f32, dx_dtype_ = DType::f32;
  bool with_gradients_ = false;
  std::vector<ChunkProducts> products_;  // for a full chunk, and for the last one if it is shorter
};

// The loss and the weights' gradient are written in f32.
bool gives_wide_gradients(const NodeView& node) {
  return node.output(0).dtype == DType::f32 && (node.outputs() < 3 || node.output(2).dtype == DType::f32);
}

}  // namespace

std::span<const Binding> loss_bindings() {
  static constexpr Binding kBindings[] = {
      {"cross_entropy", bind_cross_entropy},
      {"cross_entropy_grad", bind_cross_entropy_grad},
      {"linear_cross_entropy", [](const NodeView& node) { return LinearCrossEntropy::create(node, false); },
       gives_wide_gradients},
      {"linear_cross_entropy_grad", [](const NodeView& node) { return LinearCrossEntropy::create(node, true); },
       gives_wide_gradients},
      {"softmax", bind_softmax},
      {"softmax_grad", bind_softmax_grad}};
  return kBindings;
}

}  // namespace ingot
