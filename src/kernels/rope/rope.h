// Rotary position embedding (Su et al., RoFormer, 2021), in the half-split pairing of Hugging Face: element i of a
// head's first half turns with element i of its second half.
//
// x and y are fp32 [rows, heads, head_dim], rows strided; serial over rows [row_begin, row_end), each by itself. y may
// be x.
#pragma once

#include <cstdint>
#include <span>

namespace ingot::kernels {

// cos and sin [positions, frequencies] for the angles position * inverse_frequencies[i], in double; both times `scale`
// (YaRN's attention factor; else 1). Fills rows [position_begin, position_end).
void rope_table(std::span<const double> inverse_frequencies, double scale, float* cos, float* sin,
                int64_t position_begin, int64_t position_end);

struct Rope {
  const float* x = nullptr;
  int64_t x_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int64_t heads = 0;          // of a row that are copied where y is not x
  int64_t rotated_heads = 0;  // the first of them are rotated (q and k of a fused q/k/v row)
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;              // the first elements of a head that turn, even; the others are copied
  const int32_t* positions = nullptr;  // [rows]
  const float* cos = nullptr;          // [*, rotary_dim / 2]
  const float* sin = nullptr;
  bool inverse = false;  // turn back: the gradient
};
void rope(const Rope& args, int64_t row_begin, int64_t row_end);

}  // namespace ingot::kernels
