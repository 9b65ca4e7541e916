// Which gradients of a step are not finite.
#pragma once

#include <string>

#include "train/programs.h"

namespace ingot {

// For the end of a message: "; not finite are the gradients of …" with the first few parameters whose gradients, as
// they lie in the arena, make the update skip: they hold a NaN or an infinity, or have a sum of squares beyond fp32.
// Empty where none does.
std::string describe_non_finite_gradients(const TrainingPrograms& programs);

}  // namespace ingot
