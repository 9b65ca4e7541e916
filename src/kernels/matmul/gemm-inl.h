// The register-blocked core of every fp32 product: a few rows of C times a panel of columns, summed over one block of
// k. Included once for each instruction set (see Highway's foreach_target.h).
//
// Why not oneDNN 2.6: its packed (brgemm) products take only dense A and C, so not a range of columns, a slice of q/k/v
// or X transposed. This one takes any stride, allocates nothing, has one packed layout for all sets, and is as fast
// (bench/matmul_vs_onednn.cc: 0.83 to 1.17 of oneDNN's rate on GPT-2's shapes, median 1.02).
#if defined(INGOT_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_GEMM_INL_H_
#undef INGOT_KERNELS_GEMM_INL_H_
#else
#define INGOT_KERNELS_GEMM_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/matmul/block.h"
#include "kernels/matmul/panels.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

inline constexpr int kGemmLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
inline constexpr int kGemmWidth = 2 * kGemmLanes;  // columns of C held in registers
// Rows of C held in registers: two accumulators each, leaving room for two vectors of B and a broadcast of A.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kGemmRows = 12;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kGemmRows = 6;
#else
inline constexpr int kGemmRows = 4;
#endif
static_assert(kPanelColumns % kGemmWidth == 0 && kGemmRows <= kMaxGemmRows);

// factor * b + sum, in the register that sum is in: the compiler would write it to another one and run out of them.
HWY_INLINE FloatVec add_product(FloatVec factor, FloatVec b, FloatVec sum) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  auto raw = sum.raw;
  asm("vfmadd231ps %2, %1, %0" : "+v"(raw) : "v"(factor.raw), "v"(b.raw));  // NOLINT
  return FloatVec{raw};
#else
  return hn::MulAdd(factor, b, sum);
#endif
}

// C[kRows, columns] (+)= A[kRows, depth] * B[depth, kGemmWidth], B's rows kPanelColumns apart. columns <= kGemmWidth.
template <int kRows>
HWY_NOINLINE void gemm_block(int64_t depth, const std::byte* a, int64_t row_bytes, int64_t step_bytes,
                             const float* HWY_RESTRICT b, float* HWY_RESTRICT c, int64_t ldc, int64_t columns,
                             bool accumulate, const Meanwhile& beside) {
  FloatVec left[kRows], right[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) left[i] = right[i] = hn::Zero(kFloat);
  RowAddresses<kRows> rows(a, row_bytes, step_bytes);
  const auto add_step = [&](int64_t p) HWY_ATTR __attribute__((always_inline)) {
    const FloatVec b_left = hn::LoadU(kFloat, b + p * kPanelColumns);
    const FloatVec b_right = hn::LoadU(kFloat, b + p * kPanelColumns + kGemmLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const FloatVec factor = set(rows.template word<float>(i));
      left[i] = add_product(factor, b_left, left[i]);
      right[i] = add_product(factor, b_right, right[i]);
    }
    rows.advance();
  };
  const auto pack = [](const PanelAhead& step) HWY_ATTR __attribute__((always_inline)) {
    const auto* from = reinterpret_cast<const float*>(step.from);
    auto* to = reinterpret_cast<float*>(step.to);
#pragma GCC unroll 8
    for (int64_t j = 0; j < kPanelColumns; j += kGemmLanes) hn::StoreU(hn::LoadU(kFloat, from + j), kFloat, to + j);
  };
  Meanwhile meanwhile = beside;
  meanwhile.c = BlockTarget{c, ldc, accumulate}.written(kRows, kGemmWidth);
  const int64_t late = Meanwhile::late_from(depth, kRows);
  int64_t p = 0;
  for (; p + kStepsATurn <= depth; p += kStepsATurn) {
    meanwhile.turn(p >= late);
    if (meanwhile.panel.steps > 0) pack(meanwhile.panel.take(1));
#pragma GCC unroll 4
    for (int64_t i = 0; i < kStepsATurn; ++i) add_step(p + i);
  }
  for (; p < depth; ++p) add_step(p);
  while (meanwhile.panel.steps > 0) pack(meanwhile.panel.take(1));
  if (columns == kGemmWidth) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      float* row = c + i * ldc;
      if (accumulate) {
        left[i] = hn::Add(hn::LoadU(kFloat, row), left[i]);
        right[i] = hn::Add(hn::LoadU(kFloat, row + kGemmLanes), right[i]);
      }
      hn::StoreU(left[i], kFloat, row);
      hn::StoreU(right[i], kFloat, row + kGemmLanes);
    }
    return;
  }
  HWY_ALIGN float buffer[kGemmWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    hn::Store(left[i], kFloat, buffer);
    hn::Store(right[i], kFloat, buffer + kGemmLanes);
    float* row = c + i * ldc;
    for_vectors(columns, [&](int64_t j, auto at) {
      at.store(accumulate ? hn::Add(at.load(row + j), hn::LoadU(kFloat, buffer + j)) : hn::LoadU(kFloat, buffer + j),
               row + j);
    });
  }
}

