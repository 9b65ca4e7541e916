#include "data/shards.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace ingot {

static_assert(std::endian::native == std::endian::little, "shards are mapped as they are, which is little endian");

namespace {

template <class T>
std::span<const T> typed(const MappedFile& map) {
  return {reinterpret_cast<const T*>(map.bytes().data()), map.bytes().size() / sizeof(T)};
}

// Widens; returns whether every token is in the vocabulary.
template <class T>
bool widen(const std::byte* from, std::span<int32_t> to, uint32_t vocab_size) {
  uint32_t largest = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    T token;
    std::memcpy(&token, from + i * sizeof(T), sizeof(T));
    largest = std::max<uint32_t>(largest, token);
    to[i] = static_cast<int32_t>(token);
  }
  return largest < vocab_size;
}

// Of what is in the files, not of where they came from: data that was moved or built again is the same data.
uint64_t content_fingerprint(const ShardIndex& index) {
  std::string text;
  for (const ShardFile& file : index.files)
    text += fmt::format("{} {} {}\n", file.name, file.bytes, hash_text(file.checksum));
  return hash_bytes(text);
}

}  // namespace

int64_t TokenStore::document_at(int64_t position) const {
  int64_t first = 0, last = documents() - 1;  // the answer is in [first, last]
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (document_end(middle) > position)
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

bool ShardSet::is_shard_directory(const fs::path& path) {
  std::error_code ignored;  // what cannot be looked at is none
  return fs::is_regular_file(path / kIndexName, ignored);
}

Result<std::shared_ptr<const ShardSet>> ShardSet::open(const fs::path& directory) {
  const fs::path index_path = directory / kIndexName;
  INGOT_ASSIGN(const std::string json, read_file(index_path));
  std::shared_ptr<ShardSet> set(new ShardSet());
  set->directory_ = directory;
  INGOT_ASSIGN(set->index_, ShardIndex::parse(json, index_path.string()));
  set->fingerprint_ = content_fingerprint(set->index_);
  INGOT_TRY(set->map_files());
  INGOT_TRY(set->check_documents());
  INGOT_TRY(set->verify_from(set->shards_.size()));  // all but the tokens, which may be too many to read first
  return std::shared_ptr<const ShardSet>(std::move(set));
}

Status ShardSet::map_files() {
  const auto shard_count = index_.files.size() - (index_.has_prompts ? 4 : 3);
  for (const ShardFile& file : index_.files) {
    const fs::path path = directory_ / file.name;
    INGOT_ASSIGN(MappedFile map, MappedFile::open(path));
    if (map.bytes().size() != file.bytes)
      return input_error("{} has {} bytes, expected {} as {} says: the shards are damaged. Build them again",
                         path.string(), map.bytes().size(), file.bytes, kIndexName);
    maps_.push_back(std::move(map));
  }
  for (size_t i = 0; i < shard_count; ++i) shards_.push_back(maps_[i].bytes());
  ends_ = typed<uint64_t>(maps_[shard_count]);
  hashes_ = typed<uint64_t>(maps_[shard_count + 1]);
  if (index_.has_prompts) prompts_ = typed<uint32_t>(maps_[shard_count + 2]);
  token_bytes_ = typed<uint16_t>(maps_.back());
  return {};
}

Status ShardSet::check_documents() const {
  uint64_t before = 0;
  for (size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i] <= before)
      return input_error(
          "{}: document {} of {} ends at {}, not behind the one before: the shards are damaged. Build them again",
          directory_.string(), i, ends_.size(), ends_[i]);
    before = ends_[i];
  }
  if (before != static_cast<uint64_t>(index_.tokens))
    return input_error("{}: the documents end at token {}, expected {}: the shards are damaged. Build them again",
                       directory_.string(), before, index_.tokens);
  return {};
}

Status ShardSet::verify() const {
  return verify_from(0);
}

Status ShardSet::verify_from(size_t first) const {
  for (size_t i = first; i < maps_.size(); ++i) {
    const uint64_t found = hash_bytes(maps_[i].bytes());
    if (found != index_.files[i].checksum)
      return input_error("{}: checksum {}, expected {}: the file is damaged. Build the shards again",
                         (directory_ / index_.files[i].name).string(), hash_text(found),
                         hash_text(index_.files[i].checksum));
  }
  return {};
}

bool ShardSet::copy_tokens(int64_t position, std::span<int32_t> out) const {
  const auto vocab_size = static_cast<uint32_t>(index_.vocab_size);
  bool known = true;
  while (!out.empty()) {
    const int64_t shard = position / index_.shard_tokens, offset = position % index_.shard_tokens;
    const auto count = std::min(out.size(), static_cast<size_t>(index_.shard_tokens - offset));
    const std::byte* from = shards_[static_cast<size_t>(shard)].data() + offset * index_.token_width;
    known &= index_.token_width == 2 ? widen<uint16_t>(from, out.first(count), vocab_size)
                                     : widen<uint32_t>(from, out.first(count), vocab_size);
    out = out.subspan(count);
    position += static_cast<int64_t>(count);
  }
  return known;
}

Status ShardSet::read(int64_t position, std::span<int32_t> out) const {
  INGOT_CHECK(position >= 0 && position + static_cast<int64_t>(out.size()) <= tokens(), "tokens [{}, {}) of {}",
              position, position + static_cast<int64_t>(out.size()), tokens());
  if (copy_tokens(position, out)) return {};
  return input_error(
      "{}: a token among those from {} to {} is outside the vocabulary of {}: the shards are damaged. Build them again",
      directory_.string(), position, position + static_cast<int64_t>(out.size()), index_.vocab_size);
}

}  // namespace ingot
