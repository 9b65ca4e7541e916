// LikelihoodScorer: how likely a model finds texts that go on from a common beginning. Several such groups are scored
// at a time, one a row of a batch, over a cache of keys and values: a group's beginning is computed once for all its
// endings, and not at all as far as the group before it in the same row began alike (the worked examples of a subject).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "infer/loaded_model.h"
#include "passes/pass.h"

namespace ingot {

// log P(ids[first…] | prefix, ids[…first)) is wanted; 1 <= first < ids.size().
struct Ending {
  std::vector<int32_t> ids;
  int64_t first = 1;
};
struct EndingGroup {
  std::vector<int32_t> prefix;
  std::vector<Ending> endings;

  // Tokens that the model reads for the longest ending: all but its last.
  int64_t tokens() const;
};

// The group of whole sequences, of which sequence i is predicted from first[i] >= 1 on: what all of them share goes
// into the prefix.
EndingGroup group_of(std::span<const std::vector<int32_t>> sequences, std::span<const int64_t> first);

// Not thread-safe. Owns the arena (weights under their Hugging Face names, and the caches), all zero until its
// variables are filled (load_weights). Model and pool must outlive it.
class LikelihoodScorer {
 public:
  // For `rows` groups at a time of up to `tokens` tokens() each. Error: usage where the machine has no memory for it,
  // or the model has no positions for them.
  static Result<std::unique_ptr<LikelihoodScorer>> create(const Model& model, int64_t rows, int64_t tokens,
                                                          const ThreadPool& pool, const MixedPrecision& precision = {});

  const Arena& arena() const { return *arena_; }
  int64_t rows() const { return rows_; }

  // Natural logarithms [group][ending] of up to rows() groups. They depend on the other groups, on earlier calls and on
  // rows() in their rounding alone, and not on the number of threads. Error (input): a token that the vocabulary lacks.
  Result<std::vector<std::vector<double>>> score(std::span<const EndingGroup> groups);

 private:
  struct Entry {
    int64_t tokens;
    bool all_logits;
    std::unique_ptr<Program> program;
  };
  // What a row reads in one run: ids behind the `start` tokens that its cache holds. May be empty.
  struct Piece {
    std::span<const int32_t> ids;
    int64_t start = 0;
  };
  struct Branch;
  struct Step;

  LikelihoodScorer(const Model& model, int64_t rows, const ThreadPool& pool)
      : model_(model), pool_(pool), rows_(rows), cached_(static_cast<size_t>(rows)) {}
  Status check(std::span<const EndingGroup> groups) const;
  Result<Graph> graph_of(int64_t tokens, bool all_logits);
  Result<const Program*> program(int64_t tokens, bool all_logits);
  Status run(const Program& program, int64_t tokens, std::span<const Piece> pieces);
  Status read_prefixes(std::span<const EndingGroup> groups);
  Status score_branches(std::span<const Branch* const> branches, std::vector<std::vector<double>>& result);
  void add_ending(std::span<const Branch* const> branches, const Step& step, size_t e, ConstTensorView logits,
                  std::vector<std::vector<double>>& result);
  static std::vector<Branch> branches_of(const EndingGroup& group, size_t number);

  const Model& model_;
  const ThreadPool& pool_;
  int64_t rows_;
  int64_t tokens_ = 0, capacity_ = 0;
  PassContext passes_;
  VariableLayout variables_;
  std::unique_ptr<Arena> arena_;
  std::vector<Entry> programs_;
  std::vector<std::vector<int32_t>> cached_;       // [rows] the tokens that each row's cache holds
  std::vector<int32_t> ids_, positions_, starts_;  // of one run, padded
  std::vector<int32_t> targets_;                   // [rows·tokens]
  std::vector<float> losses_;                      // [rows·tokens]
};

}  // namespace ingot
