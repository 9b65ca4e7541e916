#include "base/shape.h"

#include <fmt/ranges.h>

namespace ingot {

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(dims(), ","));
}

}  // namespace ingot
