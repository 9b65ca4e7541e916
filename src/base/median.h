// The median, which is what every measurement here reports.
#pragma once

#include <algorithm>
#include <vector>

namespace ingot {

// Of at least one value; the upper of the two middle ones where their number is even.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace ingot
