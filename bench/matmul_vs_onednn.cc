// The fp32 products of a GPT-2 124M training step by this program's kernels and by oneDNN, in turn in one process.
// oneDNN in the form found fastest: primitives made for one thread, with scratchpads of ours, on tiles of rows inside
// our parallel region, weights in its own layout. Both sides pack weights before each product, as a training step must
// (they changed); the weight gradient's operands are plain, as the step has them.
//
//   build/bench/matmul_vs_onednn [--threads N] [--rows 1024] [--rounds 9]
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/system.h"
#include "kernels/huge_buffer.h"
#include "kernels/matmul/matmul.h"
#include "kernels/peak/peak.h"

namespace {

using dnnl::memory;
using ingot::ThreadPool;
using ingot::kernels::HugeBuffer;
using ingot::kernels::Matmul;
using ingot::kernels::MatmulShape;

constexpr size_t kAlignment = 128;

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// One of the three products of a linear layer Y[rows, n] = X[rows, k] W[k, n].
struct Product {
  const char* name;
  MatmulShape shape;
};

Product forward(int64_t rows, int64_t k, int64_t n) {
  return {"forward", {.rows = rows, .n = n, .k = k, .packed_b = true}};
}
Product input_gradient(int64_t rows, int64_t k, int64_t n) {
  return {"input gradient", {.rows = rows, .n = k, .k = n, .transpose_b = true, .packed_b = true}};
}
Product weight_gradient(int64_t rows, int64_t k, int64_t n) {
  return {"weight gradient", {.rows = k, .n = n, .k = rows, .transpose_a = true}};
}

struct Operands {
  explicit Operands(const MatmulShape& s) : a(s.rows * s.k), b(s.k * s.n), c(s.rows * s.n) {
    for (const HugeBuffer<float>* operand : {&a, &b})
      for (int64_t i = 0; i < operand->size(); ++i)
        operand->data()[i] = static_cast<float>(i * 2654435761u >> 16 & 255u) / 256.0f - 0.5f;
  }
  HugeBuffer<float> a, b, c;
};

class Ours {
 public:
  Ours(const MatmulShape& shape, const ThreadPool& pool)
      : pool_(pool),
        matmul_(Matmul::create(shape, pool.threads()).value()),
        packed_(static_cast<int64_t>(matmul_->packed_b_bytes()) + 1),
        stride_(aligned(matmul_->scratch_bytes())),
        scratch_(static_cast<int64_t>(stride_) * pool.threads() + 1) {}

  void pack(const Operands& o) {
    if (!matmul_->shape().packed_b) return;
    pool_.run(matmul_->pack_tiles(), [&](int64_t part, int thread) {
      matmul_->pack_b(part, o.b.data(), packed_.data(), thread, scratch(thread));
    });
  }
  void run(const Operands& o) {
    const void* b = matmul_->shape().packed_b ? static_cast<const void*>(packed_.data()) : o.b.data();
    pool_.run(matmul_->tiles(), [&](int64_t tile, int thread) {
      matmul_->run(tile, o.a.data(), b, o.c.data(), thread, scratch(thread));
    });
  }

 private:
  std::byte* scratch(int thread) { return scratch_.data() + stride_ * static_cast<size_t>(thread); }
  const ThreadPool& pool_;
  std::unique_ptr<Matmul> matmul_;
  HugeBuffer<std::byte> packed_;
  size_t stride_;
  HugeBuffer<std::byte> scratch_;
};

class OneDnn {
 public:
  // tile: rows of C that one primitive makes; divides shape.rows.
  OneDnn(const MatmulShape& shape, int64_t tile, const ThreadPool& pool)
      : shape_(shape), tile_(tile), pool_(pool), engine_(dnnl::engine::kind::cpu, 0) {
    using tag = memory::format_tag;
    using type = memory::data_type;
    // A transposed operand stands in memory with its strides exchanged.
    a_ = shape.transpose_a ? memory::desc({tile, shape.k}, type::f32, memory::dims{1, shape.rows})
                           : memory::desc({tile, shape.k}, type::f32, tag::ab);
    plain_b_ = memory::desc({shape.k, shape.n}, type::f32, shape.transpose_b ? tag::ba : tag::ab);
    const memory::desc any_b({shape.k, shape.n}, type::f32, tag::any);
    c_ = memory::desc({tile, shape.n}, type::f32, tag::ab);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    omp_set_num_threads(1);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a_, shape.packed_b ? any_b : plain_b_, c_),
                                                   attributes, engine_);
    product_ = dnnl::matmul(description);
    omp_set_num_threads(pool.threads());
    implementation_ = description.impl_info_str();
    b_ = description.weights_desc();
    packed_.emplace(static_cast<int64_t>(b_.get_size()));
    scratchpad_ = description.scratchpad_desc();
    stride_ = aligned(scratchpad_.get_size() + 1);
    scratch_.emplace(static_cast<int64_t>(stride_) * pool.threads());
    if (shape.packed_b) reorder_ = dnnl::reorder({engine_, plain_b_, engine_, b_});
  }

  const std::string& implementation() const { return implementation_; }

  void pack(const Operands& o) {
    if (!shape_.packed_b) return;
    dnnl::stream stream(engine_);  // the library's own threads
    reorder_.execute(stream, {{DNNL_ARG_FROM, memory(plain_b_, engine_, o.b.data())},
                              {DNNL_ARG_TO, memory(b_, engine_, packed_->data())}});
  }
  void run(const Operands& o) {
    const memory b(b_, engine_, shape_.packed_b ? static_cast<void*>(packed_->data()) : o.b.data());
    pool_.run(shape_.rows / tile_, [&](int64_t tile, int thread) {
      dnnl::stream stream(engine_);
      const int64_t step = shape_.transpose_a ? tile_ : tile_ * shape_.k;
      product_.execute(stream,
                       {{DNNL_ARG_SRC, memory(a_, engine_, o.a.data() + tile * step)},
                        {DNNL_ARG_WEIGHTS, b},
                        {DNNL_ARG_DST, memory(c_, engine_, o.c.data() + tile * tile_ * shape_.n)},
                        {DNNL_ARG_SCRATCHPAD,
                         memory(scratchpad_, engine_, scratch_->data() + stride_ * static_cast<size_t>(thread))}});
    });
  }

 private:
  MatmulShape shape_;
  int64_t tile_;
  const ThreadPool& pool_;
  dnnl::engine engine_;
  memory::desc a_, plain_b_, b_, c_, scratchpad_;
  dnnl::matmul product_;
  dnnl::reorder reorder_;
  std::string implementation_;
  std::optional<HugeBuffer<std::byte>> packed_, scratch_;
  size_t stride_ = 0;
};

