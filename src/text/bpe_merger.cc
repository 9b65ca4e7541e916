#include "text/bpe_merger.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace ingot {

uint32_t BpeMerger::PairIndex::find(TokenId left, TokenId right) const {
  return values_[slot_of(key_of(left, right))];
}

void BpeMerger::PairIndex::insert(TokenId left, TokenId right, uint32_t pair) {
  if ((used_ + 1) * 2 > keys_.size()) {
    std::vector<uint64_t> keys(keys_.size() * 2, UINT64_MAX);
    std::vector<uint32_t> values(keys.size(), kNone);
    keys.swap(keys_);
    values.swap(values_);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (values[i] == kNone) continue;
      const size_t slot = slot_of(keys[i]);
      keys_[slot] = keys[i];
      values_[slot] = values[i];
    }
  }
  const size_t slot = slot_of(key_of(left, right));
  keys_[slot] = key_of(left, right);
  values_[slot] = pair;
  ++used_;
}

size_t BpeMerger::PairIndex::slot_of(uint64_t key) const {
  const size_t mask = keys_.size() - 1;
  size_t at = (key * 0x9E3779B97F4A7C15u >> 24) & mask;
  while (keys_[at] != key && values_[at] != kNone) at = (at + 1) & mask;
  return at;
}

BpeMerger::BpeMerger(std::span<const PieceCount> pieces, std::vector<std::string> symbols, TokenId first_byte)
    : symbols_(std::move(symbols)), spelled_(symbols_.begin(), symbols_.end()) {
  lay_out(pieces, first_byte);
  count_first_pairs();
}

void BpeMerger::lay_out(std::span<const PieceCount> pieces, TokenId first_byte) {
  std::array<TokenId, 256> byte_ids{};
  for (TokenId id = first_byte; id < first_byte + 256; ++id) {
    byte_ids[static_cast<unsigned char>(symbols_[static_cast<size_t>(id)][0])] = id;
  }
  size_t places = 1;
  for (const PieceCount& piece : pieces) places += piece.piece.size() + 1;
  INGOT_CHECK(places < UINT32_MAX, "{} bytes of pieces in a merger", places);
  starts_.reserve(places);
  piece_of_.reserve(places);
  starts_.push_back(kGap);
  piece_of_.push_back(0);
  for (const PieceCount& piece : pieces) {
    const auto number = static_cast<uint32_t>(piece_counts_.size());
    piece_counts_.push_back(piece.count);
    for (const char byte : piece.piece) starts_.push_back(byte_ids[static_cast<unsigned char>(byte)]);
    starts_.push_back(kGap);
    piece_of_.resize(starts_.size(), number);
  }
  ends_ = starts_;
}

void BpeMerger::count_first_pairs() {
  for (Place place = 0; place + 1 < starts_.size(); ++place) {
    const TokenId left = starts_[place], right = starts_[place + 1];
    if (left == kGap || right == kGap) continue;
    uint32_t pair = index_.find(left, right);
    if (pair == PairIndex::kNone) {
      pair = static_cast<uint32_t>(pairs_.size());
      pairs_.push_back({left, right, 0, {}});
      index_.insert(left, right, pair);
    }
    pairs_[pair].count += weight(place);
    pairs_[pair].places.push_back(place);
  }
  for (uint32_t i = 0; i < pairs_.size(); ++i) queue_.push({pairs_[i].count, pairs_[i].left, pairs_[i].right, i});
}

bool BpeMerger::merge_next() {
  while (!queue_.empty()) {
    Candidate best = queue_.top();
    queue_.pop();
    const int64_t count = pairs_[best.pair].count;
    if (count == 0) continue;
    if (count != best.count) {
      best.count = count;
      queue_.push(best);
      continue;
    }
    std::string spelling = symbols_[static_cast<size_t>(best.left)] + symbols_[static_cast<size_t>(best.right)];
    if (!spelled_.insert(spelling).second) continue;
    const auto merged = static_cast<TokenId>(symbols_.size());
    merges_.push_back({best.left, best.right, merged});
    symbols_.push_back(std::move(spelling));
    const Pair pair = std::move(pairs_[best.pair]);
    replace(pair, merged);
    pairs_[best.pair].count = 0;
    pairs_[best.pair].places = {};
    collect_new_pairs(merged);
    return true;
  }
  return false;
}

void BpeMerger::lose(TokenId left, TokenId right, int64_t count) {
  const uint32_t pair = index_.find(left, right);
  INGOT_CHECK(pair != PairIndex::kNone, "the pair {} {} occurs but was never counted", left, right);
  pairs_[pair].count -= count;
}

void BpeMerger::replace(const Pair& pair, TokenId merged) {
  merged_places_.clear();
  for (const Place place : pair.places) {
    if (starts_[place] != pair.left || symbol_after(place, pair.left) != pair.right) continue;
    const Place middle = place + static_cast<Place>(size_of(pair.left));
    const TokenId before = symbol_before(place);
    const TokenId after = symbol_after(middle, pair.right);
    // A neighbour on the left that was merged just now has taken its pair with this symbol along already.
    if (before >= 0 && before != merged) lose(before, pair.left, weight(place));
    if (after >= 0) lose(pair.right, after, weight(place));
    ends_[middle - 1] = kInside;
    starts_[middle] = kInside;
    starts_[place] = merged;
    ends_[place + size_of(merged) - 1] = merged;
    merged_places_.push_back(place);
  }
}

void BpeMerger::collect_new_pairs(TokenId merged) {
  left_found_.clear();
  right_found_.clear();
  for (const Place place : merged_places_) {
    const TokenId before = symbol_before(place), after = symbol_after(place, merged);
    if (before >= 0) left_found_.push_back({before, place - static_cast<Place>(size_of(before))});
    if (after >= 0 && after != merged) right_found_.push_back({after, place});
  }
  add_pairs(left_found_, merged, false);
  add_pairs(right_found_, merged, true);
}

void BpeMerger::add_pairs(std::vector<Neighbour>& found, TokenId merged, bool merged_is_left) {
  pair_of_neighbour_.resize(symbols_.size(), PairIndex::kNone);
  const size_t first = pairs_.size();
  for (const Neighbour& neighbour : found) {
    uint32_t& pair = pair_of_neighbour_[static_cast<size_t>(neighbour.id)];
    if (pair == PairIndex::kNone) {
      pair = static_cast<uint32_t>(pairs_.size());
      pairs_.push_back({merged_is_left ? merged : neighbour.id, merged_is_left ? neighbour.id : merged, 0, {}});
    }
    pairs_[pair].count += weight(neighbour.place);
    pairs_[pair].places.push_back(neighbour.place);
  }
  for (size_t i = first; i < pairs_.size(); ++i) {
    const Pair& pair = pairs_[i];
    pair_of_neighbour_[static_cast<size_t>(merged_is_left ? pair.right : pair.left)] = PairIndex::kNone;
    index_.insert(pair.left, pair.right, static_cast<uint32_t>(i));
    queue_.push({pair.count, pair.left, pair.right, static_cast<uint32_t>(i)});
  }
}

}  // namespace ingot
