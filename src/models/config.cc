#include "models/config.h"

#include <cmath>

namespace ingot {

double ModelConfig::attention_scale(int64_t layer) const {
  const double divisor = query_pre_attn_scalar > 0 ? query_pre_attn_scalar : static_cast<double>(head_dim);
  double scale = scale_attention ? 1 / std::sqrt(divisor) : 1.0;
  if (scale_attention_by_layer) scale /= static_cast<double>(layer + 1);
  return scale;
}

int64_t ModelConfig::window(int64_t layer) const {
  return alternate_windows && layer % 2 != 0 ? 0 : sliding_window;
}

}  // namespace ingot
