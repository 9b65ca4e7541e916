// The median, which is what every measurement here reports.
#pragma once

#include <algorithm>
#include <vector>

namespace ingot::cli {

// Of at least one value; the upper of the two middle ones where their number is even.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace ingot::cli