using GemmBlock = void (*)(int64_t, const std::byte*, int64_t, int64_t, const float*, float*, int64_t, int64_t, bool,
                           const Meanwhile&);

template <int... kIndex>
constexpr std::array<GemmBlock, sizeof...(kIndex)> gemm_blocks(std::integer_sequence<int, kIndex...>) {
  return {gemm_block<kIndex + 1>...};
}
HWY_INLINE GemmBlock gemm_block_of(int64_t rows) {
  static constexpr auto kBlocks = gemm_blocks(std::make_integer_sequence<int, kGemmRows>());
  return kBlocks[static_cast<size_t>(rows - 1)];
}

// The rows of a tile in groups of at most kGemmRows, as even as can be: no group of one or two rows at the end.
struct RowGroups {
  explicit RowGroups(int64_t rows)
      : count((rows + kGemmRows - 1) / kGemmRows), base(rows / count), longer(rows % count) {}
  int64_t size(int64_t group) const { return base + (group < longer ? 1 : 0); }
  int64_t count, base, longer;
};

// block(rows of the group, where A is, B from a column of the panel on, first row, first column, columns) for each
// block of C [rows, columns], columns <= kPanelColumns. The panel is meant to stay in cache while the rows go by.
template <class Block>
HWY_INLINE void for_blocks(int64_t rows, int64_t columns, const BlockRows& a, Block block) {
  const RowGroups groups(rows);
  for (int64_t column = 0; column < columns; column += kGemmWidth) {
    const int64_t width = std::min<int64_t>(kGemmWidth, columns - column);
    int64_t row = 0;
    for (int64_t group = 0; group < groups.count; ++group) {
      const int64_t count = groups.size(group);
      block(count, a.at(group, row), row, column, width);
      row += count;
    }
  }
}

// C[rows, columns] (+)= A[rows, depth] * one panel of B [depth, kPanelColumns], columns <= kPanelColumns. beside()
// says what goes on beside each block.
template <class Beside = decltype([] { return Meanwhile(); })>
HWY_INLINE void gemm_panel(int64_t rows, int64_t columns, int64_t depth, const BlockRows& a, const float* panel,
                           float* c, int64_t ldc, bool accumulate, Beside beside = {}) {
  for_blocks(rows, columns, a,
             [&](int64_t count, const std::byte* from, int64_t row, int64_t column, int64_t width) HWY_ATTR {
               gemm_block_of(count)(depth, from, a.row, a.step, panel + column, c + row * ldc + column, ldc, width,
                                    accumulate, beside());
             });
}

#if HWY_TARGET != HWY_SCALAR
// 16 bytes of a row, of the row 4 below it, and so on, as many as fill a vector.
template <class T>
HWY_INLINE FloatVec load_every_fourth_row(const T* from, int64_t stride) {
  const hn::FixedTag<T, 16 / sizeof(T)> stored;
  const hn::FixedTag<float, 4> block;
  const auto row = [&](int64_t i) HWY_ATTR { return hn::BitCast(block, hn::LoadU(stored, from + i * stride)); };
#if HWY_TARGET <= HWY_AVX3
  const hn::FixedTag<float, 8> half;
  return hn::Combine(kFloat, hn::Combine(half, row(12), row(8)), hn::Combine(half, row(4), row(0)));
#elif HWY_TARGET == HWY_AVX2
  return hn::Combine(kFloat, row(4), row(0));
#else
  return row(0);
#endif
}

// to[p, j] = from[j, p] for 4 steps p and as many rows j as a vector has lanes (D: its tag), by 4 x 4 transposes in
// blocks.
template <class D, class V>
HWY_INLINE void store_transposed(D d, V row0, V row1, V row2, V row3, hn::TFromD<D>* to, int64_t to_stride) {
  const hn::Repartition<double, D> wide;
  const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, row0, row1)),
             low23 = hn::BitCast(wide, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, row0, row1)),
             high23 = hn::BitCast(wide, hn::InterleaveUpper(d, row2, row3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, to + 3 * to_stride);
}
#endif

