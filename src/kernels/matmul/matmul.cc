#include "kernels/matmul/matmul.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/parallel.h"
#include "kernels/layout/layout.h"
#include "kernels/matmul/matmul_tiles.h"

namespace ingot::kernels {
namespace {

// A tile's rows use each panel of B again and again: enough of them hide reading it, or packing it beside the products;
// twice as many hide preparing it between them, or reading it where it is larger than caches are. Columns are cut so
// that some 32 tiles balance over 1 to 8 threads and more. Where A is copied or packed, each tile does so: then there
// are fewer, as wide as can be. Few rows (generation) are bound by reading B: there columns alone are shared out.
constexpr int64_t kRowTile = 96, kLargeRowTile = 192;
constexpr int64_t kLargeBytes = int64_t{16} << 20;
constexpr int64_t kRowGrain = kMaxGemmRows;
constexpr int64_t kUncutRows = 16;
constexpr int64_t kFewRowsTile = 16384;  // elements of B
constexpr int64_t kWantedTiles = 32, kWantedPackingTiles = 16;
constexpr int64_t kMinPanels = 3, kMaxTilePanels = 72;  // of 32 rows
constexpr int64_t kMaxPackingPanels = 96;
// B is packed in parts that are long stretches of memory.
constexpr int64_t kPanelsPerPackTile = 4, kStepsPerPackTile = 64;

bool is_half(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16;
}

// Whether panels of B are turned or widened in each tile, between products.
bool prepares_panels(const MatmulShape& shape, Bf16Product bf16) {
  const bool in_pairs = shape.a == DType::bf16 && shape.b == DType::bf16 && bf16 != Bf16Product::widened;
  return (!shape.packed_b && shape.transpose_b) || (is_half(shape.b) && !in_pairs);
}

bool copies_a(const MatmulShape& shape) {
  return shape.transpose_a || rows_collide(shape.lda, shape.a);
}

int64_t row_tile_of(const MatmulShape& shape, Bf16Product bf16) {
  const bool is_large = shape.n * shape.k * static_cast<int64_t>(size_of(shape.b)) > kLargeBytes;
  const bool pays = prepares_panels(shape, bf16) || (is_large && !copies_a(shape));
  return pays && shape.rows >= 2 * kLargeRowTile ? kLargeRowTile : kRowTile;
}

struct Cut {
  int64_t row_tiles = 0, column_tiles = 0, row_grain = 1;
};

Cut cut_of(const MatmulShape& shape, Bf16Product bf16) {
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
  const int64_t row_tile = row_tile_of(shape, bf16);
  cut.row_tiles = (shape.rows + row_tile - 1) / row_tile;
  cut.row_grain = cut.row_tiles > 1 ? kRowGrain : shape.rows;
  const bool copies = copies_a(shape);
  const int64_t wanted_tiles = copies ? kWantedPackingTiles : kWantedTiles;
  const int64_t max_panels = copies ? kMaxPackingPanels : kMaxTilePanels * kPanelColumns / row_tile;
  const int64_t wanted = (wanted_tiles + cut.row_tiles * shape.batch - 1) / (cut.row_tiles * shape.batch);
  const int64_t most = std::max<int64_t>(1, panels / kMinPanels);
  const int64_t least = (panels + max_panels - 1) / max_panels;
  cut.column_tiles = std::max(least, std::min(wanted, most));
  return cut;
}

Status check(const MatmulShape& s) {
  if (s.rows < 0 || s.n < 0 || s.k < 0 || s.batch < 0)
    return usage_error("a matrix product of negative size: {} x {} x {}, batch {}", s.rows, s.n, s.k, s.batch);
  for (const DType dtype : {s.a, s.b, s.c})
    if (dtype != DType::f32 && !is_half(dtype))
      return usage_error("no matrix product of {} and {} into {}: f32, bf16 and f16 are there", name_of(s.a),
                         name_of(s.b), name_of(s.c));
  if (s.accumulate && s.c != DType::f32)
    return usage_error("a matrix product adds to a result in f32 only, not in {}", name_of(s.c));
  if (s.packed_b && s.pack_source != s.b && s.pack_source != DType::f32)
    return usage_error("a matrix product's second operand in {} is packed from {} or f32, not from {}", name_of(s.b),
                       name_of(s.b), name_of(s.pack_source));
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

// Where B's rows become the steps of panels (a weight gradient's dY), tiles pack it beside their products, and only
// many of them take longer than packing it once.
bool pays_to_pack(const MatmulShape& shape) {
  constexpr int64_t kRows = 64, kRowsPackedBeside = 2048;
  const bool is_packed_beside = shape.transpose_a && !shape.transpose_b;
  return shape.batch == 1 && shape.rows >= (is_packed_beside ? kRowsPackedBeside : kRows);
}

struct Matmul::Impl {
  MatmulShape shape;
  Bf16Product bf16 = Bf16Product::widened;
  Cut cut;
  int64_t max_tile_elements = 0;

  Range rows(int64_t index) const { return split_evenly(shape.rows, cut.row_tiles, index, cut.row_grain); }
  Range columns(int64_t index) const { return split_evenly(shape.n, cut.column_tiles, index, kPanelColumns); }
  int64_t most_rows() const { return std::min(shape.rows, row_tile_of(shape, bf16)); }
  size_t tile_scratch_bytes() const { return matmul_tile_scratch_bytes(most_rows(), shape.k, shape.a, shape.b); }
  MatmulTile work(const Tile& at, const void* a, const void* b) const;
  void run(const Tile& at, const void* a, const void* b, float* c, int64_t ldc, std::byte* scratch) const;
  void run_rounded(const Tile& at, const void* a, const void* b, std::byte* c, std::byte* scratch) const;
  void fill_max_tile();
};

void Matmul::Impl::fill_max_tile() {
  int64_t most_rows = 0, most_columns = 0;
  for (int64_t i = 0; i < cut.row_tiles; ++i) most_rows = std::max(most_rows, rows(i).size());
  for (int64_t j = 0; j < cut.column_tiles; ++j) most_columns = std::max(most_columns, columns(j).size());
  max_tile_elements = most_rows * most_columns;
}

// All of the tile but where it goes.
MatmulTile Matmul::Impl::work(const Tile& at, const void* a, const void* b) const {
  const MatmulShape& s = shape;
  const auto offset = [](const void* from, DType dtype, int64_t elements) {
    return static_cast<const std::byte*>(from) + elements * static_cast<int64_t>(size_of(dtype));
  };
  MatmulTile work;
  work.rows = at.row_end - at.row_begin;
  work.columns = at.column_end - at.column_begin;
  work.k = s.k;
  work.lda = s.lda;
  work.ldb = s.ldb;
  work.transpose_a = s.transpose_a;
  work.transpose_b = s.transpose_b;
  work.packed_b = s.packed_b;
  work.a_dtype = s.a;
  work.b_dtype = s.b;
  work.bf16 = bf16;
  work.a = offset(a, s.a, at.batch * s.batch_stride_a + at.row_begin * (s.transpose_a ? 1 : s.lda));
  if (s.packed_b)
    work.b = static_cast<const std::byte*>(b) + at.column_begin * panel_column_bytes(s.b, s.k);
  else
    work.b = offset(b, s.b, at.batch * s.batch_stride_b + at.column_begin * (s.transpose_b ? s.ldb : 1));
  return work;
}

void Matmul::Impl::run(const Tile& at, const void* a, const void* b, float* c, int64_t ldc, std::byte* scratch) const {
  MatmulTile tile = work(at, a, b);
  tile.c = c;
  tile.ldc = ldc;
  tile.accumulate = shape.accumulate;
  if (shape.k == 0 && !shape.accumulate) {
    for (int64_t i = 0; i < tile.rows; ++i) std::fill_n(c + i * ldc, tile.columns, 0.0f);
    return;
  }
  run_matmul_tile(tile, reinterpret_cast<float*>(scratch));
}

// C is not f32. Sums lie behind what the tile needs.
void Matmul::Impl::run_rounded(const Tile& at, const void* a, const void* b, std::byte* c, std::byte* scratch) const {
  auto* sums = reinterpret_cast<float*>(scratch + tile_scratch_bytes());
  MatmulTile tile = work(at, a, b);
  if (tile.in_pairs() && shape.c == DType::bf16 && shape.k > 0) {
    tile.c = sums;
    tile.ldc = tile.columns;
    tile.rounded = reinterpret_cast<uint16_t*>(c);
    tile.rounded_stride = shape.ldc;
    return run_matmul_tile(tile, reinterpret_cast<float*>(scratch));
  }
  run(at, a, b, sums, tile.columns, scratch);
  for (int64_t i = 0; i < tile.rows; ++i)
    cast(sums + i * tile.columns, DType::f32, c + i * shape.ldc * static_cast<int64_t>(size_of(shape.c)), shape.c,
         tile.columns);
}

Matmul::Matmul(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Matmul::~Matmul() = default;

Result<std::unique_ptr<Matmul>> Matmul::create(const MatmulShape& shape, int threads) {
  return create(shape, threads, best_bf16_product());
}

Result<std::unique_ptr<Matmul>> Matmul::create(const MatmulShape& shape, int threads, Bf16Product bf16) {
  INGOT_CHECK(threads >= 1, "a matrix product for {} threads", threads);
  const MatmulShape full = with_strides(shape);
  INGOT_TRY(check(full));
  if (bf16 == Bf16Product::cpu_pairs && best_bf16_product() != Bf16Product::cpu_pairs)
    return usage_error("this CPU has no dot products of bf16 in the instruction set in use");
  auto impl = std::make_unique<Impl>(Impl{full, bf16, cut_of(full, bf16)});
  impl->fill_max_tile();
  return std::unique_ptr<Matmul>(new Matmul(std::move(impl)));
}

const MatmulShape& Matmul::shape() const {
  return impl_->shape;
}

int64_t Matmul::tiles() const {
  return impl_->shape.batch * impl_->cut.row_tiles * impl_->cut.column_tiles;
}

Matmul::Tile Matmul::tile(int64_t index) const {
  const Cut& cut = impl_->cut;
  INGOT_CHECK(index >= 0 && index < tiles(), "tile {} of {}", index, tiles());
  const int64_t rest = index / cut.column_tiles;
  const Range rows = impl_->rows(rest % cut.row_tiles), columns = impl_->columns(index % cut.column_tiles);
  return {rest / cut.row_tiles, rows.begin, rows.end, columns.begin, columns.end};
}

int64_t Matmul::max_tile_elements() const {
  return impl_->max_tile_elements;
}

// Behind what the tile needs: C in fp32 where it is rounded at the end.
size_t Matmul::scratch_bytes() const {
  const size_t sums = impl_->shape.c == DType::f32 ? 0 : static_cast<size_t>(max_tile_elements()) * sizeof(float);
  return impl_->tile_scratch_bytes() + sums;
}

size_t Matmul::packed_b_bytes() const {
  const MatmulShape& s = impl_->shape;
  return static_cast<size_t>(panels_of(s.n) * kPanelColumns * panel_column_bytes(s.b, s.k));
}

int64_t Matmul::pack_tiles() const {
  const MatmulShape& s = impl_->shape;
  return s.transpose_b ? (panels_of(s.n) + kPanelsPerPackTile - 1) / kPanelsPerPackTile
                       : std::max<int64_t>(1, (s.k + kStepsPerPackTile - 1) / kStepsPerPackTile);
}

void Matmul::pack_b(int64_t part, const void* b, std::byte* packed, int, std::byte*) const {
  const MatmulShape& s = impl_->shape;
  INGOT_CHECK(part >= 0 && part < pack_tiles(), "part {} of {}", part, pack_tiles());
  if (!s.transpose_b) {
    const int64_t begin = part * kStepsPerPackTile;
    return pack_panels({packed, s.b, s.k, s.n}, b, s.pack_source, s.ldb, false,
                       {begin, std::min(s.k, begin + kStepsPerPackTile)});
  }
  const int64_t begin = part * kPanelsPerPackTile * kPanelColumns;
  const int64_t columns = std::min(s.n - begin, kPanelsPerPackTile * kPanelColumns);
  pack_panels({packed + begin * panel_column_bytes(s.b, s.k), s.b, s.k, columns},
              static_cast<const std::byte*>(b) + begin * s.ldb * static_cast<int64_t>(size_of(s.pack_source)),
              s.pack_source, s.ldb, true, {0, s.k});
}

void Matmul::run(int64_t index, const void* a, const void* b, void* c, int thread, std::byte* scratch) const {
  const MatmulShape& s = impl_->shape;
  const Tile at = tile(index);
  std::byte* to = static_cast<std::byte*>(c) + (at.batch * s.batch_stride_c + at.row_begin * s.ldc + at.column_begin) *
                                                   static_cast<int64_t>(size_of(s.c));
  if (s.c == DType::f32) return impl_->run(at, a, b, reinterpret_cast<float*>(to), s.ldc, scratch);
  impl_->run_rounded(at, a, b, to, scratch);
}

void Matmul::run_into(int64_t index, const void* a, const void* b, float* to, int64_t to_stride, int,
                      std::byte* scratch) const {
  INGOT_CHECK(!impl_->shape.accumulate, "a matrix product that accumulates has no result apart from C");
  impl_->run(tile(index), a, b, to, to_stride, scratch);
}

}  // namespace ingot::kernels
