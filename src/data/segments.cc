#include "data/segments.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace ingot {
namespace {

constexpr int64_t kFewDocuments = 100;

// A document, or a block of one, that falls on one side as a whole.
struct Unit {
  int64_t begin = 0, end = 0;
  uint64_t hash = 0;
  bool starts_document = true;
};

int64_t block_tokens(int64_t tokens) {
  return std::clamp<int64_t>((tokens + 63) / 64, 64, 65536);
}

std::vector<Unit> blocks_of(const TokenStore& store) {
  const int64_t size = block_tokens(store.tokens());
  std::vector<Unit> blocks;
  for (int64_t document = 0; document < store.documents(); ++document) {
    const int64_t begin = store.document_begin(document), end = store.document_end(document);
    for (int64_t at = begin; at < end; at += size) {
      const PhiloxBlock bits = philox(store.document_hash(document), static_cast<uint64_t>((at - begin) / size));
      blocks.push_back({at, std::min(end, at + size), (uint64_t{bits[0]} << 32) | bits[1], at == begin});
    }
  }
  return blocks;
}

// The hash up to which (inclusive) units are held out so that it is about `fraction` of them, never none or all of
// several.
uint64_t hash_limit(std::vector<uint64_t> hashes, double fraction) {
  const auto count = static_cast<int64_t>(hashes.size());
  const int64_t held_out =
      std::clamp<int64_t>(std::llround(fraction * static_cast<double>(count)), 1, std::max<int64_t>(count - 1, 1));
  std::nth_element(hashes.begin(), hashes.begin() + (held_out - 1), hashes.end());
  return hashes[static_cast<size_t>(held_out - 1)];
}

// With many documents the limit depends on the fraction alone, so that a document keeps its side as others come and go.
uint64_t document_limit(const TokenStore& store, double fraction) {
  const auto limit = static_cast<uint64_t>(fraction * 0x1p64);
  uint64_t smallest = UINT64_MAX;
  for (int64_t i = 0; i < store.documents(); ++i) smallest = std::min(smallest, store.document_hash(i));
  return std::max(limit, smallest);
}

}  // namespace

Segments Segments::all(std::shared_ptr<const TokenStore> store) {
  return Segments(std::move(store), true);
}

TokenSegment Segments::segment(int64_t index) const {
  const int64_t begin = is_all_ ? store_->document_begin(index) : begins_[static_cast<size_t>(index)];
  const int64_t end =
      is_all_ ? store_->document_end(index) : begin + ends_[static_cast<size_t>(index)] - first_token(index);
  if (!store_->has_prompts()) return {begin, end, begin};
  const int64_t document = is_all_ ? index : store_->document_at(begin);
  return {begin, end, store_->document_begin(document) + store_->prompt_tokens(document)};
}

int64_t Segments::first_token(int64_t index) const {
  if (is_all_) return store_->document_begin(index);
  return index == 0 ? 0 : ends_[static_cast<size_t>(index) - 1];
}

int64_t Segments::find(int64_t token) const {
  if (is_all_) return store_->document_at(token);
  return std::upper_bound(ends_.begin(), ends_.end(), token) - ends_.begin();
}

void Segments::add(int64_t begin, int64_t end, bool starts_document) {
  const int64_t before = tokens();
  const bool continues =
      !starts_document && !begins_.empty() && begins_.back() + before - first_token(count() - 1) == begin;
  if (continues) {
    ends_.back() += end - begin;
    return;
  }
  begins_.push_back(begin);
  ends_.push_back(before + end - begin);
}

Result<Split> split_for_validation(std::shared_ptr<const TokenStore> store, double fraction) {
  if (!(fraction >= 0 && fraction < 1))
    return usage_error("validation_fraction is {}; expected at least 0 and less than 1", fraction);
  Split split{Segments(store, false), Segments(store, false)};
  if (fraction == 0 || store->documents() == 0) {
    split.train = Segments::all(store);
    return split;
  }
  if (store->documents() >= kFewDocuments) {
    const uint64_t limit = document_limit(*store, fraction);
    for (int64_t i = 0; i < store->documents(); ++i)
      (store->document_hash(i) <= limit ? split.validation : split.train)
          .add(store->document_begin(i), store->document_end(i), true);
    return split;
  }
  const std::vector<Unit> blocks = blocks_of(*store);
  std::vector<uint64_t> hashes;
  for (const Unit& block : blocks) hashes.push_back(block.hash);
  const uint64_t limit = hash_limit(std::move(hashes), fraction);
  for (const Unit& block : blocks)
    (block.hash <= limit ? split.validation : split.train).add(block.begin, block.end, block.starts_document);
  return split;
}

}  // namespace ingot
