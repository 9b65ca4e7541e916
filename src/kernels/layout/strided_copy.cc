#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "kernels/layout/layout.h"

namespace ingot::kernels {
namespace {

// Bytes: of a usual core's L2 and more.
constexpr int64_t kLargerThanCaches = int64_t{8} << 20;

// Walks the rows of a copy (all axes but the last) in order, keeping both offsets.
class RowWalk {
 public:
  RowWalk(const StridedCopy& copy, int64_t row) : copy_(copy), axes_(std::max(copy.shape.rank() - 1, 0)) {
    for (int axis = axes_ - 1; axis >= 0; --axis) {
      const int64_t extent = copy.shape[axis];
      move(axis, row % extent);
      row /= extent;
    }
  }
  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  // The row's index along the last of the walked axes.
  int64_t inner_index() const { return axes_ == 0 ? 0 : index_[static_cast<size_t>(axes_ - 1)]; }
  void advance(int64_t inner_steps = 1) {
    if (axes_ == 0) return;
    move(axes_ - 1, inner_steps);
    for (int axis = axes_ - 1; axis > 0 && index_[static_cast<size_t>(axis)] == copy_.shape[axis]; --axis) {
      move(axis, -copy_.shape[axis]);
      move(axis - 1, 1);
    }
  }

 private:
  void move(int axis, int64_t steps) {
    index_[static_cast<size_t>(axis)] += steps;
    from_ += steps * copy_.from_strides[axis];
    to_ += steps * copy_.to_strides[axis];
  }

  const StridedCopy& copy_;
  int axes_;
  std::array<int64_t, Shape::kMaxRank> index_{};
  int64_t from_ = 0, to_ = 0;
};

template <class T>
void copy_elements(const StridedCopy& copy, const std::byte* from_bytes, std::byte* to_bytes, int64_t row_begin,
                   int64_t row_end) {
  const T* from = reinterpret_cast<const T*>(from_bytes);
  T* to = reinterpret_cast<T*>(to_bytes);
  const bool scalar = copy.shape.rank() == 0;
  const int64_t n = scalar ? 1 : copy.shape[-1];
  const int64_t from_step = scalar ? 0 : copy.from_strides[-1], to_step = scalar ? 0 : copy.to_strides[-1];
  RowWalk walk(copy, row_begin);
  for (int64_t row = row_begin; row < row_end; ++row, walk.advance()) {
    const T* a = from + walk.from();
    T* b = to + walk.to();
    for (int64_t i = 0; i < n; ++i) b[i * to_step] = a[i * from_step];
  }
}

void copy_rows(const StridedCopy& copy, const std::byte* from, std::byte* to, int64_t row_begin, int64_t row_end) {
  const auto size = static_cast<int64_t>(copy.size);
  const auto bytes = static_cast<size_t>(copy.shape[-1] * size);
  RowWalk walk(copy, row_begin);
  for (int64_t row = row_begin; row < row_end; ++row, walk.advance()) {
    std::memcpy(to + walk.to() * size, from + walk.from() * size, bytes);
  }
}

// The last two axes are a transposed matrix: its rows that lie in the range go together.
void copy_transposed(const StridedCopy& copy, const std::byte* from, std::byte* to, int64_t row_begin,
                     int64_t row_end) {
  const auto size = static_cast<int64_t>(copy.size);
  const bool stream = copy.shape.elements() * size > kLargerThanCaches;
  RowWalk walk(copy, row_begin);
  for (int64_t row = row_begin; row < row_end;) {
    const int64_t count = std::min(row_end - row, copy.shape[-2] - walk.inner_index());
    transpose(from + walk.from() * size, copy.from_strides[-1], to + walk.to() * size, copy.to_strides[-2],
              copy.shape[-1], count, copy.size, stream);
    walk.advance(count);
    row += count;
  }
}

bool is_transposed(const StridedCopy& copy) {
  return copy.shape.rank() >= 2 && copy.from_strides[-2] == 1 && copy.to_strides[-1] == 1 &&
         (copy.size == 2 || copy.size == 4);
}

}  // namespace

StridedCopy permutation_copy(const Shape& shape, const Shape& permutation, size_t size) {
  INGOT_CHECK(shape.rank() == permutation.rank(), "permutation {} of a shape {}", permutation.to_string(),
              shape.to_string());
  std::array<int64_t, Shape::kMaxRank> dense{}, extents{}, from_strides{}, to_strides{};
  const auto rank = static_cast<size_t>(shape.rank());
  int64_t stride = 1;
  for (size_t k = rank; k-- > 0;) {
    dense[k] = stride;
    stride *= shape[static_cast<int>(k)];
  }
  for (size_t k = 0; k < rank; ++k) {
    const auto axis = static_cast<int>(permutation[static_cast<int>(k)]);
    extents[k] = shape[axis];
    from_strides[k] = dense[static_cast<size_t>(axis)];
  }
  stride = 1;
  for (size_t k = rank; k-- > 0;) {
    to_strides[k] = stride;
    stride *= extents[k];
  }
  const auto as_shape = [&](const auto& values) { return Shape(std::span(values.data(), rank)); };
  return {as_shape(extents), as_shape(from_strides), as_shape(to_strides), size};
}

int64_t rows_of(const StridedCopy& copy) {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < copy.shape.rank(); ++axis) rows *= copy.shape[axis];
  return rows;
}

void strided_copy(const StridedCopy& copy, const void* from_data, void* to_data, int64_t row_begin, int64_t row_end) {
  INGOT_CHECK(copy.from_strides.rank() == copy.shape.rank() && copy.to_strides.rank() == copy.shape.rank(),
              "shape {} with strides {} and {}", copy.shape.to_string(), copy.from_strides.to_string(),
              copy.to_strides.to_string());
  if (row_begin >= row_end) return;
  const auto* from = static_cast<const std::byte*>(from_data);
  auto* to = static_cast<std::byte*>(to_data);
  if (copy.shape.rank() > 0 && copy.from_strides[-1] == 1 && copy.to_strides[-1] == 1) {
    return copy_rows(copy, from, to, row_begin, row_end);
  }
  if (is_transposed(copy)) return copy_transposed(copy, from, to, row_begin, row_end);
  switch (copy.size) {
    case 1:
      return copy_elements<uint8_t>(copy, from, to, row_begin, row_end);
    case 2:
      return copy_elements<uint16_t>(copy, from, to, row_begin, row_end);
    case 4:
      return copy_elements<uint32_t>(copy, from, to, row_begin, row_end);
    case 8:
      return copy_elements<uint64_t>(copy, from, to, row_begin, row_end);
    default:
      INGOT_CHECK(false, "elements of {} bytes; 1, 2, 4 and 8 are supported", copy.size);
  }
}

void fill(float* to, float value, int64_t n) {
  std::fill_n(to, n, value);
}

}  // namespace ingot::kernels
