#include "nn/dropout.h"

#include "ops/dropout.h"

namespace ingot {

ValueId named_dropout(Builder& builder, ValueId x, double p, std::string_view name) {
  return dropout(builder, x, p, fmt::format("{}.{}", builder.path(), name));
}

}  // namespace ingot
