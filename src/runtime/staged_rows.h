// A matrix that may be stored in 16 bits, seen in f32 one tile of rows at a time: what kernels that work on rows run
// on.
#pragma once

#include "graph/storage.h"
#include "kernels/layout/layout.h"
#include "runtime/kernel.h"

namespace ingot {

class StagedRows {
 public:
  // [rows, n] at data, dense.
  StagedRows(std::byte* data, DType dtype, int64_t n) : data_(data), dtype_(dtype), n_(n) {}

  // Rows [begin, begin + count) in f32: where they lie, or in the buffer, which has room for them.
  float* read(int64_t begin, int64_t count, float* buffer) const {
    if (!is_narrow(dtype_)) return reinterpret_cast<float*>(at(begin));
    kernels::cast(at(begin), dtype_, buffer, DType::f32, count * n_);
    return buffer;
  }
  // Where such rows are to be written, for write() to bring them to their place.
  float* place(int64_t begin, float* buffer) const {
    return is_narrow(dtype_) ? buffer : reinterpret_cast<float*>(at(begin));
  }
  void write(int64_t begin, int64_t count, const float* buffer) const {
    if (is_narrow(dtype_)) kernels::cast(buffer, DType::f32, at(begin), dtype_, count * n_);
  }

 private:
  std::byte* at(int64_t row) const { return data_ + row * n_ * static_cast<int64_t>(size_of(dtype_)); }

  std::byte* data_;
  DType dtype_;
  int64_t n_;
};

}  // namespace ingot
