#include "base/shape.h"

#include <fmt/ranges.h>

namespace ingot {

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(dims(), ","));
}

Shape dense_strides(const Shape& shape) {
  Shape strides = shape;
  int64_t stride = 1;
  for (int i = 1; i <= shape.rank(); ++i) {
    strides[-i] = stride;
    stride *= shape[-i];
  }
  return strides;
}

}  // namespace ingot
