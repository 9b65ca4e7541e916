#include "export/gguf_tokenizer.h"

#include <algorithm>

#include "export/gguf_tokenizer_json.h"
#include "export/gguf_vocabulary.h"
#include "text/sentencepiece_file.h"

namespace ingot {
namespace {

// A .model keeps what llama.cpp's "llama" wants: pieces, scores and types of the same numbers.
Status add_sentencepiece(const Tokenizer& tokenizer, const std::string& where, GgufVocabulary& vocabulary,
                         GgufMetadata& metadata) {
  INGOT_ASSIGN(const SentencePieceFile file, read_sentencepiece_file(tokenizer.to_file(), where));
  if (file.model_type != SentencePieceFile::ModelType::bpe) return usage_error("its model is Unigram; expected BPE");
  if (!file.byte_fallback) return usage_error("its model has no byte_fallback");
  if (!file.rules.empty()) return usage_error("its normalizer has rules (precompiled_charsmap)");
  if (file.remove_extra_whitespaces) return usage_error("its normalizer removes white space");
  std::vector<float> scores(vocabulary.size(), 0.0f);
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceFile::Piece& piece = file.pieces[id];
    vocabulary.set(id, piece.text, static_cast<GgufTokenType>(piece.type));
    scores[id] = piece.score;
    if (piece.type == SentencePieceFile::Type::unknown)
      metadata.emplace_back("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(id));
  }
  metadata.emplace_back("tokenizer.ggml.model", std::string("llama"));
  metadata.emplace_back("tokenizer.ggml.pre", std::string("default"));
  metadata.emplace_back("tokenizer.ggml.add_space_prefix", file.add_dummy_prefix);
  metadata.emplace_back("tokenizer.ggml.scores", std::move(scores));
  return {};
}

// BOS and EOS; what is added before and after a text must be these.
Status add_roles(const Tokenizer& tokenizer, GgufMetadata& metadata) {
  const std::vector<TokenId> text = tokenizer.encode("a"), whole = tokenizer.encode("a", {.add_special = true});
  const auto at = std::search(whole.begin(), whole.end(), text.begin(), text.end());
  if (at == whole.end()) return usage_error("it changes a text that special tokens are added to");
  const std::vector<TokenId> before(whole.begin(), at),
      after(at + static_cast<std::ptrdiff_t>(text.size()), whole.end());
  const auto eos = tokenizer.eos_id();
  if (!eos) return usage_error("no token is EOS; name one as eos_token in tokenizer_config.json");
  // Without a BOS llama.cpp would take some token for it. Texts then start from EOS, as they do here.
  const TokenId bos = tokenizer.bos_id().value_or(before.size() == 1 ? before[0] : *eos);
  if (!before.empty() && before != std::vector{bos})
    return usage_error("it adds something else than BOS before a text");
  if (!after.empty() && after != std::vector{*eos}) return usage_error("it adds something else than EOS after a text");
  metadata.emplace_back("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(bos));
  metadata.emplace_back("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(*eos));
  metadata.emplace_back("tokenizer.ggml.add_bos_token", !before.empty());
  metadata.emplace_back("tokenizer.ggml.add_eos_token", !after.empty());
  return {};
}

Status add_tokenizer(const Tokenizer& tokenizer, const std::string& where, GgufVocabulary& vocabulary,
                     GgufMetadata& metadata) {
  const auto size = static_cast<int64_t>(vocabulary.size());
  if (tokenizer.vocab_size() > size)
    return usage_error("it has {} tokens, the model's vocab_size is {}", tokenizer.vocab_size(), size);
  if (tokenizer.file_name() == "tokenizer.json") {
    INGOT_TRY(add_json_tokenizer(tokenizer.to_file(), where, vocabulary, metadata));
  } else {
    INGOT_TRY(add_sentencepiece(tokenizer, where, vocabulary, metadata));
  }
  INGOT_TRY(vocabulary.fill_unused());
  vocabulary.add_to(metadata);
  return add_roles(tokenizer, metadata);
}

}  // namespace

Result<GgufMetadata> tokenizer_metadata(const Tokenizer& tokenizer, int64_t vocab_size, const std::string& where) {
  GgufVocabulary vocabulary(static_cast<size_t>(vocab_size));
  GgufMetadata metadata;
  if (const Status added = add_tokenizer(tokenizer, where, vocabulary, metadata); !added.ok())
    return Error{added.error().kind,
                 fmt::format("{}: llama.cpp has no tokenizer like this one: {}", where, added.error().message)};
  return metadata;
}

}  // namespace ingot
