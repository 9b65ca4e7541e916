// adamw_8bit(param, grad, m_codes, v_codes, m_scales, v_scales, control, clip) -> param', m_codes', v_codes',
// m_scales', v_scales': adamw with moments in 8 bits (Dettmers et al., "8-bit Optimizers via Block-wise Quantization",
// 2022).
//
// Codes are u8 of the parameter's shape, scales f32[blocks]: element i of m is value(m_codes[i]) · m_scales[i / 256],
// by the maps of base/dynamic_map.h, signed for m and unsigned for v. The step is adamw's, with the new moments before
// they are stored; each block's new scale is its largest magnitude.
#pragma once

#include <array>

#include "ops/adamw.h"

namespace ingot {

// Blocks of the state of a parameter with so many elements.
int64_t dynamic_blocks(int64_t elements);

struct Adamw8bitInputs {
  ValueId param, grad, m_codes, v_codes, m_scales, v_scales, control, clip;
};

extern const OpDef kAdamw8bit;
// {param', m_codes', v_codes', m_scales', v_scales'}
std::array<ValueId, 5> adamw_8bit(Builder& builder, const Adamw8bitInputs& inputs, AdamwAttributes attributes);

}  // namespace ingot
