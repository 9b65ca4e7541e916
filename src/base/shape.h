// Shape: the extents of a dense row-major tensor, at most kMaxRank of them, held inline.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/check.h"

namespace ingot {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;  // a scalar
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) {
    INGOT_CHECK(dims.size() <= kMaxRank, "a shape of {} dimensions, at most {} are supported", dims.size(), kMaxRank);
    for (int64_t dim : dims) dims_[static_cast<size_t>(rank_++)] = dim;
  }

  int rank() const { return rank_; }
  // Negative axes count from the end, as in NumPy.
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(normalize(axis))]; }
  int64_t& operator[](int axis) { return dims_[static_cast<size_t>(normalize(axis))]; }
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t dim : dims()) n *= dim;
    return n;
  }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  int normalize(int axis) const {
    const int positive = axis < 0 ? axis + rank_ : axis;
    INGOT_CHECK(positive >= 0 && positive < rank_, "axis {} of a shape of rank {}", axis, rank_);
    return positive;
  }

  bool operator==(const Shape&) const = default;
  std::string to_string() const;  // "[2,3]"

 private:
  std::array<int64_t, kMaxRank> dims_{};  // zero beyond rank_, so that comparison may be defaulted
  int rank_ = 0;
};

// Strides, in elements, of a dense row-major tensor of this shape.
Shape dense_strides(const Shape& shape);

}  // namespace ingot
