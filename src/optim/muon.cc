#include "optim/muon.h"

#include <algorithm>
#include <cmath>

#include "ops/add_scalar.h"
#include "ops/div.h"
#include "ops/matmul.h"
#include "ops/matmul_add.h"
#include "ops/scale.h"
#include "ops/sqrt.h"
#include "ops/sum_squares.h"

namespace ingot {
namespace {

constexpr int kSteps = 5;
constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315;
constexpr double kSmallestNorm = 1e-7;  // added to the norm

ValueId matmul_add(Builder& builder, ValueId sum, ValueId a, ValueId b) {
  return builder.add(kMatmulAdd, {sum, a, b}, MatmulAttributes{});
}

}  // namespace

ValueId orthogonalize(Builder& builder, ValueId x) {
  const bool is_tall = builder.shape(x)[0] > builder.shape(x)[1];
  const ValueId norm = sqrt(builder, sum_squares(builder, x));
  x = div(builder, x, add_scalar(builder, norm, kSmallestNorm));
  for (int step = 0; step < kSteps; ++step) {
    const ValueId s = matmul(builder, x, x, {.transpose_a = is_tall, .transpose_b = !is_tall});
    const ValueId p = matmul_add(builder, scale(builder, s, kCubic), scale(builder, s, kQuintic), s);
    const ValueId linear = scale(builder, x, kLinear);
    x = is_tall ? matmul_add(builder, linear, x, p) : matmul_add(builder, linear, p, x);
  }
  return x;
}

double muon_scale(const Shape& shape) {
  return 0.2 * std::sqrt(static_cast<double>(std::max(shape[0], shape[1])));
}

}  // namespace ingot
