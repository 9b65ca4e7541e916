#include "kernels/matmul/matmul_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/matmul_tiles.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/matmul/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// A[rows, depth] copied to dense rows.
HWY_INLINE void copy_rows(int64_t rows, int64_t width, const float* from, int64_t from_stride, float* to,
                          int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* source = from + i * from_stride;
    float* target = to + i * to_stride;
    for_vectors(width, [&](int64_t j, auto at) { at.store(at.load(source + j), target + j); });
  }
}

// Rows of A whose distance is a multiple of a page map to the same few sets of the first-level cache and evict each
// other; so does each step of a transposed A. Those are copied, once per block of k, before the panels go by.
HWY_INLINE bool needs_copy(const MatmulTile& tile) {
  if (tile.columns <= kPanelColumns) return false;
  return tile.transpose_a || (tile.lda * static_cast<int64_t>(sizeof(float))) % 4096 == 0;
}

void run_tile(const MatmulTile& tile, float* scratch) {
  float* panel_copy = scratch;
  float* a_copy = scratch + kPanelColumns * kDepthBlock;
  const bool copy = needs_copy(tile);
  for (int64_t begin = 0; begin < tile.k; begin += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, tile.k - begin);
    const bool accumulate = tile.accumulate || begin > 0;
    const float* a = tile.a + (tile.transpose_a ? begin * tile.lda : begin);
    int64_t a_stride = tile.lda;
    if (copy) {
      a_stride = tile.transpose_a ? tile.rows : kCopiedRowStride;
      if (tile.transpose_a)
        copy_rows(depth, tile.rows, a, tile.lda, a_copy, a_stride);
      else
        copy_rows(tile.rows, depth, a, tile.lda, a_copy, a_stride);
      a = a_copy;
    }
    for (int64_t column = 0; column < tile.columns; column += kPanelColumns) {
      const int64_t width = std::min(kPanelColumns, tile.columns - column);
      const float* panel = panel_copy;
      if (tile.packed_b)
        panel = tile.b + column * tile.k + begin * kPanelColumns;
      else if (tile.transpose_b)
        pack_panel_transposed(depth, width, tile.b + column * tile.ldb + begin, tile.ldb, panel_copy);
      else
        pack_panel(depth, width, tile.b + begin * tile.ldb + column, tile.ldb, panel_copy);
      float* c = tile.c + column;
      if (tile.transpose_a)
        gemm_panel<LayoutA::columns>(tile.rows, width, depth, a, a_stride, panel, c, tile.ldc, accumulate);
      else
        gemm_panel<LayoutA::rows>(tile.rows, width, depth, a, a_stride, panel, c, tile.ldc, accumulate);
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

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(run_tile);
HWY_EXPORT(pack_all);
}  // namespace

size_t matmul_tile_scratch_bytes(int64_t rows) {
  return static_cast<size_t>(kPanelColumns * kDepthBlock + rows * kCopiedRowStride) * sizeof(float);
}

void run_matmul_tile(const MatmulTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(run_tile)(tile, scratch);
}

void pack_panels(int64_t columns, int64_t k, const float* b, int64_t ldb, bool transposed, float* panels) {
  HWY_DYNAMIC_DISPATCH(pack_all)(columns, k, b, ldb, transposed, panels);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
