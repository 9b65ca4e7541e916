// The packed layout of a matrix product's second operand: panels of kPanelColumns columns, each [k, kPanelColumns] and
// contiguous, the last one filled up with zeros. The same for every instruction set.
#pragma once

#include <cstdint>

namespace ingot::kernels {

inline constexpr int64_t kPanelColumns = 32;
// Steps of k summed in registers before C is touched: a panel of this depth fills most of a first-level cache.
inline constexpr int64_t kDepthBlock = 256;
// The most rows of C that any instruction set holds in registers.
inline constexpr int64_t kMaxGemmRows = 12;

constexpr int64_t panels_of(int64_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns;
}

}  // namespace ingot::kernels
