#include <algorithm>
#include <array>
#include <utility>

#include "kernels/matmul/pair_block.h"
#include "kernels/matmul/panels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "hwy/base.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma")
namespace ingot::kernels::avx512_bf16 {
namespace {

// For each word of the first and the second half of a panel's columns: its two halves among those of both rows.
struct ZipOrder {
  alignas(64) uint16_t halves[2][32];
};
constexpr ZipOrder zip_order() {
  ZipOrder order = {};
  for (uint16_t j = 0; j < 64; ++j) order.halves[j / 32][j % 32] = static_cast<uint16_t>(j / 2 + j % 2 * 32);
  return order;
}
constexpr ZipOrder kZipOrder = zip_order();

struct Avx512Pairs {
  static constexpr int kLanes = 16, kGroupRows = kAvx512PairRows;
  using Sum = __m512;
  [[gnu::always_inline]] static inline __m512 zero() { return _mm512_setzero_ps(); }
  [[gnu::always_inline]] static inline __m512 load_sum(const float* from) { return _mm512_loadu_ps(from); }
  [[gnu::always_inline]] static inline void store(__m512 sum, float* to) { _mm512_storeu_ps(to, sum); }
  [[gnu::always_inline]] static inline void store_rounded(__m512 sum, uint16_t* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(sum));
  }
  [[gnu::always_inline]] static inline __m512 add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
  [[gnu::always_inline]] static inline __m512i load(const uint32_t* from) { return _mm512_loadu_si512(from); }
  [[gnu::always_inline]] static inline __m512i broadcast(uint32_t pair) {
    return _mm512_set1_epi32(static_cast<int>(pair));
  }
  [[gnu::always_inline]] static inline void zip(const uint16_t* even, const uint16_t* odd, uint32_t* to) {
    const uint16_t* order = kZipOrder.halves[0];
    asm volatile("" : "+r"(order));  // NOLINT: not in registers all the time
    const __m512i low = _mm512_loadu_si512(even), high = _mm512_loadu_si512(odd);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(low, _mm512_load_si512(order), high));
    _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(low, _mm512_load_si512(order + 32), high));
  }
  [[gnu::always_inline]] static inline __m512 dot(__m512 sum, __m512i pair, __m512i pairs) {
    return _mm512_dpbf16_ps(sum, (__m512bh)pair, (__m512bh)pairs);
  }
};

#include "kernels/matmul/pair_block-inl.h"

}  // namespace
}  // namespace ingot::kernels::avx512_bf16
HWY_POP_ATTRIBUTES

namespace ingot::kernels {

PairBlock avx512_pair_block(int64_t rows) {
  return avx512_bf16::pair_block_of<avx512_bf16::Avx512Pairs>(rows);
}

}  // namespace ingot::kernels

#else

namespace ingot::kernels {

PairBlock avx512_pair_block(int64_t) {
  return nullptr;
}

}  // namespace ingot::kernels

#endif
