// How the register-blocked cores of matrix products are called: what a block of C reads and where it goes. A step of k
// is four bytes of each operand: an element of fp32, or a pair of 16-bit elements (panels.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/panels.h"

namespace ingot::kernels {

// A: step p of row i lies at data + i * row + p * step, in bytes; where it was packed, groups of rows lie `group` apart
// and their rows do not follow one another.
struct BlockRows {
  // Words between packed groups. Vectors are written beyond a group's end, and groups a multiple of 4 KiB apart would
  // fight for the same lines of a first-level cache.
  static constexpr int64_t kGroupPadding = 16;
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
  // Groups one after another, each [steps, group_rows] words and kGroupPadding.
  static BlockRows packed(const void* words, int64_t steps, int64_t group_rows) {
    return {static_cast<const std::byte*>(words), kWord, group_rows * kWord,
            (steps * group_rows + kGroupPadding) * kWord};
  }
};

// Cache lines that will soon be wanted: `count` of them, `step` bytes apart.
struct Lines {
  static constexpr int64_t kBytes = 64;

  const std::byte* at = nullptr;
  int64_t step = kBytes, count = 0;
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
  // What a block of so many rows and columns writes, a line of each row: of c two, if it is wide enough.
  struct Written {
    Lines left, right, rounded;
  };
  Written written(int64_t rows, int64_t columns) const {
    Written lines;
    if (rounded == nullptr || accumulate) {
      const auto* at = reinterpret_cast<const std::byte*>(c);
      const int64_t row = ldc * static_cast<int64_t>(sizeof(*c));
      lines.left = {at, row, rows};
      if (columns * static_cast<int64_t>(sizeof(*c)) > Lines::kBytes) lines.right = {at + Lines::kBytes, row, rows};
    }
    if (rounded != nullptr)
      lines.rounded = {reinterpret_cast<const std::byte*>(rounded),
                       rounded_stride * static_cast<int64_t>(sizeof(*rounded)), rows};
    return lines;
  }
};

// Steps of a panel that is packed for later: each from some rows of B in memory, kPanelColumns wide.
struct PanelAhead {
  const std::byte* from = nullptr;
  int64_t row = 0;  // bytes between rows
  std::byte* to = nullptr;
  int64_t steps = 0;  // left to do

  // The next step, which is made of so many rows.
  [[gnu::always_inline]] PanelAhead take(int64_t rows) {
    const PanelAhead step = *this;
    from += rows * row;
    to += kPanelColumns * BlockRows::kWord;
    --steps;
    return step;
  }
};

// What a block does beside its products, a little every kStepsATurn steps: in a burst it would stop the products until
// memory has answered. It asks for a line of A and of B, into the second-level cache; packs a step of a panel; and
// towards the end asks for a row of C, which would be driven out again if it came earlier. Asking never faults.
inline constexpr int64_t kStepsATurn = 4;
struct Meanwhile {
  Lines a, b, b_right;  // b_right: a row's second line, where it has two
  PanelAhead panel;
  BlockTarget::Written c;

  // The step from which on turns ask for C: some time before the last ones.
  static constexpr int64_t late_from(int64_t steps, int64_t rows) {
    constexpr int64_t kTurnsARow = 4;
    return steps - kTurnsARow * rows * kStepsATurn;
  }
  // Then a step of the panel is due, if there is any.
  [[gnu::always_inline]] void turn(bool is_late) {
    asm volatile("" : "+m"(*this));  // NOLINT: in memory, since registers are for the products
    ask<kToRead>(a);
    ask<kToRead>(b);
    ask<kToRead>(b_right);
    if (!is_late) return;
    ask<kToWrite>(c.left);
    ask<kToWrite>(c.right);
    ask<kToWrite>(c.rounded);
  }

 private:
  enum Purpose : uint8_t { kToRead, kToWrite };
  template <Purpose kPurpose>
  [[gnu::always_inline]] static void ask(Lines& lines) {
    if (lines.count == 0) return;
    if constexpr (kPurpose == kToRead)
      __builtin_prefetch(lines.at, 0, 2);
    else
      __builtin_prefetch(lines.at, 1);
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
