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
  constexpr int kChains = 16;  // twelve just miss hiding six cycles of latency
  const auto a = (__m512bh)_mm512_set1_epi32(0x3f803f80), b = (__m512bh)_mm512_set1_epi32(0x3c003c00);
  // Each a value of its own that the compiler cannot see: it computes equal chains as one.
  __m512 sums[kChains];
#pragma GCC unroll 16
  for (int chain = 0; chain < kChains; ++chain) {
    sums[chain] = _mm512_set1_ps(static_cast<float>(chain));
    asm volatile("" : "+v"(sums[chain]));
  }
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm512_dpbf16_ps(sums[chain], a, b);
  }
#pragma GCC unroll 16
  for (int chain = 0; chain < kChains; ++chain) use(sums[chain]);
  return static_cast<double>(rounds) * kChains * 16 * 2 * 2;
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
