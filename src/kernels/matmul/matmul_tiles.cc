#include "kernels/matmul/matmul_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/matmul_tiles.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/matmul/few_rows-inl.h"
#include "kernels/matmul/gemm-inl.h"

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
  if (tile.packed_b)
    return Prefetch::of(tile.b + next * tile.k + begin * kPanelColumns, depth, kPanelColumns, kPanelColumns);
  if (tile.transpose_b) return Prefetch::of(tile.b + next * tile.ldb + begin, width, depth, tile.ldb);
  return Prefetch::of(tile.b + begin * tile.ldb + next, depth, width, tile.ldb);
}

// The block of A after the block of k from begin.
HWY_INLINE Prefetch next_block(const MatmulTile& tile, int64_t begin) {
  begin += kDepthBlock;
  if (begin >= tile.k) return {};
  const int64_t depth = std::min(kDepthBlock, tile.k - begin);
  if (tile.transpose_a) return Prefetch::of(tile.a + begin * tile.lda, depth, tile.rows, tile.lda);
  return Prefetch::of(tile.a + begin, tile.rows, depth, tile.lda);
}

HWY_INLINE int64_t burst_of(const Prefetch& rows, int64_t chunks) {
  return (rows.left() + chunks - 1) / chunks;
}

// One panel of the block of k from begin, ready to be multiplied with.
HWY_INLINE const float* panel_of(const MatmulTile& tile, int64_t begin, int64_t column, float* copy) {
  if (tile.packed_b) return tile.b + column * tile.k + begin * kPanelColumns;
  const int64_t depth = std::min(kDepthBlock, tile.k - begin), width = std::min(kPanelColumns, tile.columns - column);
  if (tile.transpose_b)
    pack_panel_transposed(depth, width, tile.b + column * tile.ldb + begin, tile.ldb, copy);
  else
    pack_panel(depth, width, tile.b + begin * tile.ldb + column, tile.ldb, copy);
  return copy;
}

// A tile of a few rows or of one panel: packing A would cost more than it saves.
HWY_INLINE void run_thin(const MatmulTile& tile, float* panel_copy) {
  for (int64_t begin = 0; begin < tile.k; begin += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, tile.k - begin);
    const bool accumulate = tile.accumulate || begin > 0;
    for (int64_t column = 0; column < tile.columns; column += kPanelColumns) {
      const int64_t width = std::min(kPanelColumns, tile.columns - column);
      const float* panel = panel_of(tile, begin, column, panel_copy);
      if (tile.transpose_a)
        gemm_panel<LayoutA::columns>(tile.rows, width, depth, tile.a + begin * tile.lda, tile.lda, panel,
                                     tile.c + column, tile.ldc, accumulate);
      else
        gemm_panel<LayoutA::rows>(tile.rows, width, depth, tile.a + begin, tile.lda, panel, tile.c + column, tile.ldc,
                                  accumulate);
    }
  }
}

void run_tile(const MatmulTile& tile, float* scratch) {
  if (has_few_rows(tile)) return run_few_rows(tile);
  float* panel_copy = scratch;
  float* block = scratch + kPanelColumns * kDepthBlock;
  if (tile.rows <= kGemmRows || tile.columns <= kPanelColumns) return run_thin(tile, panel_copy);
  for (int64_t begin = 0; begin < tile.k; begin += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, tile.k - begin);
    if (tile.transpose_a)
      pack_rows_transposed(tile.rows, depth, tile.a + begin * tile.lda, tile.lda, block);
    else
      pack_rows(tile.rows, depth, tile.a + begin, tile.lda, block);
    const int64_t chunks = RowGroups(tile.rows).count * ((depth + kGemmChunk - 1) / kGemmChunk);
    Lookahead ahead;
    ahead.block = next_block(tile, begin);
    ahead.block_burst = burst_of(ahead.block, chunks * panels_of(tile.columns));
    for (int64_t column = 0; column < tile.columns; column += kPanelColumns) {
      const float* panel = panel_of(tile, begin, column, panel_copy);
      ahead.panel = next_panel(tile, begin, column);
      ahead.panel_burst = burst_of(ahead.panel, chunks);
      gemm_panel_packed(tile.rows, std::min(kPanelColumns, tile.columns - column), depth, block, panel, tile.c + column,
                        tile.ldc, tile.accumulate || begin > 0, ahead);
    }
  }
}

void pack_all(int64_t columns, int64_t k, const float* b, int64_t ldb, bool transposed, float* panels) {
  for (int64_t column = 0; column < columns; column += kPanelColumns) {
    const int64_t width = std::min(kPanelColumns, columns - column);
    float* panel = panels + column * k;
    if (transposed)
      pack_panel_transposed(k, width, b + column * ldb, ldb, panel);
    else
      pack_panel(k, width, b + column, ldb, panel);
  }
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
}  // namespace

size_t matmul_tile_scratch_bytes(int64_t rows) {
  return static_cast<size_t>(kPanelColumns * kDepthBlock + (rows + kMaxGemmRows) * kDepthBlock) * sizeof(float);
}

void run_matmul_tile(const MatmulTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(run_tile)(tile, scratch);
}

void sum_parts(int64_t n, int64_t parts, const float* from, int64_t stride, float* to, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(add_parts)(n, parts, from, stride, to, accumulate);
}

void pack_panels(int64_t columns, int64_t k, const float* b, int64_t ldb, bool transposed, float* panels) {
  HWY_DYNAMIC_DISPATCH(pack_all)(columns, k, b, ldb, transposed, panels);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
