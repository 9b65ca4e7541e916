#include "kernels/matmul/matmul_tiles.h"

#include <array>
#include <bit>
#include <utility>

#include "kernels/instruction_set.h"
#include "kernels/matmul/pair_block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/matmul_tiles.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/matmul/few_rows-inl.h"
#include "kernels/matmul/gemm-inl.h"
#include "kernels/matmul/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// What the panel of columns after `column`, in the block of k from begin, is read from; nothing after the tile's last.
HWY_INLINE Prefetch next_panel(const MatmulTile& tile, int64_t begin, int64_t column) {
  int64_t next = column + kPanelColumns;
  if (next >= tile.columns) {
    next = 0;
    begin += kDepthBlock;
    if (begin >= tile.k) return {};
  }
  const int64_t depth = std::min(kDepthBlock, tile.k - begin), width = std::min(kPanelColumns, tile.columns - next);
  const bool halves = tile.b_dtype != DType::f32;
  if (tile.packed_b && halves)
    return Prefetch::of(tile.b_pairs() + next * pairs_of(tile.k) + begin / 2 * kPanelColumns, pairs_of(depth),
                        kPanelColumns, kPanelColumns);
  if (tile.packed_b)
    return Prefetch::of(tile.b_floats() + next * tile.k + begin * kPanelColumns, depth, kPanelColumns, kPanelColumns);
  const int64_t at = tile.transpose_b ? next * tile.ldb + begin : begin * tile.ldb + next;
  const int64_t rows = tile.transpose_b ? width : depth, length = tile.transpose_b ? depth : width;
  return halves ? Prefetch::of(tile.b_halves() + at, rows, length, tile.ldb)
                : Prefetch::of(tile.b_floats() + at, rows, length, tile.ldb);
}

// The block of A after the block of k from begin.
HWY_INLINE Prefetch next_block(const MatmulTile& tile, int64_t begin) {
  begin += kDepthBlock;
  if (begin >= tile.k) return {};
  const int64_t depth = std::min(kDepthBlock, tile.k - begin);
  const int64_t at = tile.transpose_a ? begin * tile.lda : begin;
  const int64_t rows = tile.transpose_a ? depth : tile.rows, length = tile.transpose_a ? tile.rows : depth;
  return tile.a_dtype != DType::f32 ? Prefetch::of(tile.a_halves() + at, rows, length, tile.lda)
                                    : Prefetch::of(tile.a_floats() + at, rows, length, tile.lda);
}

HWY_INLINE int64_t burst_of(const Prefetch& rows, int64_t chunks) {
  return (rows.left() + chunks - 1) / chunks;
}

// One thread's memory, in the order in which a tile's operands need it.
struct TileScratch {
  float* panel;  // [kDepthBlock, kPanelColumns]
  float* block;  // A's block of k, in groups of rows
  float* line;   // of 16-bit operands: what they are turned in
};
HWY_INLINE TileScratch scratch_of(const MatmulTile& tile, float* scratch) {
  float* block = scratch + kPanelColumns * kDepthBlock;
  return {scratch, block, block + (tile.rows + kMaxGemmRows) * kDepthBlock};
}

// The block of k from begin of A [rows, k], packed for the fp32 core.
HWY_INLINE void pack_block(const MatmulTile& tile, int64_t begin, const TileScratch& scratch) {
  const int64_t depth = std::min(kDepthBlock, tile.k - begin);
  const int64_t at = tile.transpose_a ? begin * tile.lda : begin;
  if (tile.a_dtype != DType::f32)
    pack_widened_rows(tile.rows, depth, tile.a_halves() + at, tile.a_dtype, tile.lda, tile.transpose_a, scratch.line,
                      scratch.block);
  else if (tile.transpose_a)
    pack_rows_transposed(tile.rows, depth, tile.a_floats() + at, tile.lda, scratch.block);
  else
    pack_rows(tile.rows, depth, tile.a_floats() + at, tile.lda, scratch.block);
}

