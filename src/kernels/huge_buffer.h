// Memory for measurements: aligned to huge pages, asked for as such, touched once.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace ingot::kernels {

template <class T>
class HugeBuffer {
 public:
  explicit HugeBuffer(int64_t n) : size_(n) {
    constexpr size_t kPage = size_t{2} << 20;
    const size_t bytes = (static_cast<size_t>(n) * sizeof(T) + kPage - 1) / kPage * kPage;
    data_.reset(static_cast<T*>(std::aligned_alloc(kPage, bytes)));
    INGOT_CHECK(data_ != nullptr, "no memory for {} bytes of a measurement", bytes);
#ifdef MADV_HUGEPAGE
    madvise(data_.get(), bytes, MADV_HUGEPAGE);  // advice only: without huge pages the figures are lower, not wrong
#endif
    std::memset(data_.get(), 0, bytes);
  }
  T* data() const {
    return data_.get();
  }
  int64_t size() const {
    return size_;
  }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_;
};

}  // namespace ingot::kernels
