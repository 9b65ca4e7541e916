#include "text/tokenizer.h"

#include <algorithm>
#include <cstring>

#include "text/sentencepiece_file.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_parts.h"

namespace ingot {
namespace {

constexpr uint64_t kLargestFile = uint64_t{1} << 30;

Result<std::shared_ptr<TokenizerParts>> build(std::string_view bytes, std::string_view source_name) {
  if (looks_like_sentencepiece(bytes)) {
    INGOT_ASSIGN(const SentencePieceFile file, read_sentencepiece_file(bytes, source_name));
    return build_sentencepiece(file, bytes, source_name);
  }
  INGOT_ASSIGN(const TokenizerFile file, read_tokenizer_file(bytes, source_name));
  return build_tokenizer(file, source_name);
}

// One call of encode: from text to ids, stage by stage.
class EncodeRun {
 public:
  EncodeRun(const TokenizerParts& parts, EncodeOptions options, std::vector<TokenId>& out)
      : parts_(parts), options_(options), out_(out), scratch_(parts.scratches.take()) {}
  EncodeRun(const EncodeRun&) = delete;
  EncodeRun& operator=(const EncodeRun&) = delete;
  ~EncodeRun() { parts_.scratches.give_back(std::move(scratch_)); }

  void encode(std::string_view text) {
    if (options_.add_special) add(parts_.post_processor.before);
    with_added(text, false, [&](std::string_view segment) {
      const bool at_start = segment.data() == text.data();
      if (parts_.normalizer.empty()) return encode_normalized(segment, at_start);
      const std::string normalized = parts_.normalizer.apply(segment, at_start);
      encode_normalized(normalized, at_start);
    });
    if (options_.add_special) add(parts_.post_processor.after);
    flush();
  }

 private:
  template <class F>
  void with_added(std::string_view text, bool normalized, F&& plain) {
    if (!parts_.added.any(normalized, options_.parse_special)) return plain(text);
    parts_.added.split(text, normalized, options_.parse_special, [&](std::string_view segment, TokenId id) {
      if (id == kNoToken) return plain(segment);
      add({&id, 1});
    });
  }

  void encode_normalized(std::string_view text, bool at_start) {
    with_added(text, true, [&](std::string_view segment) {
      begin_ = reinterpret_cast<uintptr_t>(text.data());
      end_ = begin_ + text.size();
      parts_.pre_tokenizer.split(segment, at_start && segment.data() == text.data(),
                                 [&](std::string_view piece) { encode_piece(piece); });
    });
  }

  void encode_piece(std::string_view piece) {
    if (piece.size() <= PieceCache::kMostBytes) return encode_short(piece);
    for (size_t begin = 0; begin < piece.size();) {
      const size_t end = parts_.model->next_cut(piece, begin);
      const std::string_view part = piece.substr(begin, end - begin);
      if (part.size() <= PieceCache::kMostBytes) {
        encode_short(part);
      } else {
        run_model(part);
      }
      begin = end;
    }
  }

  void encode_short(std::string_view piece) {
    const auto start = reinterpret_cast<uintptr_t>(piece.data());
    const size_t readable = start >= begin_ && start < end_ ? end_ - start : piece.size();
    const PieceCache::Key key = PieceCache::key_of(piece, readable);
    if (const PieceCache::Entry* entry = scratch_->cache.find(key)) {
      std::memcpy(scratch_->ids.data() + buffered_, entry->ids.data(),
                  sizeof(entry->ids));  // all: no branch on the count
      buffered_ += entry->count;
      if (buffered_ >= EncodeScratch::kBufferedIds) flush();
      return;
    }
    run_model(piece);
    if (scratch_->piece_ids.size() <= PieceCache::kMostIds) scratch_->cache.insert(key, scratch_->piece_ids);
  }

  void run_model(std::string_view piece) {
    scratch_->piece_ids.clear();
    parts_.model->encode(piece, scratch_->model, scratch_->piece_ids);
    add(scratch_->piece_ids);
  }

  void add(std::span<const TokenId> ids) {
    if (buffered_ + ids.size() > EncodeScratch::kBufferedIds) flush();
    if (ids.size() > EncodeScratch::kBufferedIds) {
      out_.insert(out_.end(), ids.begin(), ids.end());
      return;
    }
    std::copy(ids.begin(), ids.end(), scratch_->ids.begin() + static_cast<ptrdiff_t>(buffered_));
    buffered_ += ids.size();
  }

  void flush() {
    out_.insert(out_.end(), scratch_->ids.begin(), scratch_->ids.begin() + static_cast<ptrdiff_t>(buffered_));
    buffered_ = 0;
  }