// One panel of the block of k from begin in fp32, ready to be multiplied with.
HWY_INLINE const float* panel_of(const MatmulTile& tile, int64_t begin, int64_t column, const TileScratch& scratch) {
  const int64_t depth = std::min(kDepthBlock, tile.k - begin), width = std::min(kPanelColumns, tile.columns - column);
  const bool halves = tile.b_dtype != DType::f32;
  if (tile.packed_b && !halves) return tile.b_floats() + column * tile.k + begin * kPanelColumns;
  const int64_t at = tile.transpose_b ? column * tile.ldb + begin : begin * tile.ldb + column;
  if (tile.packed_b)
    widen_pairs(depth, kPanelColumns, tile.b_pairs() + column * pairs_of(tile.k) + begin / 2 * kPanelColumns,
                tile.b_dtype, scratch.panel);
  else if (halves)
    pack_widened_panel(depth, width, tile.b_halves() + at, tile.b_dtype, tile.ldb, tile.transpose_b,
                       reinterpret_cast<uint32_t*>(scratch.line), scratch.panel);
  else if (tile.transpose_b)
    pack_panel_transposed(depth, width, tile.b_floats() + at, tile.ldb, scratch.panel);
  else
    pack_panel(depth, width, tile.b_floats() + at, tile.ldb, scratch.panel);
  return scratch.panel;
}

// A tile of a few rows or of one panel: packing A would cost more than it saves. A is f32.
HWY_INLINE void run_thin(const MatmulTile& tile, const TileScratch& scratch) {
  for (int64_t begin = 0; begin < tile.k; begin += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, tile.k - begin);
    const bool accumulate = tile.accumulate || begin > 0;
    for (int64_t column = 0; column < tile.columns; column += kPanelColumns) {
      const int64_t width = std::min(kPanelColumns, tile.columns - column);
      const float* panel = panel_of(tile, begin, column, scratch);
      if (tile.transpose_a)
        gemm_panel<LayoutA::columns>(tile.rows, width, depth, tile.a_floats() + begin * tile.lda, tile.lda, panel,
                                     tile.c + column, tile.ldc, accumulate);
      else
        gemm_panel<LayoutA::rows>(tile.rows, width, depth, tile.a_floats() + begin, tile.lda, panel, tile.c + column,
                                  tile.ldc, accumulate);
    }
  }
}

// The pairs' core in any instruction set: what a CPU's dot products of bf16 are tested with. Each lane adds the later
// step first, as VDPBF16PS does.
struct PortablePairs {
  static constexpr int kLanes = kGemmLanes, kGroupRows = kGemmRows;
  using Sum = FloatVec;
  struct Steps {
    FloatVec even, odd;
  };
  static HWY_INLINE FloatVec zero() { return hn::Zero(kFloat); }
  static HWY_INLINE FloatVec load_sum(const float* from) { return hn::LoadU(kFloat, from); }
  static HWY_INLINE void store(FloatVec sum, float* to) { hn::StoreU(sum, kFloat, to); }
  static HWY_INLINE FloatVec add(FloatVec a, FloatVec b) { return hn::Add(a, b); }
  static HWY_INLINE Steps load(const uint32_t* from) {
    const hn::RebindToUnsigned<FloatTag> words;
    const auto pairs = hn::LoadU(words, from);
    return {hn::BitCast(kFloat, hn::ShiftLeft<16>(pairs)),
            hn::BitCast(kFloat, hn::And(pairs, hn::Set(words, 0xffff0000)))};
  }
  static HWY_INLINE Steps broadcast(uint32_t pair) {
    return {set(std::bit_cast<float>(pair << 16)), set(std::bit_cast<float>(pair & 0xffff0000))};
  }
  static HWY_INLINE FloatVec dot(FloatVec sum, const Steps& pair, const Steps& pairs) {
    return hn::MulAdd(pair.even, pairs.even, hn::MulAdd(pair.odd, pairs.odd, sum));
  }
};

#include "kernels/matmul/pair_block-inl.h"

HWY_INLINE PairBlock pair_block_for(const MatmulTile& tile, int64_t rows) {
#if HWY_TARGET == HWY_AVX3
  static_assert(kGemmRows == kAvx512PairRows && kGemmWidth == kPanelColumns);
  if (tile.bf16 == Bf16Product::cpu_pairs) return avx512_pair_block(rows);
#endif
  return pair_block_of<PortablePairs>(rows);
}

