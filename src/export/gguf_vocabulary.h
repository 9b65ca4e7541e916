// The tokens of a GGUF file: one for each row of the embedding table. Internal to export/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "export/gguf_file.h"

namespace ingot {

// llama.cpp's kinds of tokens; SentencePiece's have the same numbers.
enum class GgufTokenType : int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

class GgufVocabulary {
 public:
  explicit GgufVocabulary(size_t size) : texts_(size), types_(size, GgufTokenType::unused) {}

  size_t size() const { return texts_.size(); }
  const std::string& text(size_t id) const { return texts_[id]; }
  GgufTokenType type(size_t id) const { return types_[id]; }
  bool is_normal(size_t id) const { return types_[id] == GgufTokenType::normal; }
  void set(size_t id, std::string text, GgufTokenType type);
  void set_type(size_t id, GgufTokenType type) { types_[id] = type; }
  // Ids without a token get one that does not occur: llama.cpp wants a name of its own for every row. Error (usage):
  // two tokens are written alike.
  Status fill_unused();
  void add_to(GgufMetadata& metadata) const;

 private:
  std::vector<std::string> texts_;
  std::vector<GgufTokenType> types_;
};

}  // namespace ingot
