#include "text/bpe_model.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "text/utf8.h"

namespace ingot {
namespace {

constexpr std::string_view kBlank = "\xE2\x96\x81";  // U+2581, how SentencePiece vocabularies write a space
constexpr size_t kLongPiece = 64;                    // symbols from which the queue beats the scan
constexpr size_t kMostAtOnce = size_t{1} << 30;      // positions are 32-bit

using Symbol = ModelScratch::Symbol;

}  // namespace

BpeModel::BpeModel(const Tokens& tokens, std::span<const BpeMerge> merges, const std::array<TokenId, 256>& byte_tokens,
                   Options options)
    : BpeModel(tokens, merges, byte_tokens, options, {}) {}

BpeModel::BpeModel(const Tokens& tokens, std::span<const BpeMerge> merges, const std::array<TokenId, 256>& byte_tokens,
                   Options options, const SentencePiece& sentencepiece)
    : options_(options), index_(tokens), whole_tokens_(sentencepiece.whole_tokens), single_bytes_(byte_tokens) {
  if (options_.byte_level) {
    for (int b = 0; b < 256; ++b) {
      const char byte = static_cast<char>(b);
      single_bytes_[static_cast<size_t>(b)] = index_.find({&byte, 1});
    }
  }
  index_merges(merges, sentencepiece.ranks);
  // A cut before a blank that follows something else is safe when no token (so no merge's result) has the two inside
  // it, and when unknowns cannot be fused across it, the blank being known.
  cuts_before_blank_ = !options_.byte_level && !options_.ignore_merges && index_.find(kBlank) != kNoToken;
  for (const auto& [text, id] : tokens) {
    for (size_t at = text.find(kBlank, 1); at != std::string_view::npos; at = text.find(kBlank, at + 1)) {
      if (!text.substr(0, at).ends_with(kBlank)) cuts_before_blank_ = false;
    }
  }
}

void BpeModel::index_merges(std::span<const BpeMerge> merges, std::span<const uint32_t> ranks) {
  const size_t slots = std::bit_ceil(merges.size() * 2 + 2);
  pairs_.resize(slots);
  pair_shift_ = 64 - std::countr_zero(slots);
  for (size_t i = 0; i < merges.size(); ++i) {
    const uint64_t pair = pair_of(merges[i].left, merges[i].right);
    size_t at = pair * 0x9E3779B97F4A7C15u >> pair_shift_;
    while (pairs_[at].pair != kNoPair) at = (at + 1) & (slots - 1);
    pairs_[at] = {pair, ranks.empty() ? static_cast<uint32_t>(i) : ranks[i], merges[i].merged};
  }
}

size_t BpeModel::next_cut(std::string_view piece, size_t from) const {
  if (!cuts_before_blank_) return piece.size();
  size_t at = piece.find(kBlank, from + 1);
  while (at != std::string_view::npos && piece.substr(0, at).ends_with(kBlank))
    at = piece.find(kBlank, at + kBlank.size());
  return std::min(at, piece.size());
}

const BpeModel::PairSlot* BpeModel::find(TokenId left, TokenId right) const {
  const uint64_t pair = pair_of(left, right);
  const size_t mask = pairs_.size() - 1;
  for (size_t at = pair * 0x9E3779B97F4A7C15u >> pair_shift_;; at = (at + 1) & mask) {
    if (pairs_[at].pair == pair) return &pairs_[at];
    if (pairs_[at].pair == kNoPair) return nullptr;
  }
}

void BpeModel::rank_pair(Symbol& symbol, TokenId right) const {
  const PairSlot* slot = find(symbol.id, right);
  symbol.rank = slot != nullptr ? slot->rank : ModelScratch::kNoRank;
  symbol.merged = slot != nullptr ? slot->merged : kNoToken;
}

void BpeModel::character_symbols(std::string_view piece, std::vector<Symbol>& symbols) const {
  const auto* p = reinterpret_cast<const unsigned char*>(piece.data());
  const auto* end = p + piece.size();
  bool after_unknown = false;
  const auto add = [&](TokenId id, bool unknown) {
    symbols.push_back({id, ModelScratch::kNoRank, kNoToken, 0, 0});
    after_unknown = unknown;
  };
  while (p < end) {
    size_t whole = 0;
    TokenId whole_token = kNoToken;
    whole_tokens_.prefixes({reinterpret_cast<const char*>(p), static_cast<size_t>(end - p)},
                           [&](size_t length, TokenId id) {
                             whole = length;
                             whole_token = id;
                           });
    if (whole > 0) {
      add(whole_token, false);
      p += whole;
      continue;
    }
    const size_t size = std::max<size_t>(decode_utf8(p, end).size, 1);  // an invalid byte is a character of its own
    const TokenId id = index_.find({reinterpret_cast<const char*>(p), size});
    const auto has_byte = [&](unsigned char byte) { return single_bytes_[byte] != kNoToken; };
    if (id != kNoToken) {
      add(id, false);
    } else if (options_.byte_fallback && std::all_of(p, p + size, has_byte)) {
      for (size_t i = 0; i < size; ++i) add(single_bytes_[p[i]], false);
    } else if (options_.unk != kNoToken && !(options_.fuse_unk && after_unknown)) {
      add(options_.unk, true);
    }
    p += size;
  }
}

void BpeModel::first_symbols(std::string_view piece, std::vector<Symbol>& symbols) const {
  symbols.clear();
  if (!options_.byte_level) {
    character_symbols(piece, symbols);
  } else {
    for (const char c : piece) {
      TokenId id = single_bytes_[static_cast<unsigned char>(c)];
      if (id == kNoToken) id = options_.unk;
      if (id != kNoToken) symbols.push_back({id, ModelScratch::kNoRank, kNoToken, 0, 0});
    }
  }
  for (size_t i = 0; i + 1 < symbols.size(); ++i) rank_pair(symbols[i], symbols[i + 1].id);
}

// Finds each merge by looking at all pairs: quadratic, and the fastest for the few symbols of a word.
void BpeModel::merge_short(std::vector<Symbol>& symbols) const {
  size_t count = symbols.size();
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (symbols[i].rank < symbols[best].rank) best = i;
    }
    if (symbols[best].rank == ModelScratch::kNoRank) break;
    symbols[best].id = symbols[best].merged;
    std::copy(symbols.begin() + static_cast<ptrdiff_t>(best) + 2, symbols.begin() + static_cast<ptrdiff_t>(count),
              symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    --count;
    symbols[best].rank = ModelScratch::kNoRank;
    if (best + 1 < count) rank_pair(symbols[best], symbols[best + 1].id);
    if (best > 0) rank_pair(symbols[best - 1], symbols[best].id);
  }
  symbols.resize(count);
}

