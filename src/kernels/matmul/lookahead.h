// Memory that a product will read soon, asked for while it runs.
#pragma once

#include <cstdint>

namespace ingot::kernels {

// Rows of memory that will be read soon. They are asked for into the second-level cache, a few cache lines at a time
// while a product runs, since no hardware follows rows that lie pages apart. Asking for an address never faults.
struct Prefetch {
  static constexpr int64_t kLineBytes = 64;

  const char* at = nullptr;
  int64_t stride = 0;  // bytes between rows
  int64_t lines = 0;   // cache lines a row
  int64_t rows = 0;
  int64_t line = 0;  // of the current row

  // width and stride in elements.
  template <class T>
  static Prefetch of(const T* at, int64_t rows, int64_t width, int64_t stride) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    return {reinterpret_cast<const char*>(at), stride * kSize, (width * kSize + kLineBytes - 1) / kLineBytes, rows, 0};
  }
  int64_t left() const { return rows * lines - line; }
  [[gnu::always_inline]] void ask(int64_t count) {
    for (; count > 0 && rows > 0; --count) {
      __builtin_prefetch(at + line * kLineBytes, 0, 2);
      if (++line < lines) continue;
      line = 0;
      at += stride;
      --rows;
    }
  }
};

// What a product asks for as it goes: a burst of lines of each for every kGemmChunk steps.
inline constexpr int64_t kGemmChunk = 16;
struct Lookahead {
  Prefetch panel, block;
  int64_t panel_burst = 0, block_burst = 0;
  [[gnu::always_inline]] void ask() {
    panel.ask(panel_burst);
    block.ask(block_burst);
  }
};

}  // namespace ingot::kernels
