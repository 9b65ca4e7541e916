#include "nn/weights.h"

namespace ingot {

ValueId Weights::optional(std::string_view name) const {
  const Source* source = graph_->find_source(prefix_ + std::string(name));
  return source == nullptr ? kNone : source->value;
}

ValueId Weights::operator()(std::string_view name) const {
  const ValueId value = optional(name);
  INGOT_CHECK(value != kNone, "the model has no parameter {}{}", prefix_, name);
  return value;
}

}  // namespace ingot
