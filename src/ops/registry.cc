#include "ops/registry.h"

#include <algorithm>
#include <array>

#include "ops/add.h"
#include "ops/broadcast_to.h"
#include "ops/constant.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/sum.h"

namespace ingot {

// In alphabetical order.
std::span<const OpDef* const> all_ops() {
  static constexpr auto kAll = std::to_array<const OpDef*>({
      &kAdd,
      &kBroadcastTo,
      &kConstant,
      &kMatmul,
      &kMul,
      &kReshape,
      &kSum,
  });
  return kAll;
}

const OpDef* find_op(std::string_view name) {
  const auto ops = all_ops();
  const auto it = std::ranges::find(ops, name, &OpDef::name);
  return it == ops.end() ? nullptr : *it;
}

}  // namespace ingot
