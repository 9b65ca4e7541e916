// What a result says about the model that it belongs to.
#pragma once

#include "infer/loaded_model.h"

namespace ingot {

// 16 hexadecimal digits: equal for directories with the same resolved configuration, the same tokenizer and the same
// weights (names, dtypes, shapes and bytes), however the weights are cut into files. Reads every byte of them.
Result<std::string> model_fingerprint(const LoadedModel& model);

}  // namespace ingot
