#include <algorithm>
#include <array>
#include <set>

#include "base/log.h"
#include "base/parallel.h"
#include "text/bpe_merger.h"
#include "text/byte_alphabet.h"
#include "text/piece_counts.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"

namespace ingot {
namespace {

constexpr int64_t kBytes = 256;
constexpr int64_t kProgressEvery = 256;  // merges

Status check_options(const BpeTrainOptions& options) {
  std::set<std::string_view> seen;
  for (const std::string& token : options.special_tokens) {
    if (token.empty()) return usage_error("a special token is empty");
    if (valid_utf8_end(token, 0) != token.size())
      return usage_error("the special token '{}' is not valid UTF-8", token);
    if (!seen.insert(token).second) return usage_error("the special token '{}' is given twice", token);
    const auto bytes = alphabet_to_bytes(token);
    if (bytes && bytes->size() == 1)
      return usage_error("the special token '{}' is how a vocabulary writes a byte; choose a longer one", token);
  }
  const auto specials = static_cast<int64_t>(options.special_tokens.size());
  if (options.vocab_size < kBytes + specials) {
    return usage_error("a vocabulary of {} cannot hold the {} bytes and {} special token(s): ask for at least {}",
                       options.vocab_size, kBytes, specials, kBytes + specials);
  }
  if (options.vocab_size > kMostTokens)
    return usage_error("a vocabulary of {}: at most {} is supported", options.vocab_size, kMostTokens);
  return {};
}

Json stages_document(const std::vector<std::string>& special_tokens) {
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  Json added = Json::array();
  for (size_t i = 0; i < special_tokens.size(); ++i) {
    added.push_back({{"id", i}, {"content", special_tokens[i]}, {"special", true}, {"normalized", false}});
  }
  return {{"version", "1.0"},
          {"added_tokens", std::move(added)},
          {"pre_tokenizer", byte_level},
          {"post_processor", byte_level},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}}}};
}

// The bytes in the order of their characters in the alphabet, as Hugging Face's trainer numbers them.
std::array<std::string, kBytes> bytes_in_order() {
  std::array<std::pair<std::u32string, std::string>, kBytes> bytes;
  for (size_t b = 0; b < kBytes; ++b) {
    const char byte = static_cast<char>(b);
    const std::string text = bytes_to_alphabet({&byte, 1});
    const auto* p = reinterpret_cast<const unsigned char*>(text.data());
    bytes[b] = {std::u32string(1, decode_utf8(p, p + text.size()).code), std::string(1, byte)};
  }
  std::sort(bytes.begin(), bytes.end());
  std::array<std::string, kBytes> order;
  for (size_t b = 0; b < kBytes; ++b) order[b] = bytes[b].second;
  return order;
}

// Returns how many were found, fewer than wanted when no pair is left.
int64_t find_merges(BpeMerger& merger, int64_t wanted, const std::function<void(int64_t, int64_t)>& progress) {
  int64_t found = 0;
  while (found < wanted && merger.merge_next()) {
    ++found;
    if (progress && (found % kProgressEvery == 0 || found == wanted)) progress(found, wanted);
  }
  return found;
}

TokenizerFile to_file(const BpeMerger& merger, const std::vector<std::string>& special_tokens) {
  TokenizerFile file;
  file.document = stages_document(special_tokens);
  const std::vector<std::string>& symbols = merger.symbols();
  std::vector<std::string> texts = special_tokens;
  for (size_t id = texts.size(); id < symbols.size(); ++id) texts.push_back(bytes_to_alphabet(symbols[id]));
  for (size_t id = 0; id < texts.size(); ++id) file.vocabulary.emplace_back(texts[id], static_cast<int64_t>(id));
  for (const BpeMerge& merge : merger.merges()) {
    file.merges.emplace_back(texts[static_cast<size_t>(merge.left)], texts[static_cast<size_t>(merge.right)]);
  }
  return file;
}

}  // namespace

Result<Tokenizer> train_bpe(std::span<const std::string_view> documents, const BpeTrainOptions& options,
                            const ThreadPool& pool) {
  INGOT_TRY(check_options(options));
  const std::vector<PieceCount> pieces = count_pieces(documents, pool);
  uint64_t piece_bytes = 0;
  for (const PieceCount& piece : pieces) piece_bytes += piece.piece.size() + 1;
  if (piece_bytes >= UINT32_MAX - 1) {
    return usage_error("the text has {} bytes of different pieces, at most 4 GiB can be trained on: give less of it",
                       piece_bytes);
  }
  std::vector<std::string> symbols;
  for (const std::string& token : options.special_tokens) symbols.push_back(alphabet_to_bytes(token).value_or(""));
  const auto first_byte = static_cast<TokenId>(symbols.size());
  for (std::string& byte : bytes_in_order()) symbols.push_back(std::move(byte));
  const auto given = static_cast<int64_t>(symbols.size());
  BpeMerger merger(pieces, std::move(symbols), first_byte);
  const int64_t found = find_merges(merger, options.vocab_size - given, options.progress);
  if (found < options.vocab_size - given) {
    log_warning("the text is too small for a vocabulary of {}: every pair in it is merged at {}", options.vocab_size,
                given + found);
  }
  const TokenizerFile file = to_file(merger, options.special_tokens);
  INGOT_ASSIGN(const std::shared_ptr<TokenizerParts> parts, build_tokenizer(file, "the trained tokenizer"));
  return Tokenizer(parts);
}

}  // namespace ingot
