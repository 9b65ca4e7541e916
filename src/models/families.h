// The built-in families, one file each.
#pragma once

#include "models/family.h"

namespace ingot {

Family gpt2_family();
Family llama_family();
Family mistral_family();
Family qwen2_family();
Family qwen3_family();
Family gemma2_family();

// The keys that Llama's relatives share; `config` holds the family's defaults.
void read_llama_keys(ConfigReader& in, ModelConfig& config);
// A family with Llama's tensor names.
Family llama_like_family(std::string name, std::vector<std::string> architectures,
                         std::function<void(ConfigReader&, ModelConfig&)> read_config);

}  // namespace ingot
