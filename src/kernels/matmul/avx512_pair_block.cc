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
