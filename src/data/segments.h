// Segments: which parts of a TokenStore belong to a set (all, training or validation), numbered end to end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "data/shards.h"

namespace ingot {

// Consecutive tokens of one document. Positions are the store's.
struct TokenSegment {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t counted_from = 0;  // tokens before this position are no targets (a prompt)
  int64_t size() const { return end - begin; }
};

struct Split;

// Immutable; keeps its store alive. Tokens of the set are numbered from 0 to tokens(), segment after segment.
class Segments {
 public:
  // Every document is one segment. Takes no memory of its own.
  static Segments all(std::shared_ptr<const TokenStore> store);

  const TokenStore& store() const { return *store_; }
  int64_t count() const { return is_all_ ? store_->documents() : static_cast<int64_t>(begins_.size()); }
  int64_t tokens() const { return is_all_ ? store_->tokens() : (ends_.empty() ? 0 : ends_.back()); }
  TokenSegment segment(int64_t index) const;
  // The set's number of the first token of a segment.
  int64_t first_token(int64_t index) const;
  // The segment that holds a token of the set, 0 <= token < tokens().
  int64_t find(int64_t token) const;

 private:
  friend Result<Split> split_for_validation(std::shared_ptr<const TokenStore>, double);
  Segments(std::shared_ptr<const TokenStore> store, bool is_all) : store_(std::move(store)), is_all_(is_all) {}
  // Joins what follows the last segment without a gap inside the same document.
  void add(int64_t begin, int64_t end, bool starts_document);

  std::shared_ptr<const TokenStore> store_;
  bool is_all_ = true;
  std::vector<int64_t> begins_;  // in the store
  std::vector<int64_t> ends_;    // in the set
};

struct Split {
  Segments train, validation;
};

// Holds out about `fraction` (0 <= fraction < 1) of the store. With 100 documents or more, those whose text's hash is
// small: the choice does not depend on order or tokenizer, and copies of a document stay on one side. With fewer, every
// document is cut into blocks (a 64th of the tokens, 64 to 65536) and those with the smallest hashes of document and
// block are held out. At least one document or block is held out where fraction > 0, and one is left, if there are two.
Result<Split> split_for_validation(std::shared_ptr<const TokenStore> store, double fraction);

}  // namespace ingot
