// Internal to export/.
#pragma once

#include <span>

namespace ingot {

// What a Hugging Face directory keeps beside configuration and weights, and what goes with a model wherever it goes:
// the tokenizer's files and generation_config.json.
std::span<const char* const> copied_files();

}  // namespace ingot
