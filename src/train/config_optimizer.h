// The section `optimizer`: which of its keys a type reads, and their values where none is given.
#pragma once

#include "train/config.h"

namespace ingot {

// Error (usage): a key is set that the type does not read.
Status check_optimizer(const OptimizerSection& optimizer);
// The type's own values for the keys that it reads and that are null.
void fill_in_defaults(OptimizerSection& optimizer);

}  // namespace ingot
