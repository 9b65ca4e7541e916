// 16-bit operands of a product: packed in pairs of steps (panels.h), and widened to what the fp32 core takes. Included
// once for each instruction set (see Highway's foreach_target.h).
#if defined(INGOT_KERNELS_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_PAIRS_INL_H_
#undef INGOT_KERNELS_PAIRS_INL_H_
#else
#define INGOT_KERNELS_PAIRS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/layout/half-inl.h"
#include "kernels/matmul/gemm-inl.h"
#include "kernels/matmul/panels.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

HWY_INLINE uint32_t word_at(const uint16_t* at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// to[p, j] = the pair p of line j, for `count` lines with k contiguous in memory, `stride` apart; to's rows are `width`
// words.
HWY_INLINE void pack_pairs_along(int64_t count, int64_t depth, const uint16_t* from, int64_t stride, int64_t width,
                                 uint32_t* to) {
  const int64_t whole = depth / 2;
  int64_t line = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::RebindToUnsigned<FloatTag> words;
  for (; line + lanes() <= count; line += lanes()) {
    const auto four_pairs = [&](int64_t i, int64_t p) HWY_ATTR {
      return hn::BitCast(words, load_every_fourth_row(from + (line + i) * stride + 2 * p, stride));
    };
    int64_t p = 0;
    for (; p + 4 <= whole; p += 4)
      store_transposed(words, four_pairs(0, p), four_pairs(1, p), four_pairs(2, p), four_pairs(3, p),
                       to + p * width + line, width);
    for (; p < whole; ++p)
      for (int64_t i = 0; i < lanes(); ++i) to[p * width + line + i] = word_at(from + (line + i) * stride + 2 * p);
  }
#endif
  for (; line < count; ++line)
    for (int64_t p = 0; p < whole; ++p) to[p * width + line] = word_at(from + line * stride + 2 * p);
  for (int64_t j = 0; j < count && depth % 2 != 0; ++j) to[whole * width + j] = from[j * stride + depth - 1];
}

// to[j] = (even[j], odd[j]); odd may be null for zeros.
HWY_INLINE void zip(int64_t n, const uint16_t* even, const uint16_t* odd, uint32_t* to) {
  const hn::RebindToUnsigned<FloatTag> words;
  int64_t j = 0;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  // Halves of two whole vectors, each word's from either; half the instructions of widening both.
  const hn::Repartition<uint16_t, FloatTag> halves;
  const auto lower = hn::BitCast(halves, hn::Or(hn::Iota(words, 0), hn::ShiftLeft<16>(hn::Iota(words, 32))));
  const auto upper = hn::Add(lower, hn::Set(halves, 16));
  for (; j + 2 * lanes() <= n; j += 2 * lanes()) {
    const auto low = hn::LoadU(halves, even + j), high = odd != nullptr ? hn::LoadU(halves, odd + j) : hn::Zero(halves);
    _mm512_storeu_si512(to + j, _mm512_permutex2var_epi16(low.raw, lower.raw, high.raw));
    _mm512_storeu_si512(to + j + lanes(), _mm512_permutex2var_epi16(low.raw, upper.raw, high.raw));
  }
#endif
  for (; j + lanes() <= n; j += lanes()) {
    const auto low = hn::PromoteTo(words, hn::LoadU(kHalf, even + j));
    const auto high = odd != nullptr ? hn::PromoteTo(words, hn::LoadU(kHalf, odd + j)) : hn::Zero(words);
    hn::StoreU(hn::Or(low, hn::ShiftLeft<16>(high)), words, to + j);
  }
  for (; j < n; ++j) to[j] = even[j] | static_cast<uint32_t>(odd ? odd[j] : 0) << 16;
}

// Panel [pairs_of(depth), kPanelColumns] from B [depth, columns], or [columns, depth] where transposed. Columns beyond
// the end become zero.
HWY_INLINE void pack_pair_panel(int64_t depth, int64_t columns, const uint16_t* b, int64_t ldb, bool transposed,
                                uint32_t* panel) {
  if (transposed) {
    pack_pairs_along(columns, depth, b, ldb, kPanelColumns, panel);
  } else {
    for (int64_t p = 0; p < depth; p += 2)
      zip(columns, b + p * ldb, p + 1 < depth ? b + (p + 1) * ldb : nullptr, panel + p / 2 * kPanelColumns);
  }
  for (int64_t p = 0; p < pairs_of(depth) && columns < kPanelColumns; ++p)
    std::fill(panel + p * kPanelColumns + columns, panel + (p + 1) * kPanelColumns, 0u);
}

// The same from f32, rounded.
HWY_INLINE void pack_pair_panel(int64_t depth, int64_t columns, const float* b, int64_t ldb, bool transposed,
                                DType dtype, uint32_t* panel) {
  constexpr int64_t kSteps = 64;
  uint16_t rounded[kSteps * kPanelColumns];
  for (int64_t begin = 0; begin < depth; begin += kSteps) {
    const int64_t steps = std::min(kSteps, depth - begin);
    const int64_t lines = transposed ? columns : steps, length = transposed ? steps : columns,
                  stride = transposed ? kSteps : kPanelColumns;
    const float* from = b + (transposed ? begin : begin * ldb);
    for (int64_t line = 0; line < lines; ++line) narrow(from + line * ldb, dtype, rounded + line * stride, length);
    pack_pair_panel(steps, columns, rounded, stride, transposed, panel + begin / 2 * kPanelColumns);
  }
}

// Pairs [pairs_of(depth), width] become fp32 [depth, width]. Whole vectors are read and written: up to a vector less
// one beyond the end.
HWY_INLINE void widen_pairs(int64_t depth, int64_t width, const uint32_t* pairs, DType dtype, float* to) {
  const hn::RebindToUnsigned<FloatTag> words;
  const hn::RebindToSigned<FloatTag> whole;
  const auto low_of = [&](auto word) HWY_ATTR {
    if (dtype == DType::bf16) return hn::BitCast(kFloat, hn::ShiftLeft<16>(word));
    const auto low = hn::And(word, hn::Set(words, 0xffff));
    return float_of_f16(hn::DemoteTo(kHalf, hn::BitCast(whole, low)));
  };
  const auto high_of = [&](auto word) HWY_ATTR {
    if (dtype == DType::bf16) return hn::BitCast(kFloat, hn::And(word, hn::Set(words, 0xffff0000)));
    return float_of_f16(hn::DemoteTo(kHalf, hn::BitCast(whole, hn::ShiftRight<16>(word))));
  };
  for (int64_t p = 0; p < depth; p += 2) {
    const uint32_t* from = pairs + p / 2 * width;
    float* row = to + p * width;
    for (int64_t j = 0; j < width; j += lanes()) hn::StoreU(low_of(hn::LoadU(words, from + j)), kFloat, row + j);
    if (p + 1 == depth) return;
    for (int64_t j = 0; j < width; j += lanes())
      hn::StoreU(high_of(hn::LoadU(words, from + j)), kFloat, row + width + j);
  }
}

// A[rows, depth] from memory as [depth, rows], as pairs, to groups of rows (pack_groups).
HWY_NOINLINE void pack_pairs_transposed(int64_t rows, int64_t depth, const uint16_t* a, int64_t lda, uint32_t* lines,
                                        uint32_t* packed) {
  pack_groups(rows, pairs_of(depth), lines, packed, [&](int64_t p, uint32_t* line) HWY_ATTR {
    ask_for_row(a + 2 * (p + kStepsAhead) * lda, rows);
    ask_for_row(a + (2 * (p + kStepsAhead) + 1) * lda, rows);
    zip(rows, a + 2 * p * lda, 2 * p + 1 < depth ? a + (2 * p + 1) * lda : nullptr, line);
  });
}

// The same widened to fp32.
HWY_NOINLINE void pack_widened_transposed(int64_t rows, int64_t depth, const uint16_t* a, DType dtype, int64_t lda,
                                          float* lines, float* packed) {
  pack_groups(rows, depth, lines, packed, [&](int64_t p, float* line) HWY_ATTR {
    ask_for_row(a + (p + kStepsAhead) * lda, rows);
    widen(a + p * lda, dtype, line, rows);
  });
}

// A panel of fp32 [depth, kPanelColumns] from 16-bit B in memory. `pairs` has room for a panel of them.
HWY_NOINLINE void pack_widened_panel(int64_t depth, int64_t columns, const uint16_t* b, DType dtype, int64_t ldb,
                                     bool transposed, uint32_t* pairs, float* panel) {
  if (transposed) {
    pack_pair_panel(depth, columns, b, ldb, true, pairs);
    return widen_pairs(depth, kPanelColumns, pairs, dtype, panel);
  }
  for (int64_t p = 0; p < depth; ++p) {
    float* to = panel + p * kPanelColumns;
    widen(b + p * ldb, dtype, to, columns);
    std::fill(to + columns, to + kPanelColumns, 0.0f);
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_PAIRS_INL_H_
