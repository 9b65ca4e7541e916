// Tokenizer: text to token ids and back, as a Hugging Face tokenizer.json or a SentencePiece .model says. The stages
// are kept apart: added tokens, normalizer, pre-tokenizer, model, post-processor, decoder, each with its own file in
// this folder.
//
// Supported: byte-level BPE (GPT-2, Llama 3, Qwen, …), character BPE with byte fallback (Llama 2, Gemma), Unigram (T5,
// XLM-RoBERTa) and WordPiece (BERT). What a file asks for beyond that is refused by name. Any byte sequence may be
// encoded; with a byte-level vocabulary, or one with byte fallback, and no normalizer it decodes to the same bytes,
// valid UTF-8 or not.
//
// Thread-safety: a Tokenizer is immutable; any number of threads may use one. Copies share their tables.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace ingot {

class ThreadPool;
struct TokenizerParts;  // text/tokenizer_parts.h: the stages and tables behind a Tokenizer

using TokenId = int32_t;

struct EncodeOptions {
  bool parse_special = false;  // special tokens written in the text count as such; otherwise they are plain text
  bool add_special = false;    // what the post-processor adds (BOS, EOS) is added
};

class Tokenizer {
 public:
  // A tokenizer.json or .model, or a directory that holds one; of a directory tokenizer_config.json and
  // generation_config.json name BOS and EOS. Errors are ErrorKind::input and name the path and the key.
  static Result<Tokenizer> load(const fs::path& file_or_directory);
  // The file in a directory that load reads: tokenizer.json, else tokenizer.model, else spiece.model; else nothing.
  static std::optional<fs::path> file_in(const fs::path& directory);
  // The bytes of a tokenizer.json or .model; source_name stands for the path in messages.
  static Result<Tokenizer> parse(std::string_view bytes, std::string_view source_name);
  explicit Tokenizer(std::shared_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}

  // Writes, atomically, what loads back to the same fingerprint, here and in Hugging Face's libraries: a
  // tokenizer.json, or the .model that this came as.
  Status save(const fs::path& path) const;
  std::string to_file() const;
  std::string_view file_name() const;  // as a model's directory names it: tokenizer.json or tokenizer.model

  int64_t vocab_size() const;  // the largest id + 1, added tokens included
  int64_t merge_count() const;
  // As the directory's configuration says, else the well-known names (<|endoftext|>, </s>, <s>, …) among special
  // tokens.
  std::optional<TokenId> bos_id() const;
  std::optional<TokenId> eos_id() const;
  // What ends a generated text: EOS, and what the directory's generation_config.json lists beside it.
  std::vector<TokenId> end_ids() const;
  bool is_special(TokenId id) const;
  std::vector<TokenId> special_ids() const;  // ascending
  // What add_special puts before a text: for a text that goes on, whose end is not there yet.
  std::vector<TokenId> specials_before() const;
  std::optional<TokenId> find_token(std::string_view token_text) const;

  // Appends the ids of text to out.
  void encode(std::string_view text, std::vector<TokenId>& out, EncodeOptions options = {}) const;
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const;

  // The bytes that the ids stand for, verbatim (they need not be valid UTF-8). Ids outside the vocabulary stand for
  // nothing.
  std::string decode(std::span<const TokenId> ids, bool skip_special = false) const;
  std::string token_text(TokenId id) const;   // as written in the vocabulary (byte-level alphabet); "" outside it
  std::string token_bytes(TokenId id) const;  // the bytes that it stands for; "" outside the vocabulary

  // Hash of vocabulary, merges and behaviour: equal for tokenizers that encode alike. Shards record it.
  uint64_t fingerprint() const;

  const TokenizerParts& parts() const { return *parts_; }

 private:
  std::shared_ptr<const TokenizerParts> parts_;
};

struct BpeTrainOptions {
  int64_t vocab_size = 0;  // counts the special tokens and the 256 bytes
  std::vector<std::string> special_tokens{"<|endoftext|>"};
  // Called on the calling thread now and then: merges found so far and wanted. May be empty.
  std::function<void(int64_t merges, int64_t wanted)> progress;
};

// Trains a byte-level BPE (Sennrich et al. 2016, arXiv:1508.07909; bytes and pre-tokenizer as in GPT-2). Ids: special
// tokens, the 256 bytes, merges. The most frequent pair is merged first, of equals the one with the smaller ids, so the
// result is the same for any number of threads and any order of documents. A corpus too small for vocab_size gives a
// smaller vocabulary and a warning in the log; a vocab_size that cannot hold specials and bytes is a usage error. The
// documents may be any bytes.
Result<Tokenizer> train_bpe(std::span<const std::string_view> documents, const BpeTrainOptions& options,
                            const ThreadPool& pool);

}  // namespace ingot
