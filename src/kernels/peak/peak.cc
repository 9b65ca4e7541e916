#include "kernels/peak/peak.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/clock.h"
#include "base/median.h"
#include "kernels/huge_buffer.h"
#include "kernels/instruction_set.h"
#include "kernels/matmul/matmul.h"
#include "kernels/peak/bf16_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/peak/peak.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// Twelve independent chains hide the latency of two multiply-add units and leave registers for the factors in AVX2.
double run_fma(int64_t rounds, float* sink) {
  const FloatVec a = set(0.999f), b = set(0.001f);
  // Different values, or the chains could be computed as one where multiplication and addition are apart.
  FloatVec s0 = set(1), s1 = set(2), s2 = set(3), s3 = set(4), s4 = set(5), s5 = set(6), s6 = set(7), s7 = set(8);
  FloatVec s8 = set(9), s9 = set(10), s10 = set(11), s11 = set(12);
  for (int64_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, a, b), s1 = hn::MulAdd(s1, a, b), s2 = hn::MulAdd(s2, a, b), s3 = hn::MulAdd(s3, a, b);
    s4 = hn::MulAdd(s4, a, b), s5 = hn::MulAdd(s5, a, b), s6 = hn::MulAdd(s6, a, b), s7 = hn::MulAdd(s7, a, b);
    s8 = hn::MulAdd(s8, a, b), s9 = hn::MulAdd(s9, a, b), s10 = hn::MulAdd(s10, a, b), s11 = hn::MulAdd(s11, a, b);
  }
  const FloatVec low = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), middle = hn::Add(hn::Add(s4, s5), hn::Add(s6, s7));
  const FloatVec high = hn::Add(hn::Add(s8, s9), hn::Add(s10, s11));
  *sink = sum_of_lanes(hn::Add(low, hn::Add(middle, high)));
  return static_cast<double>(rounds * lanes()) * 12 * 2;
}

// Around the caches, as the fastest copies of large memory are made. Aligned to 64 bytes; n a multiple of a vector.
void copy_all(const float* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; i += lanes()) hn::Stream(hn::Load(kFloat, from + i), kFloat, to + i);
  hwy::FlushStream();
}

float read_all(const float* x, int64_t n) {
  return sum_vectors(n, [&](int64_t i, auto access) HWY_ATTR { return access.load(x + i); });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(run_fma);
HWY_EXPORT(copy_all);
HWY_EXPORT(read_all);

// A trial of multiplying lasts about as long as an op of a training step. In shorter ones a shared CPU shows clocks
// that it does not hold: a tenth to a fifth more over 0.1 ms.
constexpr double kStretchSeconds = 0.005;

// The median rate (work / seconds) of trials within the budget: what the machine holds, whatever interrupts some of
// them and whatever clock it shows for a moment. trial() returns the work it did.
template <class Trial>
double usual_rate(Trial trial, double budget_seconds = kPeakSeconds) {
  trial();  // wakes threads, fills caches, raises the clock
  std::vector<double> rates;
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    const double work = trial();
    rates.push_back(work / seconds_since(start));
  } while (seconds_since(begin) < budget_seconds);
  return median(std::move(rates));
}

// The rate of loop(rounds) -> operations, run again and again by every thread of the pool at once.
template <class Loop>
double loop_gflops(const ThreadPool& pool, int64_t rounds, double budget_seconds, Loop loop) {
  std::vector<double> operations(static_cast<size_t>(pool.threads()));
  const auto trial = [&] {
    pool.run(pool.threads(), [&](int64_t tile, int) {
      const auto start = Clock::now();
      double& done = operations[static_cast<size_t>(tile)] = 0;
      do done += loop(rounds);
      while (seconds_since(start) < kStretchSeconds);
    });
    double total = 0;
    for (double done : operations) total += done;
    return total;
  };
  return 1e-9 * usual_rate(trial, budget_seconds);
}

// 64 MiB a thread, more than a core's share of any last-level cache, and 512 MiB at least: a few threads may have the
// whole cache to themselves (on Zen 5, 128 MiB are read three times as fast as 512). In pieces that threads take in
// turn. A trial reads as much as a token of a small model does, or an op of a large one.
int64_t floats_beyond_caches(const ThreadPool& pool) {
  return std::max(int64_t{128} << 20, (int64_t{16} << 20) * pool.threads());
}
constexpr int64_t kPiece = int64_t{1} << 18;
constexpr int64_t kPiecesPerTrial = 64;