// Some steps of all rows, words of 4 bytes, each step's side by side and `stride` words from the next one's, to their
// places in groups of rows [steps, kGemmRows], BlockRows::kGroupPadding apart. Group by group, so that each writes
// whole cache lines. Words behind a step's rows are read: as many as fill a vector.
template <class Word>
HWY_INLINE void scatter_steps(const RowGroups& groups, int64_t steps, int64_t p, int64_t count, const Word* from,
                              int64_t stride, Word* packed) {
  const hn::Rebind<Word, FloatTag> words;
  Word* to = packed + p * kGemmRows;
  for (int64_t group = 0; group < groups.count; ++group) {
    // A group's last vector reaches beyond the step's place: into the next step's, or the padding.
    for (int64_t s = 0; s < count; ++s)
#pragma GCC unroll 4
      for (int64_t j = 0; j < kGemmRows; j += kGemmLanes)
        hn::StoreU(hn::LoadU(words, from + s * stride + j), words, to + s * kGemmRows + j);
    from += groups.size(group);
    to += steps * kGemmRows + BlockRows::kGroupPadding;
  }
}

// Steps lie pages apart: they are asked for some steps ahead. Asking for an address never faults.
inline constexpr int64_t kStepsAhead = 12;
template <class T>
HWY_INLINE void ask_for_row(const T* row, int64_t n) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < n; i += kLine) __builtin_prefetch(row + i);
}

// Steps of all rows to groups of rows [steps, kGemmRows]: fill(p, line) writes step p of all rows. `lines` has
// packing_words(rows).
template <class Word, class Fill>
HWY_INLINE void pack_groups(int64_t rows, int64_t steps, Word* lines, Word* packed, Fill fill) {
  const RowGroups groups(rows);
  const int64_t stride = packing_line(rows);
  for (int64_t p = 0; p < steps; p += kPackingSteps) {
    const int64_t count = std::min(kPackingSteps, steps - p);
    for (int64_t s = 0; s < count; ++s) fill(p + s, lines + s * stride);
    scatter_steps(groups, steps, p, count, lines, stride, packed);
  }
}

// A[rows, depth] from memory as [depth, rows], row stride lda.
HWY_INLINE void pack_rows_transposed(int64_t rows, int64_t depth, const float* a, int64_t lda, float* lines,
                                     float* packed) {
  pack_groups(rows, depth, lines, packed, [&](int64_t p, float* line) HWY_ATTR {
    ask_for_row(a + (p + kStepsAhead) * lda, rows);
    for_vectors(rows, [&](int64_t i, auto at) HWY_ATTR { at.store(at.load(a + p * lda + i), line + i); });
  });
}

// Panel [depth, kPanelColumns] from B [depth, columns] with row stride ldb; columns beyond the end become zero.
HWY_INLINE void pack_panel(int64_t depth, int64_t columns, const float* b, int64_t ldb, float* panel) {
  for (int64_t p = 0; p < depth; ++p) {
    float* to = panel + p * kPanelColumns;
    const float* from = b + p * ldb;
    if (columns == kPanelColumns) {
      for (int64_t j = 0; j < kPanelColumns; j += kGemmLanes) hn::StoreU(hn::LoadU(kFloat, from + j), kFloat, to + j);
    } else {
      for (int64_t j = 0; j < kPanelColumns; ++j) to[j] = j < columns ? from[j] : 0.0f;
    }
  }
}

// The same from B in memory as [columns, depth] with row stride ldb.
HWY_INLINE void pack_panel_transposed(int64_t depth, int64_t columns, const float* b, int64_t ldb, float* panel) {
  int64_t p = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; columns == kPanelColumns && p + 4 <= depth; p += 4) {
    for (int64_t j = 0; j < kPanelColumns; j += kGemmLanes) {
      const float* from = b + j * ldb + p;
      store_transposed(kFloat, load_every_fourth_row(from, ldb), load_every_fourth_row(from + ldb, ldb),
                       load_every_fourth_row(from + 2 * ldb, ldb), load_every_fourth_row(from + 3 * ldb, ldb),
                       panel + p * kPanelColumns + j, kPanelColumns);
    }
  }
#endif
  for (int64_t j = 0; j < kPanelColumns; ++j) {
    const float* from = b + j * ldb;
    for (int64_t q = p; q < depth; ++q) panel[q * kPanelColumns + j] = j < columns ? from[q] : 0.0f;
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_GEMM_INL_H_
