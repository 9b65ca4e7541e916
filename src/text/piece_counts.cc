#include "text/piece_counts.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/hash.h"
#include "text/gpt_scanner.h"
#include "text/utf8.h"

namespace ingot {
namespace {

constexpr size_t kTileBytes = size_t{1} << 20;

// A hash table of counts, open addressing. Pieces are views of text that outlives it.
class Counter {
 public:
  Counter() : slots_(size_t{1} << 12) {}

  void add(std::string_view piece, int64_t count) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    const uint64_t hash = hash_of(piece);
    Slot& slot = find(hash, piece);
    if (slot.data == nullptr) {
      slot = {hash, piece.data(), piece.size(), 0};
      ++used_;
    }
    slot.count += count;
  }
  template <class F>
  void for_each(F&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.data != nullptr) visit(std::string_view(slot.data, slot.size), slot.count);
    }
  }
  size_t size() const { return used_; }

 private:
  struct Slot {
    uint64_t hash = 0;
    const char* data = nullptr;
    size_t size = 0;
    int64_t count = 0;
  };
  // Most pieces have few bytes, for which a multiplication does; longer ones get the real hash.
  static uint64_t hash_of(std::string_view piece) {
    if (piece.size() > 16) return hash_bytes(piece);
    uint64_t words[2] = {0, 0};
    std::memcpy(words, piece.data(), piece.size());
    const uint64_t mixed = (words[0] * 0x9E3779B97F4A7C15u ^ (words[1] + piece.size()) * 0xC2B2AE3D27D4EB4Fu);
    return (mixed ^ mixed >> 32) * 0xBF58476D1CE4E5B9u;
  }
  Slot& find(uint64_t hash, std::string_view piece) {
    const size_t mask = slots_.size() - 1;
    for (size_t at = (hash >> 20) & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.data == nullptr || (slot.hash == hash && std::string_view(slot.data, slot.size) == piece)) return slot;
    }
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.data != nullptr) find(slot.hash, {slot.data, slot.size}) = slot;
    }
  }
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

bool is_ascii_space(char c) {
  return static_cast<unsigned char>(c) < 0x80 && kAsciiClasses[static_cast<size_t>(c)] == CharClass::space;
}

// The first place from `from` on where the document can be cut without changing its pieces: between a character that is
// no white space and ASCII white space, which no match of the pattern spans or looks across.
size_t cut_from(std::string_view document, size_t from) {
  for (size_t at = std::max<size_t>(from, 1); at < document.size(); ++at) {
    const auto before = static_cast<unsigned char>(document[at - 1]);
    if (before < 0x80 && !is_ascii_space(document[at - 1]) && is_ascii_space(document[at])) return at;
  }
  return document.size();
}

// Parts of documents, of about kTileBytes each: runs of small documents, pieces of large ones.
struct Tile {
  size_t first = 0, last = 0;        // documents [first, last)
  size_t begin = 0, end = SIZE_MAX;  // within the document, of a tile of one
};
std::vector<Tile> make_tiles(std::span<const std::string_view> documents) {
  std::vector<Tile> tiles;
  for (size_t i = 0; i < documents.size();) {
    if (documents[i].size() >= 2 * kTileBytes) {
      for (size_t begin = 0; begin < documents[i].size();) {
        const size_t end = cut_from(documents[i], begin + kTileBytes);
        tiles.push_back({i, i + 1, begin, end});
        begin = end;
      }
      ++i;
      continue;
    }
    const size_t first = i;
    for (size_t bytes = 0; i < documents.size() && bytes < kTileBytes && documents[i].size() < 2 * kTileBytes; ++i) {
      bytes += documents[i].size();
    }
    tiles.push_back({first, i});
  }
  return tiles;
}

}  // namespace

std::vector<PieceCount> count_pieces(std::span<const std::string_view> documents, const ThreadPool& pool) {
  const std::vector<Tile> tiles = make_tiles(documents);
  const std::optional<GptScanner> scanner = GptScanner::for_pattern(kGpt2Pattern);
  INGOT_CHECK(scanner.has_value(), "GPT-2's pattern has no scanner");
  std::vector<Counter> counters(static_cast<size_t>(pool.threads()));
  pool.run(static_cast<int64_t>(tiles.size()), [&](int64_t index, int thread) {
    const Tile& tile = tiles[static_cast<size_t>(index)];
    Counter& counter = counters[static_cast<size_t>(thread)];
    for (size_t i = tile.first; i < tile.last; ++i) {
      const std::string_view text = documents[i].substr(tile.begin, tile.end - tile.begin);
      scanner->split(text, [&](std::string_view piece) { counter.add(piece, 1); });
    }
  });
  for (size_t thread = 1; thread < counters.size(); ++thread) {
    counters[thread].for_each([&](std::string_view piece, int64_t count) { counters[0].add(piece, count); });
    counters[thread] = Counter();
  }
  std::vector<PieceCount> pieces;
  pieces.reserve(counters[0].size());
  counters[0].for_each([&](std::string_view piece, int64_t count) { pieces.push_back({piece, count}); });
  std::sort(pieces.begin(), pieces.end(), [](const PieceCount& a, const PieceCount& b) { return a.piece < b.piece; });
  return pieces;
}

}  // namespace ingot
