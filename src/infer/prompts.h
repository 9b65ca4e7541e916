// The prompts of a file, to be continued side by side.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace ingot {

// Of a .jsonl file each line's string, or the "prompt" of its object; of any other file each line that is not blank,
// without its line end. Errors (input): a file that cannot be read, a line of another kind, no prompt at all.
Result<std::vector<std::string>> read_prompts(const std::string& path);

}  // namespace ingot