template <class Side>
double seconds(Side& side, const Operands& operands) {
  const auto start = std::chrono::steady_clock::now();
  side.pack(operands);
  side.run(operands);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double largest_difference(const HugeBuffer<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < b.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a.data()[i]) - b[i]));
  return largest;
}

// Prints one line: each side's rate at its median, the median of the rounds' ratios.
void compare(const Product& product, int64_t tile, int rounds, const ThreadPool& pool) {
  const MatmulShape& s = product.shape;
  Operands operands(s);
  Ours ours(s, pool);
  OneDnn theirs(s, tile, pool);
  seconds(theirs, operands);
  const std::vector<float> expected(operands.c.data(), operands.c.data() + operands.c.size());
  seconds(ours, operands);
  const double difference = largest_difference(operands.c, expected);
  std::vector<double> a, b, ratios;
  for (int round = 0; round < rounds; ++round) {
    a.push_back(seconds(ours, operands));
    b.push_back(seconds(theirs, operands));
    ratios.push_back(b.back() / a.back());
  }
  const double flops = 2e-9 * static_cast<double>(s.rows) * static_cast<double>(s.n) * static_cast<double>(s.k);
  std::printf("| %-15s | %5ld x %5ld x %5ld | %4ld | %7.1f | %7.1f | %5.2f | %-18s | %.1e |\n", product.name,
              static_cast<long>(s.rows), static_cast<long>(s.k), static_cast<long>(s.n), static_cast<long>(tile),
              flops / median(a), flops / median(b), median(ratios), theirs.implementation().c_str(), difference);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int64_t threads = 0, rows = 1024, rounds = 9;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    int64_t* value = flag == "--threads" ? &threads : flag == "--rows" ? &rows : flag == "--rounds" ? &rounds : nullptr;
    if (value == nullptr) return std::fprintf(stderr, "unknown option %s\n", argv[i]), 2;
    *value = std::atoll(argv[i + 1]);
  }
  if (argc % 2 == 0 || rows < 256 || rows % 256 != 0 || rounds < 1)
    return std::fprintf(stderr, "--rows takes a multiple of 256, --rounds a count\n"), 2;
  const ThreadPool pool(ingot::default_threads(static_cast<int>(threads)));
  std::printf("peak on registers %.1f GFLOP/s, %d threads; GFLOP/s with packing, median of %ld rounds\n\n",
              ingot::kernels::fp32_peak_gflops(pool), pool.threads(), static_cast<long>(rounds));
  std::printf("| product | rows x k x n | tile | ours | oneDNN | ratio | oneDNN's choice | difference |\n");
  std::printf("|---|---|--:|--:|--:|--:|---|--:|\n");
  const std::pair<int64_t, int64_t> widths[] = {{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}};
  for (const auto& [k, n] : widths) {
    for (int64_t tile : {64, 256}) {
      compare(forward(rows, k, n), tile, static_cast<int>(rounds), pool);
      compare(input_gradient(rows, k, n), tile, static_cast<int>(rounds), pool);
    }
    for (int64_t tile : {64, 128}) compare(weight_gradient(rows, k, n), tile, static_cast<int>(rounds), pool);
  }
  return 0;
}