  const TokenizerParts& parts_;
  EncodeOptions options_;
  std::vector<TokenId>& out_;
  std::unique_ptr<EncodeScratch> scratch_;
  size_t buffered_ = 0;            // ids in scratch_->ids
  uintptr_t begin_ = 0, end_ = 0;  // of the text that pieces are mostly parts of
};

}  // namespace

std::unique_ptr<EncodeScratch> ScratchPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty()) {
      auto scratch = std::move(waiting_.back());
      waiting_.pop_back();
      return scratch;
    }
  }
  return std::make_unique<EncodeScratch>();
}

void ScratchPool::give_back(std::unique_ptr<EncodeScratch> scratch) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(scratch));
}

std::optional<fs::path> Tokenizer::file_in(const fs::path& directory) {
  std::error_code ignored;
  for (const char* name : {"tokenizer.json", "tokenizer.model", "spiece.model"}) {
    if (fs::exists(directory / name, ignored)) return directory / name;
  }
  return std::nullopt;
}

Result<Tokenizer> Tokenizer::load(const fs::path& path) {
  std::error_code ignored;
  const bool is_directory = fs::is_directory(path, ignored);
  const std::optional<fs::path> file = is_directory ? file_in(path) : path;
  if (!file) return input_error("{}: no tokenizer.json in this directory, and no tokenizer.model", path.string());
  if (const auto size = fs::file_size(*file, ignored); !ignored && size > kLargestFile) {
    return input_error("{}: {} bytes are no tokenizer.json (at most {})", file->string(), size, kLargestFile);
  }
  INGOT_ASSIGN(const std::string bytes, read_file(*file));
  INGOT_ASSIGN(const std::shared_ptr<TokenizerParts> parts, build(bytes, file->string()));
  if (is_directory) INGOT_TRY(read_token_roles(path.string(), *parts));
  return Tokenizer(parts);
}

Result<Tokenizer> Tokenizer::parse(std::string_view bytes, std::string_view source_name) {
  INGOT_ASSIGN(const std::shared_ptr<TokenizerParts> parts, build(bytes, source_name));
  return Tokenizer(parts);
}

Status Tokenizer::save(const fs::path& path) const {
  return write_file_atomic(path, to_file());
}
std::string Tokenizer::to_file() const {
  return parts_->sentencepiece.empty() ? write_tokenizer_json(*parts_) : parts_->sentencepiece;
}
std::string_view Tokenizer::file_name() const {
  return parts_->sentencepiece.empty() ? "tokenizer.json" : "tokenizer.model";
}

int64_t Tokenizer::vocab_size() const {
  return parts_->vocabulary.size();
}
int64_t Tokenizer::merge_count() const {
  return static_cast<int64_t>(parts_->merges.size());
}
std::optional<TokenId> Tokenizer::bos_id() const {
  return parts_->bos;
}
std::optional<TokenId> Tokenizer::eos_id() const {
  return parts_->eos;
}

std::vector<TokenId> Tokenizer::end_ids() const {
  std::vector<TokenId> ids = parts_->ends;
  if (parts_->eos && std::ranges::find(ids, *parts_->eos) == ids.end()) ids.push_back(*parts_->eos);
  return ids;
}
bool Tokenizer::is_special(TokenId id) const {
  return parts_->vocabulary.special(id);
}

std::vector<TokenId> Tokenizer::specials_before() const {
  return parts_->post_processor.before;
}

std::vector<TokenId> Tokenizer::special_ids() const {
  std::vector<TokenId> ids;
  for (const AddedToken& token : parts_->added.tokens()) {
    if (token.special) ids.push_back(token.id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::optional<TokenId> Tokenizer::find_token(std::string_view token_text) const {
  for (TokenId id = 0; id < vocab_size(); ++id) {
    if (parts_->vocabulary.contains(id) && parts_->vocabulary.text(id) == token_text) return id;
  }
  return std::nullopt;
}

void Tokenizer::encode(std::string_view text, std::vector<TokenId>& out, EncodeOptions options) const {
  EncodeRun(*parts_, options, out).encode(text);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<TokenId> ids;
  encode(text, ids, options);
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string text;
  bool first = true;
  const Vocabulary& vocabulary = parts_->vocabulary;
  for (const TokenId id : ids) {
    if (!vocabulary.contains(id) || (skip_special && vocabulary.special(id))) continue;
    text += first ? vocabulary.first_bytes(id) : vocabulary.bytes(id);
    first = false;
  }
  if (parts_->decoder.text_strip().content.empty()) return text;
  return strip(std::move(text), parts_->decoder.text_strip());
}

std::string Tokenizer::token_text(TokenId id) const {
  return std::string(parts_->vocabulary.text(id));
}
std::string Tokenizer::token_bytes(TokenId id) const {
  return std::string(parts_->vocabulary.bytes(id));
}
uint64_t Tokenizer::fingerprint() const {
  return parts_->fingerprint;
}

}  // namespace ingot
