// How the register-blocked cores of matrix products are called: what a block of C reads and where it goes. A step of k
// is four bytes of each operand: an element of fp32, or a pair of 16-bit elements (panels.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::kernels {

// A: step p of row i lies at data + i * row + p * step, in bytes; where it was packed, groups of rows lie `group` apart
// and their rows do not follow one another.
struct BlockRows {
  static constexpr int64_t kWord = 4;

  const std::byte* data = nullptr;
  int64_t row = 0, step = 0, group = 0;

  // The group with the given number, whose first row is `first`.
  const std::byte* at(int64_t number, int64_t first) const {
    return data + (group == 0 ? first * row : number * group);
  }

  // Words of 4 bytes with steps side by side, `stride` words between rows.
  static BlockRows of_rows(const void* words, int64_t stride) {
    return {static_cast<const std::byte*>(words), stride * kWord, kWord, 0};
  }
  // Rows side by side, `stride` words between steps.
  static BlockRows of_columns(const void* words, int64_t stride) {
    return {static_cast<const std::byte*>(words), kWord, stride * kWord, 0};
  }
  // Groups one after another, each [steps, group_rows] words.
  static BlockRows packed(const void* words, int64_t steps, int64_t group_rows) {
    return {static_cast<const std::byte*>(words), kWord, group_rows * kWord, steps * group_rows * kWord};
  }
};

// C: sums are written to c, or added to it. Where `rounded` is there, sums (with what c holds, if they are added)
// are rounded to bf16 into it, and c is left alone.
struct BlockTarget {
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  uint16_t* rounded = nullptr;
  int64_t rounded_stride = 0;

  BlockTarget at(int64_t row, int64_t column) const {
    BlockTarget target = *this;
    target.c += row * ldc + column;
    if (rounded != nullptr) target.rounded += row * rounded_stride + column;
    return target;
  }
};

// Cache lines that will be read soon: `count` of them, `step` bytes apart.
struct Lines {
  static constexpr int64_t kBytes = 64;

  const std::byte* at = nullptr;
  int64_t step = kBytes, count = 0;
};

// What a block asks for while it multiplies, into the second-level cache: one line of each every kStepsALine steps. It
// is spread over the steps since a burst of it would stop the products until memory has answered. Asking never faults.
inline constexpr int64_t kStepsALine = 4;
struct AskedAhead {
  Lines a, b;

  [[gnu::always_inline]] void ask() {
    ask(a);
    ask(b);
  }

 private:
  [[gnu::always_inline]] static void ask(Lines& lines) {
    if (lines.count == 0) return;
    __builtin_prefetch(lines.at, 0, 2);
    lines.at += lines.step;
    --lines.count;
  }
};

// Rows of A are reached from every third one's address, so that twelve of them take few registers. The compiler would
// keep an address for each, and most of them in memory.
inline constexpr int kRowsAnAddress = 3;
template <int kRows>
struct RowAddresses {
  static constexpr int kCount = (kRows + kRowsAnAddress - 1) / kRowsAnAddress;

  const std::byte* at[kCount];
  int64_t row, step;

  [[gnu::always_inline]] RowAddresses(const std::byte* a, int64_t row_bytes, int64_t step_bytes)
      : row(row_bytes), step(step_bytes) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) at[i] = a + i * kRowsAnAddress * row;
  }
  template <class T>
  [[gnu::always_inline]] T word(int i) const {
    T value;
    __builtin_memcpy(&value, at[i / kRowsAnAddress] + i % kRowsAnAddress * row, sizeof(value));
    return value;
  }
  [[gnu::always_inline]] void advance() {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      at[i] += step;
      asm volatile("" : "+r"(at[i]));  // NOLINT: each in a register of its own, not together in a vector
    }
  }
};

}  // namespace ingot::kernels
