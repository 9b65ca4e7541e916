#include "train/non_finite.h"

#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "kernels/reduce/reduce.h"

namespace ingot {

std::string describe_non_finite_gradients(const TrainingPrograms& programs) {
  constexpr size_t kNamed = 4;
  std::vector<std::string> names;
  size_t count = 0;
  for (const TrainedParameter& parameter : programs.trained()) {
    const ConstTensorView gradient = programs.arena().variable(gradient_name(parameter.name));
    const double squares = kernels::sum_squares(gradient.as<float>(), gradient.shape.elements());
    if (std::isfinite(static_cast<float>(squares))) continue;
    if (++count <= kNamed) names.push_back(parameter.name);
  }
  if (count == 0) return "";
  const std::string more = count > kNamed ? fmt::format(" and {} more", count - kNamed) : "";
  return fmt::format("; not finite are the gradients of {}{} (of {} trained parameters)", fmt::join(names, ", "), more,
                     programs.trained().size());
}

}  // namespace ingot
