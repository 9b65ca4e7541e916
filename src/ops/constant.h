// constant(): a tensor whose content is known when the graph is built: one value for all elements, or each element's
// own.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct ConstantAttributes {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<double> values;  // one (for all elements) or as many as elements
  static constexpr auto fields =
      std::tuple(field("dtype", &ConstantAttributes::dtype), field("shape", &ConstantAttributes::shape),
                 field("values", &ConstantAttributes::values));
  bool operator==(const ConstantAttributes&) const = default;
};

extern const OpDef kConstant;
ValueId constant(Builder& builder, double value, const Shape& shape = {}, DType dtype = DType::f32);
ValueId constant(Builder& builder, std::vector<double> values, const Shape& shape, DType dtype = DType::f32);

}  // namespace ingot
