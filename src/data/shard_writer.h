// ShardWriter: writes the files of a shard directory (data/shards.h) into a directory that nobody reads yet.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/encoder.h"
#include "data/shards.h"

namespace ingot {

class ShardWriter {
 public:
  // `directory` exists and is empty. ErrorKind::failed where the disk does not take what is written.
  static Result<ShardWriter> create(const fs::path& directory, const TextEncoder& encoder, int64_t shard_tokens);

  // The tokens of the document that is being written, in any number of parts.
  Status add_tokens(std::span<const int32_t> ids);
  // Ends the document: adds the end-of-document token. A document without text is dropped and counted.
  Status end_document(uint64_t text_hash, int64_t text_bytes, int64_t prompt_tokens);
  // Writes the remaining files, the index last, all synced to disk. The writer is spent.
  Status finish(uint64_t source_key);

  const ShardIndex& index() const { return index_; }

 private:
  // A file of numbers, written in blocks.
  template <class T>
  struct Column {
    std::optional<AtomicFile> file;
    std::vector<T> block;
    Status add(T value);
    Status flush();
  };

  Status flush_tokens(bool end_of_shard);
  Status close_file(AtomicFile& file, std::string name);
  Status write_whole(std::string_view name, std::span<const std::byte> bytes);

  fs::path directory_;
  std::vector<uint16_t> token_bytes_;
  ShardIndex index_;
  std::vector<std::byte> block_;  // tokens in the file's width, not yet written
  std::optional<AtomicFile> shard_;
  int64_t shard_fill_ = 0;  // tokens of the open shard, block_ included
  int64_t last_end_ = 0;    // of the last document
  Column<uint64_t> ends_, hashes_;
  Column<uint32_t> prompts_;
};

}  // namespace ingot
