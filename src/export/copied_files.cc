#include "export/copied_files.h"

#include <array>

namespace ingot {

std::span<const char* const> copied_files() {
  static constexpr auto kFiles = std::to_array<const char*>(
      {"generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
       "added_tokens.json", "vocab.json", "merges.txt", "vocab.txt", "tokenizer.model", "spiece.model",
       "chat_template.jinja", "chat_template.json"});
  return kFiles;
}

}  // namespace ingot
