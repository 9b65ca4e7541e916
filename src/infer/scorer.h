// Scoring: how well a model predicts text. The evaluation program over windows of documents.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/sequences.h"
#include "infer/loaded_model.h"
#include "infer/weight_format.h"
#include "passes/pass.h"
#include "train/evaluation.h"

namespace ingot {

// One document as windows of `window` tokens, each `stride` tokens behind the one before (1 <= stride <= window). A
// window predicts what no earlier one has predicted: with stride < window every token but the first one, each with at
// least window - stride tokens before it; with stride = window the first token of each window is not predicted, since
// nothing stands before it.
class SlidingWindows final : public SequenceSource {
 public:
  SlidingWindows(std::vector<int32_t> ids, int64_t window, int64_t stride);
  int64_t count() const override;
  int64_t length(int64_t index) const override;
  Status fill(int64_t index, const RowView& row) const override;
  uint64_t fingerprint() const override;

 private:
  std::vector<int32_t> ids_;
  int64_t window_, stride_;
};

// Not thread-safe. Owns the arena with the weights, all zero until its variables are filled (load_weights). Model and
// pool must outlive it.
class Scorer {
 public:
  // For batches of up to `rows` sequences of up to `tokens` tokens. Error: usage where the machine has no memory for
  // it, or the model has no positions for them.
  static Result<std::unique_ptr<Scorer>> create(const Model& model, int64_t rows, int64_t tokens,
                                                const ThreadPool& pool, const MixedPrecision& precision = {});

  const Arena& arena() const { return *arena_; }
  // The loss part of a batch (its sum over counted targets times loss_scale). The program of each shape is compiled at
  // its first use.
  Result<double> loss(const Batch& batch, float loss_scale);

 private:
  Scorer(const Model& model, const ThreadPool& pool) : model_(model), pool_(pool) {}
  Result<const Program*> program(int64_t rows, int64_t tokens);
  Result<Graph> graph_of(int64_t rows, int64_t tokens);

  struct Entry {
    int64_t rows, tokens;
    std::unique_ptr<Program> program;
  };
  const Model& model_;
  const ThreadPool& pool_;
  PassContext passes_;
  VariableLayout variables_;
  std::unique_ptr<Arena> arena_;
  std::vector<Entry> programs_;
};

struct ScoringOptions {
  int64_t window = 0;  // 0: the model's context
  int64_t stride = 0;  // 0: half a window
  WeightFormat weights = WeightFormat::fp32;
  MixedPrecision precision = {};
};

struct DocumentScore {
  double nats = 0;     // of its predicted tokens together
  int64_t tokens = 0;  // predicted; 0 for a document of less than two tokens
  int64_t bytes = 0;   // of text that these stand for
};
struct TextScore {
  EvaluationResult overall;
  std::vector<DocumentScore> documents;  // one a document, in their order
};

// The options with their defaults for a model. Error: usage for a window or stride that does not fit it.
Result<ScoringOptions> resolve_scoring(const Model& model, ScoringOptions options);

// Loss, perplexity and bits per byte of documents, each with the specials that the tokenizer's post-processor adds. The
// mean is over predicted tokens; bits per byte are over the bytes of text that these stand for. Errors: usage for a
// window or stride that does not fit the model; input where nothing is predicted.
Result<TextScore> score_documents(const LoadedModel& model, const std::vector<std::string>& documents,
                                  const ScoringOptions& options, const ThreadPool& pool);

}  // namespace ingot
