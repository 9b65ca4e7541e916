// The scalar reference of AdamW with 8-bit moments: one block, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/dynamic_map.h"
#include "kernels/optimizer/adamw_reference.h"

namespace ingot::kernels::reference {

// The codes and scale of a block's numbers.
inline double quantize_block(DynamicMap map, const std::vector<double>& numbers, uint8_t* codes) {
  double scale = 0;
  for (double x : numbers) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < numbers.size(); ++i) codes[i] = dynamic_code(map, scale > 0 ? numbers[i] / scale : 0);
  return scale;
}

// p, grad and the codes have `count` elements.
inline void adamw_8bit_block(const AdamW& args, double* p, const double* grad, uint8_t* m_codes, double& m_scale,
                             uint8_t* v_codes, double& v_scale, int64_t count) {
  std::vector<double> m, v;
  for (int64_t i = 0; i < count; ++i) {
    m.push_back(double{dynamic_values(DynamicMap::signed_values)[m_codes[i]]} * m_scale);
    v.push_back(double{dynamic_values(DynamicMap::unsigned_values)[v_codes[i]]} * v_scale);
    adamw(args, p[i], grad[i], m.back(), v.back());
  }
  m_scale = quantize_block(DynamicMap::signed_values, m, m_codes);
  v_scale = quantize_block(DynamicMap::unsigned_values, v, v_codes);
}

}  // namespace ingot::kernels::reference
