#include "models/config.h"

#include <cmath>

namespace ingot {

double ModelConfig::attention_scale(int64_t layer) const {
  double scale = scale_attention ? 1 / std::sqrt(static_cast<double>(head_dim)) : 1.0;
  if (scale_attention_by_layer) scale /= static_cast<double>(layer + 1);
  return scale;
}

}  // namespace ingot
