// AdamW whose moments are kept in 8 bits, block by block (Dettmers et al., "8-bit Optimizers via Block-wise
// Quantization", 2022).
#pragma once

#include <cstdint>

#include "kernels/optimizer/adamw.h"

namespace ingot::kernels {

// A moment of n elements: codes [n] of base/dynamic_map.h and scales [ceil(n / kDynamicBlock)]. Its element i is
// values[codes[i]] * scales[i / kDynamicBlock].
struct QuantizedMoment {
  uint8_t* codes;
  float* scales;
};

// One update as adamw() makes it, from the moments as they are stored (m in the signed map, v in the unsigned one). p
// is updated with the new moments in fp32; then they are stored anew, each block with its largest magnitude as scale
// (a scale below the smallest normal number counts as zero). In one pass over memory; serial, nothing is allocated. The
// pointers stand at the beginning of a block: cut at multiples of kDynamicBlock and the bits are the same.
void adamw_8bit(const AdamW& args, float* p, const float* grad, QuantizedMoment m, QuantizedMoment v, int64_t n);

}  // namespace ingot::kernels
