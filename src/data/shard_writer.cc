#include "data/shard_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "data/shard_names.h"

namespace ingot {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

}  // namespace

template <class T>
Status ShardWriter::Column<T>::add(T value) {
  block.push_back(value);
  return block.size() * sizeof(T) >= kBlockBytes ? flush() : Status();
}

template <class T>
Status ShardWriter::Column<T>::flush() {
  INGOT_TRY(file->write(std::as_bytes(std::span(block))));
  block.clear();
  return {};
}

Result<ShardWriter> ShardWriter::create(const fs::path& directory, const TextEncoder& encoder, int64_t shard_tokens) {
  INGOT_CHECK(shard_tokens > 0, "{} tokens a shard", shard_tokens);
  ShardWriter writer;
  writer.directory_ = directory;
  writer.token_bytes_ = encoder.token_bytes;
  writer.token_bytes_.resize(static_cast<size_t>(encoder.vocab_size));
  writer.index_.tokenizer_fingerprint = encoder.fingerprint;
  writer.index_.vocab_size = encoder.vocab_size;
  writer.index_.eos = encoder.eos;
  writer.index_.token_width = encoder.vocab_size <= 65536 ? 2 : 4;
  writer.index_.shard_tokens = shard_tokens;
  INGOT_ASSIGN(writer.ends_.file, AtomicFile::create(directory / shard_names::kDocumentEnds));
  INGOT_ASSIGN(writer.hashes_.file, AtomicFile::create(directory / shard_names::kDocumentHashes));
  INGOT_ASSIGN(writer.prompts_.file, AtomicFile::create(directory / shard_names::kPromptTokens));
  return writer;
}

Status ShardWriter::add_tokens(std::span<const int32_t> ids) {
  const auto width = static_cast<size_t>(index_.token_width);
  while (!ids.empty()) {
    const auto room = static_cast<size_t>(index_.shard_tokens - shard_fill_);
    const size_t count = std::min({ids.size(), room, kBlockBytes / width});
    const size_t at = block_.size();
    block_.resize(at + count * width);
    for (size_t i = 0; i < count; ++i) {
      INGOT_CHECK(ids[i] >= 0 && ids[i] < index_.vocab_size, "token {} outside the vocabulary of {}", ids[i],
                  index_.vocab_size);
      std::memcpy(block_.data() + at + i * width, &ids[i], width);  // the low bytes come first
    }
    ids = ids.subspan(count);
    shard_fill_ += static_cast<int64_t>(count);
    index_.tokens += static_cast<int64_t>(count);
    const bool is_full = shard_fill_ == index_.shard_tokens;
    if (is_full || block_.size() >= kBlockBytes) INGOT_TRY(flush_tokens(is_full));
  }
  return {};
}

Status ShardWriter::end_document(uint64_t text_hash, int64_t text_bytes, int64_t prompt_tokens) {
  if (index_.tokens == last_end_) {
    ++index_.empty_documents;
    return {};
  }
  if (index_.eos) INGOT_TRY(add_tokens(std::span(&*index_.eos, 1)));
  last_end_ = index_.tokens;
  ++index_.documents;
  index_.text_bytes += text_bytes;
  index_.has_prompts |= prompt_tokens > 0;
  INGOT_TRY(ends_.add(static_cast<uint64_t>(last_end_)));
  INGOT_TRY(hashes_.add(text_hash));
  return prompts_.add(static_cast<uint32_t>(std::min<int64_t>(prompt_tokens, std::numeric_limits<uint32_t>::max())));
}

Status ShardWriter::flush_tokens(bool end_of_shard) {
  if (!shard_ && !block_.empty()) {
    const auto number = static_cast<int64_t>(index_.files.size());
    INGOT_ASSIGN(shard_, AtomicFile::create(directory_ / shard_names::shard(number)));
  }
  if (!shard_) return {};
  INGOT_TRY(shard_->write(block_));
  block_.clear();
  if (!end_of_shard) return {};
  INGOT_TRY(close_file(*shard_, shard_names::shard(static_cast<int64_t>(index_.files.size()))));
  shard_.reset();
  shard_fill_ = 0;
  return {};
}

Status ShardWriter::close_file(AtomicFile& file, std::string name) {
  INGOT_TRY(file.publish());
  index_.files.push_back({std::move(name), file.size(), file.digest()});
  return {};
}

Status ShardWriter::write_whole(std::string_view name, std::span<const std::byte> bytes) {
  INGOT_ASSIGN(AtomicFile file, AtomicFile::create(directory_ / name));
  INGOT_TRY(file.write(bytes));
  return close_file(file, std::string(name));
}

Status ShardWriter::finish(uint64_t source_key) {
  index_.source_key = source_key;
  INGOT_TRY(flush_tokens(true));
  INGOT_TRY(ends_.flush());
  INGOT_TRY(hashes_.flush());
  INGOT_TRY(prompts_.flush());
  INGOT_TRY(close_file(*ends_.file, std::string(shard_names::kDocumentEnds)));
  INGOT_TRY(close_file(*hashes_.file, std::string(shard_names::kDocumentHashes)));
  if (index_.has_prompts) INGOT_TRY(close_file(*prompts_.file, std::string(shard_names::kPromptTokens)));
  prompts_.file.reset();  // unpublished, it is removed
  INGOT_TRY(write_whole(shard_names::kTokenBytes, std::as_bytes(std::span(token_bytes_))));
  return write_file_atomic(directory_ / ShardSet::kIndexName, index_.to_json());
}

}  // namespace ingot
