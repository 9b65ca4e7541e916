// Memory that will be read soon, asked for while something else runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::kernels {

// Rows of memory. They are asked for into the second-level cache, some cache lines at a time, since no hardware follows
// rows that lie pages apart. Asking for an address never faults.
class Prefetch {
 public:
  Prefetch() = default;
  // `bytes` of each row, `stride` bytes between rows.
  Prefetch(const std::byte* at, int64_t rows, int64_t bytes, int64_t stride)
      : at_(at), stride_(stride), lines_((bytes + kLineBytes - 1) / kLineBytes), rows_(rows) {}

  int64_t left() const { return rows_ * lines_ - line_; }
  [[gnu::always_inline]] void ask(int64_t count) {
    for (; count > 0 && rows_ > 0; --count) {
      __builtin_prefetch(at_ + line_ * kLineBytes, 0, 2);
      if (++line_ < lines_) continue;
      line_ = 0;
      at_ += stride_;
      --rows_;
    }
  }

 private:
  static constexpr int64_t kLineBytes = 64;

  const std::byte* at_ = nullptr;
  int64_t stride_ = 0;
  int64_t lines_ = 0;  // cache lines a row
  int64_t rows_ = 0;   // not yet asked for to their ends
  int64_t line_ = 0;   // of the current row
};

}  // namespace ingot::kernels
