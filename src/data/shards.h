// Token shards: the tokens of many documents, end to end, in a directory that is built once and then mapped.
//
//   index.json           format version, counts, tokenizer fingerprint, and of every other file its size and XXH3-64
//   shard-00000.bin …    tokens, little endian, 2 bytes each where the vocabulary has at most 65536 entries, else 4;
//                        every file but the last holds `shard_tokens` of them (documents cross from one file to the
//                        next)
//   document_ends.bin    u64 a document: the position behind its last token, counted over all shards; ascending
//   document_hashes.bin  u64 a document: XXH3-64 of its text, which is what a validation split goes by
//   prompt_tokens.bin    u32 a document: how many of its first tokens are read only, no targets (absent where all are
//   0) token_bytes.bin      u16 a vocabulary entry: the bytes of text that it stands for
//
// A directory without index.json is no shard directory: it comes into being by one rename, complete.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace ingot {

// Tokens of documents, end to end, by position. Immutable; any number of threads may read.
class TokenStore {
 public:
  virtual ~TokenStore() = default;
  virtual int64_t tokens() const = 0;
  virtual int64_t documents() const = 0;
  // Position behind the last token of a document; ascending, that of the last document equals tokens().
  virtual int64_t document_end(int64_t document) const = 0;
  virtual uint64_t document_hash(int64_t document) const = 0;
  virtual bool has_prompts() const { return false; }
  // How many of the first tokens of a document are no targets.
  virtual int64_t prompt_tokens(int64_t) const { return 0; }
  // Bytes of text of each vocabulary entry; empty where unknown.
  virtual std::span<const uint16_t> token_bytes() const { return {}; }
  // A token that may stand where a row is padded.
  virtual int32_t padding_token() const { return 0; }
  // The tokens from `position` on; the range must lie in [0, tokens()). ErrorKind::input for damaged tokens.
  virtual Status read(int64_t position, std::span<int32_t> out) const = 0;
  // Equal for stores of the same content.
  virtual uint64_t fingerprint() const = 0;

  int64_t document_begin(int64_t document) const { return document == 0 ? 0 : document_end(document - 1); }
  // The document that holds a position in [0, tokens()).
  int64_t document_at(int64_t position) const;
};

struct ShardFile {
  std::string name;
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // XXH3-64
};

// What index.json says.
struct ShardIndex {
  uint64_t tokenizer_fingerprint = 0;
  int64_t vocab_size = 0;
  std::optional<int32_t> eos;
  int64_t token_width = 2;   // bytes of a token in the files
  int64_t shard_tokens = 0;  // in every shard but the last
  int64_t tokens = 0;
  int64_t documents = 0;
  int64_t empty_documents = 0;  // skipped
  int64_t text_bytes = 0;
  bool has_prompts = false;
  uint64_t source_key = 0;  // of the files and settings that it was built from
  std::vector<ShardFile> files;

  std::string to_json() const;
  // ErrorKind::input that names `source_name` and the key. Every count that the files' sizes can confirm is confirmed.
  static Result<ShardIndex> parse(std::string_view json, std::string_view source_name);
};

class ShardSet final : public TokenStore {
 public:
  static constexpr std::string_view kIndexName = "index.json";
  static bool is_shard_directory(const fs::path& path);

  // Checks the files' sizes and the order of the document ends. ErrorKind::input.
  static Result<std::shared_ptr<const ShardSet>> open(const fs::path& directory);
  // Reads every byte and compares checksums. ErrorKind::input that names the file.
  Status verify() const;

  const ShardIndex& index() const { return index_; }
  const fs::path& directory() const { return directory_; }
  int64_t shards() const { return static_cast<int64_t>(shards_.size()); }

  int64_t tokens() const override { return index_.tokens; }
  int64_t documents() const override { return index_.documents; }
  int64_t document_end(int64_t document) const override {
    return static_cast<int64_t>(ends_[static_cast<size_t>(document)]);
  }
  uint64_t document_hash(int64_t document) const override { return hashes_[static_cast<size_t>(document)]; }
  bool has_prompts() const override { return index_.has_prompts; }
  int64_t prompt_tokens(int64_t document) const override {
    return prompts_.empty() ? 0 : static_cast<int64_t>(prompts_[static_cast<size_t>(document)]);
  }
  std::span<const uint16_t> token_bytes() const override { return token_bytes_; }
  int32_t padding_token() const override { return index_.eos.value_or(0); }
  Status read(int64_t position, std::span<int32_t> out) const override;
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  ShardSet() = default;
  Status map_files();
  Status verify_from(size_t first) const;  // the files of the index from this one on
  Status check_documents() const;
  bool copy_tokens(int64_t position, std::span<int32_t> out) const;

  fs::path directory_;
  ShardIndex index_;
  uint64_t fingerprint_ = 0;
  std::vector<MappedFile> maps_;  // in the order of index_.files
  std::vector<std::span<const std::byte>> shards_;
  std::span<const uint64_t> ends_, hashes_;
  std::span<const uint32_t> prompts_;
  std::span<const uint16_t> token_bytes_;
};

}  // namespace ingot
