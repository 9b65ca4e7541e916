#include "kernels/matmul/matmul.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/parallel.h"
#include "kernels/matmul/matmul_tiles.h"

namespace ingot::kernels {
namespace {

// A tile's rows use each panel of B again and again: enough of them hide reading it, and twice as many hide packing it,
// where that is done in the tile. Columns are cut so that some 32 tiles balance over 1 to 8 threads and more, but not
// so narrow that packing A shows. Few rows (generation) are bound by reading B: there columns alone are shared out.
constexpr int64_t kRowTile = 96, kUnpackedRowTile = 192;
constexpr int64_t kRowGrain = kMaxGemmRows;
constexpr int64_t kUncutRows = 16;
constexpr int64_t kFewRowsTile = 16384;  // elements of B
constexpr int64_t kWantedTiles = 32;
constexpr int64_t kMinPanels = 3, kMaxPanels = 12;
constexpr int64_t kPanelsPerPackTile = 2;

int64_t row_tile_of(const MatmulShape& shape) {
  return !shape.packed_b && shape.rows >= 2 * kUnpackedRowTile ? kUnpackedRowTile : kRowTile;
}

struct Cut {
  int64_t row_tiles = 0, column_tiles = 0, row_grain = 1;
};

Cut cut_of(const MatmulShape& shape) {
  if (shape.rows == 0 || shape.n == 0 || shape.batch == 0) return {};
  const int64_t panels = panels_of(shape.n);
  if (shape.rows <= kUncutRows) {
    const int64_t most = std::min(panels, kWantedTiles + kWantedTiles / 2);
    if (shape.rows > kFewRows) return {1, most, shape.rows};
    // Wide enough that memory is read in long stretches, and that a tile is worth waking a thread for.
    const int64_t worthwhile = std::min(panels / (shape.transpose_b ? 2 : 6), shape.n * shape.k / kFewRowsTile);
    return {1, std::clamp<int64_t>(worthwhile, 1, most), shape.rows};
  }
  Cut cut;
  const int64_t row_tile = row_tile_of(shape);
  cut.row_tiles = (shape.rows + row_tile - 1) / row_tile;
  cut.row_grain = cut.row_tiles > 1 ? kRowGrain : shape.rows;
  const int64_t wanted = (kWantedTiles + cut.row_tiles * shape.batch - 1) / (cut.row_tiles * shape.batch);
  const int64_t most = std::max<int64_t>(1, panels / kMinPanels);
  const int64_t least = (panels + kMaxPanels - 1) / kMaxPanels;
  cut.column_tiles = std::max(least, std::min(wanted, most));
  return cut;
}

Status check(const MatmulShape& s) {
  if (s.rows < 0 || s.n < 0 || s.k < 0 || s.batch < 0)
    return usage_error("a matrix product of negative size: {} x {} x {}, batch {}", s.rows, s.n, s.k, s.batch);
  if (s.a != DType::f32 || s.b != DType::f32 || s.c != DType::f32 || s.pack_source != DType::f32)
    return usage_error("no matrix product of {} and {} into {} on this CPU; f32 is there", name_of(s.a), name_of(s.b),
                       name_of(s.c));
  const int64_t width_a = s.transpose_a ? s.rows : s.k, width_b = s.transpose_b ? s.k : s.n;
  if (s.lda < width_a || s.ldb < width_b || s.ldc < s.n)
    return usage_error("row strides {}, {}, {} of a matrix product are less than the rows' widths {}, {}, {}", s.lda,
                       s.ldb, s.ldc, width_a, width_b, s.n);
  if (s.packed_b && s.batch != 1 && s.batch_stride_b != 0)
    return usage_error("a batch of matrix products with a packed second operand must share it");
  return {};
}

MatmulShape with_strides(MatmulShape s) {
  if (s.lda == 0) s.lda = s.transpose_a ? s.rows : s.k;
  if (s.ldb == 0) s.ldb = s.transpose_b ? s.k : s.n;
  if (s.ldc == 0) s.ldc = s.n;
  return s;
}

}  // namespace

struct Matmul::Impl {
  MatmulShape shape;
  Cut cut;
};

Matmul::Matmul(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Matmul::~Matmul() = default;

Result<std::unique_ptr<Matmul>> Matmul::create(const MatmulShape& shape, int threads) {
  INGOT_CHECK(threads >= 1, "a matrix product for {} threads", threads);
  const MatmulShape full = with_strides(shape);
  INGOT_TRY(check(full));
  return std::unique_ptr<Matmul>(new Matmul(std::make_unique<Impl>(Impl{full, cut_of(full)})));
}

const MatmulShape& Matmul::shape() const {
  return impl_->shape;
}

int64_t Matmul::tiles() const {
  return impl_->shape.batch * impl_->cut.row_tiles * impl_->cut.column_tiles;
}

Matmul::Tile Matmul::tile(int64_t index) const {
  const auto& [shape, cut] = *impl_;
  INGOT_CHECK(index >= 0 && index < tiles(), "tile {} of {}", index, tiles());
  const int64_t column = index % cut.column_tiles, rest = index / cut.column_tiles;
  const Range rows = split_evenly(shape.rows, cut.row_tiles, rest % cut.row_tiles, cut.row_grain);
  const Range columns = split_evenly(shape.n, cut.column_tiles, column, kPanelColumns);
  return {rest / cut.row_tiles, rows.begin, rows.end, columns.begin, columns.end};
}

size_t Matmul::scratch_bytes() const {
  return matmul_tile_scratch_bytes(std::min(impl_->shape.rows, row_tile_of(impl_->shape)));
}

size_t Matmul::packed_b_bytes() const {
  return static_cast<size_t>(panels_of(impl_->shape.n) * kPanelColumns * impl_->shape.k) * size_of(impl_->shape.b);
}

int64_t Matmul::pack_tiles() const {
  return (panels_of(impl_->shape.n) + kPanelsPerPackTile - 1) / kPanelsPerPackTile;
}

void Matmul::pack_b(int64_t part, const void* b, std::byte* packed, int, std::byte*) const {
  const MatmulShape& s = impl_->shape;
  INGOT_CHECK(part >= 0 && part < pack_tiles(), "part {} of {}", part, pack_tiles());
  const int64_t begin = part * kPanelsPerPackTile * kPanelColumns;
  const int64_t columns = std::min(s.n - begin, kPanelsPerPackTile * kPanelColumns);
  const float* from = static_cast<const float*>(b) + (s.transpose_b ? begin * s.ldb : begin);
  pack_panels(columns, s.k, from, s.ldb, s.transpose_b, reinterpret_cast<float*>(packed) + begin * s.k);
}

void Matmul::run(int64_t index, const void* a, const void* b, void* c, int, std::byte* scratch) const {
  const MatmulShape& s = impl_->shape;
  const Tile at = tile(index);
  MatmulTile work;
  work.rows = at.row_end - at.row_begin;
  work.columns = at.column_end - at.column_begin;
  work.k = s.k;
  work.lda = s.lda;
  work.ldb = s.ldb;
  work.ldc = s.ldc;
  work.transpose_a = s.transpose_a;
  work.transpose_b = s.transpose_b;
  work.packed_b = s.packed_b;
  work.accumulate = s.accumulate;
  work.a = static_cast<const float*>(a) + at.batch * s.batch_stride_a + at.row_begin * (s.transpose_a ? 1 : s.lda);
  work.b = static_cast<const float*>(b) + at.batch * s.batch_stride_b;
  if (s.packed_b)
    work.b += at.column_begin * s.k;
  else
    work.b += at.column_begin * (s.transpose_b ? s.ldb : 1);
  work.c = static_cast<float*>(c) + at.batch * s.batch_stride_c + at.row_begin * s.ldc + at.column_begin;
  if (s.k == 0 && !s.accumulate) {
    for (int64_t i = 0; i < work.rows; ++i) std::fill_n(work.c + i * s.ldc, work.columns, 0.0f);
    return;
  }
  run_matmul_tile(work, reinterpret_cast<float*>(scratch));
}

}  // namespace ingot::kernels
