#include "kernels/peak/bf16_loops.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#endif

namespace ingot::kernels {

#if defined(__x86_64__) && defined(__linux__)
namespace {

// Keeps a value alive without storing it.
__attribute__((target("avx512f"))) inline void use(__m512 value) {
  asm volatile("" : : "v"(value));
}

struct alignas(64) TileConfig {  // Intel's LDTILECFG operand
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
// Not on a stack: the compiler does not see that the instruction reads more than the first bytes.
constexpr TileConfig kTileConfig;

}  // namespace

bool has_amx_bf16() {
  static const bool supported = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & kAmxBf16) || !(d & kAmxTile)) return false;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return supported;
}

__attribute__((target("avx512f,avx512bf16"))) double run_avx512_bf16(int64_t rounds) {
  const auto a = (__m512bh)_mm512_set1_epi32(0x3f803f80), b = (__m512bh)_mm512_set1_epi32(0x3c003c00);
  __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0, s9 = s0;
  __m512 s10 = s0, s11 = s0;
  for (int64_t i = 0; i < rounds; ++i) {
    s0 = _mm512_dpbf16_ps(s0, a, b), s1 = _mm512_dpbf16_ps(s1, a, b), s2 = _mm512_dpbf16_ps(s2, a, b);
    s3 = _mm512_dpbf16_ps(s3, a, b), s4 = _mm512_dpbf16_ps(s4, a, b), s5 = _mm512_dpbf16_ps(s5, a, b);
    s6 = _mm512_dpbf16_ps(s6, a, b), s7 = _mm512_dpbf16_ps(s7, a, b), s8 = _mm512_dpbf16_ps(s8, a, b);
    s9 = _mm512_dpbf16_ps(s9, a, b), s10 = _mm512_dpbf16_ps(s10, a, b), s11 = _mm512_dpbf16_ps(s11, a, b);
  }
  use(s0), use(s1), use(s2), use(s3), use(s4), use(s5), use(s6), use(s7), use(s8), use(s9), use(s10), use(s11);
  return static_cast<double>(rounds) * 12 * 16 * 2 * 2;
}

__attribute__((target("amx-tile,amx-bf16"))) double run_amx_bf16(int64_t rounds) {
  _tile_loadconfig(&kTileConfig);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return static_cast<double>(rounds) * 4 * 16 * 16 * 32 * 2;
}

#else

bool has_amx_bf16() {
  return false;
}
double run_avx512_bf16(int64_t) {
  return 0;
}
double run_amx_bf16(int64_t) {
  return 0;
}

#endif

}  // namespace ingot::kernels
