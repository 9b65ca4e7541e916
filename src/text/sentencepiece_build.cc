// From a .model to a tokenizer that gives the ids of the SentencePiece library.
#include <algorithm>
#include <cfloat>
#include <unordered_map>

#include "base/hash.h"
#include "text/json_reader.h"
#include "text/sentencepiece_file.h"
#include "text/utf8.h"

namespace ingot {
namespace {

using Tokens = BpeModel::Tokens;
using Type = SentencePieceFile::Type;
constexpr int64_t kMostStripped = 1 << 20;
constexpr size_t kLongestMerged = 512;  // bytes; the library's own training stops at 16 characters

class SentencePieceBuilder {
 public:
  SentencePieceBuilder(const SentencePieceFile& file, std::string_view bytes, std::string_view source)
      : file_(file), bytes_(bytes), source_(source), parts_(std::make_shared<TokenizerParts>()) {}

  Result<std::shared_ptr<TokenizerParts>> build() {
    INGOT_TRY(collect_ids());
    INGOT_TRY(make_normalizer());
    INGOT_TRY(make_decoder());
    fill_vocabulary();
    INGOT_TRY(file_.model_type == SentencePieceFile::ModelType::bpe ? make_bpe() : make_unigram());
    parts_->sentencepiece = bytes_;
    parts_->fingerprint = hash_bytes(bytes_);
    return parts_;
  }

 private:
  static bool is_text(Type type) { return type == Type::normal || type == Type::user_defined; }

  Status collect_ids() {
    size_t bytes = 0;
    for (const auto& piece : file_.pieces) bytes += piece.text.size();
    if (bytes > ByteTrie::kMostBytes)
      return input_error("{}: pieces of {} bytes together (at most {}) are not supported", source_, bytes,
                         ByteTrie::kMostBytes);
    for (size_t id = 0; id < file_.pieces.size(); ++id) {
      const auto& piece = file_.pieces[id];
      const auto token = static_cast<TokenId>(id);
      if (!ids_.emplace(piece.text, token).second)
        return input_error("{}: pieces[{}]: the piece '{}' stands twice", source_, id, piece.text);
      if (piece.type == Type::unknown) {
        if (unk_ != kNoToken) return input_error("{}: pieces[{}]: a second unknown piece", source_, id);
        unk_ = token;
      }
      if (is_text(piece.type)) tokens_.emplace_back(piece.text, token);
      if (piece.type == Type::user_defined) user_defined_.emplace_back(piece.text, token);
      if (piece.type == Type::byte) {
        const int byte = fallback_byte(piece.text);
        if (byte < 0) return input_error("{}: pieces[{}]: '{}' is no byte piece (<0x41>)", source_, id, piece.text);
        byte_tokens_[static_cast<size_t>(byte)] = token;
      }
    }
    if (unk_ == kNoToken) return input_error("{}: no SentencePiece model: it has no unknown piece", source_);
    if (!file_.byte_fallback) byte_tokens_.fill(kNoToken);
    return {};
  }

  Status make_normalizer() {
    std::optional<PrecompiledMap> rules;
    if (!file_.rules.empty()) {
      auto read = PrecompiledMap::read(file_.rules);
      if (!read.ok()) return input_error("{}: normalizer_spec.precompiled_charsmap: {}", source_, read.error().message);
      rules = *read;
    }
    parts_->normalizer = Normalizer(SentencePieceNormalizer(std::move(rules), ByteTrie(user_defined_),
                                                            {file_.add_dummy_prefix, file_.remove_extra_whitespaces}));
    return {};
  }

  Status make_decoder() {
    Json steps = Json::array({{{"type", "Replace"}, {"pattern", {{"String", "\xE2\x96\x81"}}}, {"content", " "}},
                              {{"type", "ByteFallback"}},
                              {{"type", "Fuse"}}});
    if (file_.add_dummy_prefix || file_.remove_extra_whitespaces)
      steps.push_back({{"type", "Strip"},
                       {"content", " "},
                       {"start", file_.remove_extra_whitespaces ? kMostStripped : 1},
                       {"stop", 0}});
    const Json document = {{"type", "Sequence"}, {"decoders", steps}};
    INGOT_ASSIGN(parts_->decoder, Decoder::read(JsonPlace(document, source_, "decoder")));
    return {};
  }

  void fill_vocabulary() {
    parts_->vocabulary = Vocabulary(static_cast<int64_t>(file_.pieces.size()));
    std::vector<AddedToken> added;
    for (size_t id = 0; id < file_.pieces.size(); ++id) {
      const auto& piece = file_.pieces[id];
      const auto token = static_cast<TokenId>(id);
      const bool special = piece.type == Type::control || piece.type == Type::unknown;
      const std::string bytes = special ? piece.text : parts_->decoder.token_bytes(piece.text, false);
      parts_->vocabulary.set(token, piece.text, bytes, bytes, special);
      parts_->model_ids.push_back(token);
      if (special) added.push_back({.id = token, .content = piece.text, .special = true, .normalized = false});
    }
    parts_->added = AddedTokens(std::move(added), parts_->normalizer);
    const auto control = [&](int64_t id) -> std::optional<TokenId> {
      const bool is = id >= 0 && id < static_cast<int64_t>(file_.pieces.size()) &&
                      file_.pieces[static_cast<size_t>(id)].type == Type::control;
      return is ? std::optional(static_cast<TokenId>(id)) : std::nullopt;
    };
    parts_->bos = control(file_.bos);
    parts_->eos = control(file_.eos);
    if (parts_->bos) parts_->post_processor.before = {*parts_->bos};
  }