// One panel of the block of k from begin, in pairs.
HWY_INLINE const uint32_t* pair_panel_of(const MatmulTile& tile, int64_t begin, int64_t column, uint32_t* copy) {
  if (tile.packed_b) return tile.b_pairs() + column * pairs_of(tile.k) + begin / 2 * kPanelColumns;
  const int64_t at = tile.transpose_b ? column * tile.ldb + begin : begin * tile.ldb + column;
  pack_pair_panel(std::min(kDepthBlock, tile.k - begin), std::min(kPanelColumns, tile.columns - column),
                  tile.b_halves() + at, tile.ldb, tile.transpose_b, copy);
  return copy;
}

// C[rows, columns] (+)= A's block packed by pack_pair_rows * one panel of pairs, as gemm_panel_packed.
HWY_INLINE void pair_panel(const MatmulTile& tile, int64_t steps, int64_t column, const uint32_t* block,
                           const uint32_t* panel, bool accumulate, Lookahead& ahead) {
  const RowGroups groups(tile.rows);
  const int64_t columns = std::min(kPanelColumns, tile.columns - column);
  for (int64_t at = 0; at < columns; at += kGemmWidth) {
    const int64_t width = std::min<int64_t>(kGemmWidth, columns - at);
    int64_t row = 0;
    for (int64_t group = 0; group < groups.count; ++group) {
      const int64_t count = groups.size(group);
      pair_block_for(tile, count)(steps, block + group * steps * kGemmRows, panel + at,
                                  tile.c + row * tile.ldc + column + at, tile.ldc, width, accumulate, &ahead);
      row += count;
    }
  }
}

// What is read while a panel of the block of k from begin is multiplied with.
HWY_INLINE Lookahead lookahead_of(const MatmulTile& tile, int64_t begin, int64_t steps) {
  Lookahead ahead;
  const int64_t chunks = RowGroups(tile.rows).count * ((steps + kGemmChunk - 1) / kGemmChunk);
  ahead.block = next_block(tile, begin);
  ahead.block_burst = burst_of(ahead.block, chunks * panels_of(tile.columns));
  return ahead;
}
HWY_INLINE void look_at_next_panel(const MatmulTile& tile, int64_t begin, int64_t column, int64_t steps,
                                   Lookahead& ahead) {
  const int64_t chunks = RowGroups(tile.rows).count * ((steps + kGemmChunk - 1) / kGemmChunk);
  ahead.panel = next_panel(tile, begin, column);
  ahead.panel_burst = burst_of(ahead.panel, chunks);
}

HWY_NOINLINE void run_pairs(const MatmulTile& tile, const TileScratch& scratch) {
  auto* block = reinterpret_cast<uint32_t*>(scratch.block);
  for (int64_t begin = 0; begin < tile.k; begin += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, tile.k - begin), steps = pairs_of(depth);
    pack_pair_rows(tile.rows, depth, tile.a_halves() + (tile.transpose_a ? begin * tile.lda : begin), tile.lda,
                   tile.transpose_a, reinterpret_cast<uint32_t*>(scratch.line), block);
    Lookahead ahead = lookahead_of(tile, begin, steps);
    for (int64_t column = 0; column < tile.columns; column += kPanelColumns) {
      const uint32_t* panel = pair_panel_of(tile, begin, column, reinterpret_cast<uint32_t*>(scratch.panel));
      look_at_next_panel(tile, begin, column, steps, ahead);
      pair_panel(tile, steps, column, block, panel, tile.accumulate || begin > 0, ahead);
    }
  }
}