template <class Piece>
double bandwidth(const ThreadPool& pool, int64_t floats, double bytes_per_float, Piece piece) {
  const int64_t pieces = kPiecesPerTrial * pool.threads();
  int64_t next = 0;
  return 1e-9 * usual_rate([&] {
           pool.run(pieces, [&](int64_t tile, int) { piece((next + tile * kPiece) % floats); });
           next = (next + pieces * kPiece) % floats;
           return static_cast<double>(pieces * kPiece) * bytes_per_float;
         });
}

}  // namespace

double fp32_peak_gflops(const ThreadPool& pool, double seconds) {
  return loop_gflops(pool, 50'000, seconds, [](int64_t rounds) {
    float sink = 0;
    const double operations = HWY_DYNAMIC_DISPATCH(run_fma)(rounds, &sink);
    return sink == 0 ? 0.0 : operations;
  });
}

Bf16Peak bf16_peak(const ThreadPool& pool, double seconds) {
  Bf16Peak peak;
  if (has_avx512_bf16()) peak = {loop_gflops(pool, 50'000, seconds, run_avx512_bf16), "AVX512-BF16"};
  if (has_amx_bf16()) {
    const double amx = loop_gflops(pool, 20'000, seconds, run_amx_bf16);
    if (amx > peak.gflops) peak = {amx, "AMX"};
  }
  return peak;
}

double peak_gflops(const ThreadPool& pool, DType dtype, double seconds) {
  const double narrow = dtype == DType::bf16 ? bf16_peak(pool, seconds).gflops : 0;
  return narrow > 0 ? narrow : fp32_peak_gflops(pool, seconds);
}

double matmul_gflops(const ThreadPool& pool, DType dtype) {
  MatmulShape shape{.rows = 128 * pool.threads(), .n = 1024, .k = 1024};
  shape.packed_b = true;
  shape.a = shape.b = shape.c = shape.pack_source = dtype;
  const auto created = Matmul::create(shape, pool.threads()).value();
  const Matmul& matmul = *created;
  const auto bytes = [&](int64_t elements) { return elements * static_cast<int64_t>(size_of(dtype)); };
  const HugeBuffer<std::byte> a(bytes(shape.rows * shape.k)), b(bytes(shape.k * shape.n)),
      c(bytes(shape.rows * shape.n));
  const HugeBuffer<std::byte> packed(static_cast<int64_t>(matmul.packed_b_bytes()));
  const auto slice = static_cast<int64_t>((matmul.scratch_bytes() + 4095) / 4096 * 4096);
  const HugeBuffer<std::byte> scratch(slice * pool.threads());
  pool.run(matmul.pack_tiles(), [&](int64_t part, int thread) {
    matmul.pack_b(part, b.data(), packed.data(), thread, scratch.data() + thread * slice);
  });
  return 1e-9 * usual_rate([&] {
           pool.run(matmul.tiles(), [&](int64_t tile, int thread) {
             matmul.run(tile, a.data(), packed.data(), c.data(), thread, scratch.data() + thread * slice);
           });
           return 2.0 * static_cast<double>(shape.rows * shape.n * shape.k);
         });
}

double read_bandwidth(const ThreadPool& pool) {
  const HugeBuffer<float> x(floats_beyond_caches(pool));
  std::atomic<float> sink{0};
  return bandwidth(pool, x.size(), sizeof(float), [&](int64_t at) {
    sink.store(HWY_DYNAMIC_DISPATCH(read_all)(x.data() + at, kPiece), std::memory_order_relaxed);
  });
}

double copy_bandwidth(const ThreadPool& pool) {
  const int64_t floats = floats_beyond_caches(pool) / 2;
  const HugeBuffer<float> from(floats), to(floats);
  return bandwidth(pool, from.size(), 2 * sizeof(float), [&](int64_t at) {
    HWY_DYNAMIC_DISPATCH(copy_all)(from.data() + at, to.data() + at, kPiece);
  });
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