  Status make_unigram() {
    double lowest = FLT_MAX;
    float highest = FLT_MIN;  // the library's start, so that it is above 0 although no score is
    for (const auto& piece : file_.pieces) {
      if (piece.type != Type::normal) continue;
      lowest = std::min<double>(lowest, piece.score);
      highest = std::max(highest, piece.score);
    }
    std::vector<double> scores;
    for (const auto& piece : file_.pieces) {
      scores.push_back(piece.type == Type::user_defined  // always wins
                           ? static_cast<double>(static_cast<float>(piece.text.size()) * highest) - 0.1
                           : static_cast<double>(piece.score));
    }
    const UnigramModel::Options options{.byte_fallback = file_.byte_fallback, .unk = unk_, .float_sums = true};
    parts_->model = std::make_unique<UnigramModel>(tokens_, std::move(scores), lowest, byte_tokens_, options);
    parts_->options = options;
    return {};
  }

  // A piece comes from each pair of pieces that it can be cut into. Merges have the rank of their result's score: of
  // equal ones the leftmost goes first.
  Status make_bpe() {
    std::vector<float> scores;
    for (const auto& [text, id] : tokens_) scores.push_back(file_.pieces[static_cast<size_t>(id)].score);
    std::ranges::sort(scores, std::greater<>());
    scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
    std::vector<std::pair<uint32_t, BpeMerge>> merges;
    for (const auto& [text, id] : tokens_) {
      const auto& piece = file_.pieces[static_cast<size_t>(id)];
      const auto rank = std::ranges::lower_bound(scores, piece.score, std::greater<>()) - scores.begin();
      if (text.size() > kLongestMerged)
        return input_error("{}: pieces[{}]: a piece of {} bytes in a BPE is not supported", source_, id, text.size());
      INGOT_TRY(add_merges(text, id, static_cast<uint32_t>(rank), merges));
    }
    if (std::ranges::any_of(file_.pieces, [](const auto& piece) { return piece.type == Type::unused; }))
      return input_error("{}: unused pieces in a BPE are not supported", source_);
    std::ranges::stable_sort(merges, {}, [](const auto& merge) { return merge.first; });
    BpeModel::SentencePiece sentencepiece{.ranks = {}, .whole_tokens = user_defined_};
    for (const auto& [rank, merge] : merges) {
      sentencepiece.ranks.push_back(rank);
      parts_->merges.push_back(merge);
    }
    BpeModel::Options options;
    options.byte_fallback = file_.byte_fallback;
    options.fuse_unk = true;
    options.unk = unk_;
    parts_->model = std::make_unique<BpeModel>(tokens_, parts_->merges, byte_tokens_, options, sentencepiece);
    parts_->options = options;
    return {};
  }

  Status add_merges(std::string_view text, TokenId id, uint32_t rank,
                    std::vector<std::pair<uint32_t, BpeMerge>>& merges) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    const size_t first = decode_utf8(bytes, bytes + text.size()).size;
    if (first == text.size() || file_.pieces[static_cast<size_t>(id)].type == Type::user_defined) return {};
    for (size_t at = 0; at < text.size();) {
      const size_t size = decode_utf8(bytes + at, bytes + text.size()).size;
      if (find(text.substr(at, size)) == kNoToken) {
        return input_error("{}: pieces[{}]: '{}' has the character '{}', which is no piece itself; not supported",
                           source_, id, text, text.substr(at, size));
      }
      if (at > 0) {
        const TokenId left = find(text.substr(0, at)), right = find(text.substr(at));
        if (is_normal(left) && is_normal(right)) merges.push_back({rank, {left, right, id}});
      }
      at += size;
    }
    return {};
  }

  TokenId find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? kNoToken : found->second;
  }
  bool is_normal(TokenId id) const {
    return id != kNoToken && file_.pieces[static_cast<size_t>(id)].type == Type::normal;
  }

  const SentencePieceFile& file_;
  std::string_view bytes_;
  std::string source_;
  std::shared_ptr<TokenizerParts> parts_;
  std::unordered_map<std::string_view, TokenId> ids_;
  Tokens tokens_, user_defined_;  // views of file_
  TokenId unk_ = kNoToken;
  std::array<TokenId, 256> byte_tokens_ = [] {
    std::array<TokenId, 256> none;
    none.fill(kNoToken);
    return none;
  }();
};

}  // namespace

Result<std::shared_ptr<TokenizerParts>> build_sentencepiece(const SentencePieceFile& file, std::string_view bytes,
                                                            std::string_view source_name) {
  return SentencePieceBuilder(file, bytes, source_name).build();
}

}  // namespace ingot