void run_tile(const MatmulTile& tile, float* memory) {
  if (has_few_rows(tile)) return run_few_rows(tile);
  const TileScratch scratch = scratch_of(tile, memory);
  if (tile.in_pairs()) return run_pairs(tile, scratch);
  if (tile.a_dtype == DType::f32 && (tile.rows <= kGemmRows || tile.columns <= kPanelColumns))
    return run_thin(tile, scratch);
  for (int64_t begin = 0; begin < tile.k; begin += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, tile.k - begin);
    pack_block(tile, begin, scratch);
    Lookahead ahead = lookahead_of(tile, begin, depth);
    for (int64_t column = 0; column < tile.columns; column += kPanelColumns) {
      const float* panel = panel_of(tile, begin, column, scratch);
      look_at_next_panel(tile, begin, column, depth, ahead);
      gemm_panel_packed(tile.rows, std::min(kPanelColumns, tile.columns - column), depth, scratch.block, panel,
                        tile.c + column, tile.ldc, tile.accumulate || begin > 0, ahead);
    }
  }
}

HWY_INLINE void pack_one(int64_t columns, int64_t k, const float* b, int64_t ldb, bool transposed, float* panel) {
  if (transposed)
    pack_panel_transposed(k, columns, b, ldb, panel);
  else
    pack_panel(k, columns, b, ldb, panel);
}

void pack_all(int64_t columns, int64_t k, const void* b, DType source, int64_t ldb, bool transposed, DType dtype,
              std::byte* panels) {
  const int64_t column_stride = transposed ? ldb : 1;
  for (int64_t column = 0; column < columns; column += kPanelColumns) {
    const int64_t width = std::min(kPanelColumns, columns - column), at = column * column_stride;
    std::byte* panel = panels + column * panel_column_bytes(dtype, k);
    const auto floats = [&] { return static_cast<const float*>(b) + at; };
    if (dtype == DType::f32)
      pack_one(width, k, floats(), ldb, transposed, reinterpret_cast<float*>(panel));
    else if (source == DType::f32)
      pack_pair_panel(k, width, floats(), ldb, transposed, dtype, reinterpret_cast<uint32_t*>(panel));
    else
      pack_pair_panel(k, width, static_cast<const uint16_t*>(b) + at, ldb, transposed,
                      reinterpret_cast<uint32_t*>(panel));
  }
}

bool has_pair_dots() {
  return HWY_TARGET == HWY_AVX3 && has_avx512_bf16();
}

void add_parts(int64_t n, int64_t parts, const float* from, int64_t stride, float* to, bool accumulate) {
  for_vectors(n, [&](int64_t i, auto at) {
    FloatVec sum = accumulate ? at.load(to + i) : hn::Zero(kFloat);
    for (int64_t part = 0; part < parts; ++part) sum = hn::Add(sum, at.load(from + part * stride + i));
    at.store(sum, to + i);
  });
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(run_tile);
HWY_EXPORT(pack_all);
HWY_EXPORT(add_parts);
HWY_EXPORT(has_pair_dots);

// What 16-bit operands are turned in: a line of A's steps, a group of its rows, or a panel of B.
constexpr int64_t kPairScratch = std::max(kPanelColumns, kMaxGemmRows + 2) * pairs_of(kDepthBlock);
}  // namespace

size_t matmul_tile_scratch_bytes(int64_t rows, DType a, DType b) {
  const bool halves = a != DType::f32 || b != DType::f32;
  const int64_t line = halves ? std::max(kPairScratch, rows + kMaxGemmRows) : 0;
  const int64_t floats = kPanelColumns * kDepthBlock + (rows + kMaxGemmRows) * kDepthBlock + line;
  return static_cast<size_t>((floats + 15) / 16 * 16) * sizeof(float);
}

Bf16Product best_bf16_product() {
  return HWY_DYNAMIC_DISPATCH(has_pair_dots)() ? Bf16Product::cpu_pairs : Bf16Product::widened;
}

void run_matmul_tile(const MatmulTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(run_tile)(tile, scratch);
}

void sum_parts(int64_t n, int64_t parts, const float* from, int64_t stride, float* to, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(add_parts)(n, parts, from, stride, to, accumulate);
}

void pack_panels(int64_t columns, int64_t k, const void* b, DType source, int64_t ldb, bool transposed, DType dtype,
                 std::byte* panels) {
  HWY_DYNAMIC_DISPATCH(pack_all)(columns, k, b, source, ldb, transposed, dtype, panels);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
