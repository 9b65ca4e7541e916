#include "kernels/matmul/split_product.h"

#include <algorithm>

#include "base/check.h"
#include "base/parallel.h"
#include "kernels/matmul/matmul_tiles.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kStepGrain = 8;           // of k, what the kernel takes at a time
constexpr int64_t kPartElements = 1 << 16;  // of B: 256 KB
constexpr int64_t kMostParts = 32;          // what balances over some ten threads
constexpr int64_t kTileColumns = 512;       // of C
constexpr int64_t kWidest = 1 << 13;        // columns of C that stay in the inner caches

}  // namespace

bool SplitProduct::fits(const MatmulShape& s) {
  if (s.a != DType::f32 || s.b != DType::f32 || s.c != DType::f32) return false;
  return s.rows >= 1 && s.rows <= kFewRows && !s.transpose_a && !s.transpose_b && !s.packed_b && s.batch == 1 &&
         s.n <= kWidest && s.n * s.k >= 2 * kPartElements;
}

SplitProduct::SplitProduct(const MatmulShape& shape) : shape_(shape) {
  INGOT_CHECK(fits(shape), "a product of {} x {} x {} is not split", shape.rows, shape.n, shape.k);
  if (shape_.lda == 0) shape_.lda = shape_.k;
  if (shape_.ldb == 0) shape_.ldb = shape_.n;
  if (shape_.ldc == 0) shape_.ldc = shape_.n;
  const int64_t grains = (shape_.k + kStepGrain - 1) / kStepGrain;
  parts_ = std::clamp<int64_t>(shape_.n * shape_.k / kPartElements, 2, std::min(grains, kMostParts));
}

size_t SplitProduct::workspace_bytes() const {
  return static_cast<size_t>(parts_ * shape_.rows * shape_.n) * sizeof(float);
}

void SplitProduct::run_part(int64_t part, const float* a, const float* b, std::byte* workspace) const {
  const Range steps = split_evenly(shape_.k, parts_, part, kStepGrain);
  MatmulTile work;
  work.rows = shape_.rows;
  work.columns = work.ldc = shape_.n;
  work.k = steps.size();
  work.a = a + steps.begin;
  work.lda = shape_.lda;
  work.b = b + steps.begin * shape_.ldb;
  work.ldb = shape_.ldb;
  work.c = reinterpret_cast<float*>(workspace) + part * shape_.rows * shape_.n;
  run_matmul_tile(work, nullptr);
}

int64_t SplitProduct::tiles() const {
  return (shape_.n + kTileColumns - 1) / kTileColumns;
}

Matmul::Tile SplitProduct::tile(int64_t index) const {
  INGOT_CHECK(index >= 0 && index < tiles(), "tile {} of {}", index, tiles());
  return {0, 0, shape_.rows, index * kTileColumns, std::min(shape_.n, (index + 1) * kTileColumns)};
}

void SplitProduct::combine(int64_t index, const std::byte* workspace, float* c) const {
  const Matmul::Tile at = tile(index);
  for (int64_t row = 0; row < shape_.rows; ++row)
    sum_parts(at.column_end - at.column_begin, parts_,
              reinterpret_cast<const float*>(workspace) + row * shape_.n + at.column_begin, shape_.rows * shape_.n,
              c + row * shape_.ldc + at.column_begin, shape_.accumulate);
}

}  // namespace ingot::kernels
