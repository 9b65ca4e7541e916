// What a tokenizer.json says in llama.cpp's keys. Internal to export/.
#pragma once

#include <string>
#include <string_view>

#include "export/gguf_vocabulary.h"

namespace ingot {

// Adds the tokens to `vocabulary` (as large as the model's) and the keys of model, pre-tokenizer, merges or scores to
// `metadata`. `json` is a tokenizer.json as Tokenizer::to_file() writes it; `where` begins the warnings. Errors (usage)
// say which part of it llama.cpp has no equal for.
Status add_json_tokenizer(std::string_view json, const std::string& where, GgufVocabulary& vocabulary,
                          GgufMetadata& metadata);

}  // namespace ingot
