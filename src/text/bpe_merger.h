// BpeMerger: finds the merges of a BPE, most frequent pair first, with counts that are kept up to date instead of
// counted anew.
#pragma once

#include <cstdint>
#include <queue>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "text/bpe_model.h"
#include "text/piece_counts.h"

namespace ingot {

// Works on the pieces laid end to end with a gap between, one place a byte. A symbol is known at its first and at its
// last byte; what lies between has no symbol. A pair of symbols knows all places where it occurs, and these only grow
// fewer: pairs with a new symbol all come into being with it. So a merge costs what it changes, however long a piece
// is.
class BpeMerger {
 public:
  // symbols: by id the bytes of each token that there is; those from first_byte on are the 256 single bytes. Merges go
  // on numbering. The pieces hold less than 4 GiB.
  BpeMerger(std::span<const PieceCount> pieces, std::vector<std::string> symbols, TokenId first_byte);

  // Merges the most frequent pair, of equals the one with the smallest (left, right). A pair that would spell a token
  // that there is already is never merged. False when no pair is left.
  bool merge_next();
  const std::vector<BpeMerge>& merges() const { return merges_; }
  const std::vector<std::string>& symbols() const { return symbols_; }

 private:
  using Place = uint32_t;
  static constexpr TokenId kGap = -1;     // between pieces
  static constexpr TokenId kInside = -2;  // within a symbol

  struct Pair {
    TokenId left, right;
    int64_t count;
    std::vector<Place> places;  // ascending; some may no longer hold the pair
  };
  struct Candidate {
    int64_t count;
    TokenId left, right;
    uint32_t pair;
    bool operator<(const Candidate& other) const {
      if (count != other.count) return count < other.count;
      if (left != other.left) return left > other.left;
      return right > other.right;
    }
  };
  // From (left, right) to an index into pairs_: open addressing.
  class PairIndex {
   public:
    static constexpr uint32_t kNone = UINT32_MAX;
    PairIndex() : keys_(size_t{1} << 16, UINT64_MAX), values_(keys_.size(), kNone) {}
    uint32_t find(TokenId left, TokenId right) const;
    void insert(TokenId left, TokenId right, uint32_t pair);

   private:
    static uint64_t key_of(TokenId left, TokenId right) {
      return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    }
    size_t slot_of(uint64_t key) const;
    std::vector<uint64_t> keys_;
    std::vector<uint32_t> values_;
    size_t used_ = 0;
  };
  struct Neighbour {
    TokenId id;
    Place place;  // of the pair
  };

  void lay_out(std::span<const PieceCount> pieces, TokenId first_byte);
  void count_first_pairs();
  size_t size_of(TokenId id) const { return symbols_[static_cast<size_t>(id)].size(); }
  TokenId symbol_before(Place place) const { return ends_[place - 1]; }
  TokenId symbol_after(Place place, TokenId id) const { return starts_[place + size_of(id)]; }
  int64_t weight(Place place) const { return piece_counts_[piece_of_[place]]; }
  void lose(TokenId left, TokenId right, int64_t count);
  void replace(const Pair& pair, TokenId merged);
  void collect_new_pairs(TokenId merged);
  void add_pairs(std::vector<Neighbour>& found, TokenId merged, bool merged_is_left);

  std::vector<TokenId> starts_, ends_;  // by place; a gap at each end of a piece
  std::vector<uint32_t> piece_of_;      // by place
  std::vector<int64_t> piece_counts_;   // by piece
  std::vector<std::string> symbols_;    // by id, their bytes
  std::unordered_set<std::string> spelled_;
  std::vector<Pair> pairs_;
  PairIndex index_;
  std::priority_queue<Candidate> queue_;  // counts as they once were: never too low
  std::vector<BpeMerge> merges_;
  std::vector<Place> merged_places_;                 // of the merge at hand, ascending
  std::vector<Neighbour> left_found_, right_found_;  // of the merge at hand
  std::vector<uint32_t> pair_of_neighbour_;          // by symbol; PairIndex::kNone between uses
};

}  // namespace ingot
