#include "export/gguf_vocabulary.h"

#include <unordered_set>

namespace ingot {

void GgufVocabulary::set(size_t id, std::string text, GgufTokenType type) {
  texts_[id] = std::move(text);
  types_[id] = type;
}

Status GgufVocabulary::fill_unused() {
  std::unordered_set<std::string> names;
  for (size_t id = 0; id < size(); ++id)
    if (type(id) != GgufTokenType::unused && !names.insert(text(id)).second)
      return usage_error("two of its tokens are written \"{}\"", text(id));
  for (size_t id = 0; id < size(); ++id) {
    if (type(id) != GgufTokenType::unused) continue;
    texts_[id] = fmt::format("[PAD{}]", id);
    while (!names.insert(texts_[id]).second) texts_[id] += "_";
  }
  return {};
}

void GgufVocabulary::add_to(GgufMetadata& metadata) const {
  std::vector<int32_t> types;
  for (const GgufTokenType type : types_) types.push_back(static_cast<int32_t>(type));
  metadata.emplace_back("tokenizer.ggml.tokens", texts_);
  metadata.emplace_back("tokenizer.ggml.token_type", std::move(types));
}

}  // namespace ingot
