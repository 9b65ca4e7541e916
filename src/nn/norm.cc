#include "nn/norm.h"

#include "ops/add_scalar.h"
#include "ops/layer_norm.h"
#include "ops/rms_norm.h"

namespace ingot {

ValueId norm(Builder& builder, ValueId x, const Weights& weights, const std::string& name, NormKind kind, double eps,
             bool adds_one) {
  const Builder::Scope scope(builder, name);
  ValueId weight = weights.optional(name + ".weight");
  if (adds_one && weight != kNone) weight = add_scalar(builder, weight, 1);
  if (kind == NormKind::rms_norm) return rms_norm(builder, x, weight, eps).y;
  return layer_norm(builder, x, weight, weights.optional(name + ".bias"), eps).y;
}

}  // namespace ingot