// A linked list of symbols and a queue of pairs, lowest (rank, position) first. An entry whose pair has changed since
// is recognised by its rank.
void BpeModel::merge_long(ModelScratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& queue = scratch.queue;
  const auto count = static_cast<uint32_t>(symbols.size());
  queue.clear();
  const auto entry = [&](uint32_t at) { return static_cast<uint64_t>(symbols[at].rank) << 32 | at; };
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i].next = i + 1;
    symbols[i].previous = i - 1;  // of the first one never used
    if (symbols[i].rank != ModelScratch::kNoRank) queue.push_back(entry(i));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  const auto rank_again = [&](uint32_t at) {
    symbols[at].rank = ModelScratch::kNoRank;
    if (symbols[at].next < count) rank_pair(symbols[at], symbols[symbols[at].next].id);
    if (symbols[at].rank == ModelScratch::kNoRank) return;
    queue.push_back(entry(at));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto at = static_cast<uint32_t>(queue.back());
    const auto rank = static_cast<uint32_t>(queue.back() >> 32);
    queue.pop_back();
    Symbol& symbol = symbols[at];
    if (symbol.id == kNoToken || symbol.rank != rank) continue;
    Symbol& eaten = symbols[symbol.next];
    symbol.id = symbol.merged;
    symbol.next = eaten.next;
    eaten.id = kNoToken;
    if (symbol.next < count) symbols[symbol.next].previous = at;
    rank_again(at);
    if (at > 0) rank_again(symbol.previous);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.id == kNoToken; });
}

void BpeModel::encode(std::string_view piece, ModelScratch& scratch, std::vector<TokenId>& out) const {
  if (options_.ignore_merges) {
    if (const TokenId id = index_.find(piece); id != kNoToken) return out.push_back(id);
  }
  for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kMostAtOnce))) {
    first_symbols(piece.substr(0, kMostAtOnce), scratch.symbols);
    if (scratch.symbols.size() < kLongPiece) {
      merge_short(scratch.symbols);
    } else {
      merge_long(scratch);
    }
    for (const Symbol& symbol : scratch.symbols) out.push_back(symbol.id);
  }
}

}  // namespace ingot
