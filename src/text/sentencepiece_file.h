// The format of SentencePiece's .model files (sentencepiece_model.proto): what a tokenizer needs of it. Internal to
// text/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer_parts.h"

namespace ingot {

// A .model as read. Strings are copies.
struct SentencePieceFile {
  enum class Type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };
  enum class ModelType { unigram = 1, bpe = 2 };

  std::vector<Piece> pieces;  // by id
  ModelType model_type = ModelType::unigram;
  bool byte_fallback = false;
  int64_t bos = 1, eos = 2;  // -1: none
  std::string rules;         // precompiled_charsmap; empty: text stays as it is
  bool add_dummy_prefix = true, remove_extra_whitespaces = true;
};

// Errors name the byte or the field, and what is not supported.
Result<SentencePieceFile> read_sentencepiece_file(std::string_view bytes, std::string_view source_name);

// Whether a file with these first bytes is a .model rather than a tokenizer.json.
bool looks_like_sentencepiece(std::string_view bytes);

// The tokenizer that gives the ids of the SentencePiece library; add_special puts BOS before a text. The bytes are
// kept, to be written again.
Result<std::shared_ptr<TokenizerParts>> build_sentencepiece(const SentencePieceFile& file, std::string_view bytes,
                                                            std::string_view source_name);

}  // namespace ingot
