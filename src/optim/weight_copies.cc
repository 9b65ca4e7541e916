#include "optim/weight_copies.h"

#include <algorithm>

#include "kernels/layout/layout.h"
#include "ops/cast.h"
#include "passes/lower_precision.h"

namespace ingot {

std::string WeightCopy::variable() const {
  return weight_copy_name(type.dtype, parameter);
}

std::vector<WeightCopy> weight_copies(const Graph& graph) {
  std::vector<WeightCopy> copies;
  for (const Source& source : graph.sources) {
    const std::string_view parameter = copied_parameter(source.name);
    if (source.kind == SourceKind::state && !parameter.empty())
      copies.push_back({std::string(parameter), graph.type(source.value)});
  }
  return copies;
}

void refresh_copy(Builder& builder, std::span<const WeightCopy> copies, const std::string& parameter, ValueId weight) {
  const auto copy = std::ranges::find(copies, parameter, &WeightCopy::parameter);
  if (copy == copies.end()) return;
  builder.store(builder.state(copy->variable(), copy->type), cast(builder, weight, copy->type.dtype));
}

void fill_weight_copies(const Arena& arena) {
  for (const Variable& variable : arena.variables().variables()) {
    const std::string_view parameter = copied_parameter(variable.name);
    if (parameter.empty()) continue;
    kernels::cast(arena.variable(parameter).data, DType::f32, arena.variable(variable.name).data, variable.type.dtype,
                  variable.type.shape.elements());
  }
}

}  // namespace ingot
