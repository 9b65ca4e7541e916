// Generator: a model that reads tokens one behind the other and says what may follow, with a cache of keys and values,
// of one sequence or of several at once; and the loop that makes text of it.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "infer/loaded_model.h"
#include "infer/sampler.h"
#include "infer/weight_format.h"
#include "passes/pass.h"

namespace ingot {

// Model::build_cached run through the pass pipeline.
Result<Graph> generation_graph(const Model& model, const CachedBuildOptions& options, WeightFormat weights,
                               PassContext& context);

struct GeneratorOptions {
  int64_t tokens = 1;     // of a sequence, at most; no more than the model's context
  int64_t sequences = 1;  // that are read side by side
  WeightFormat weights = WeightFormat::fp32;
  MixedPrecision precision = {};
};

using Tokens = std::span<const int32_t>;

// One thread at a time. Owns the arena (weights under their Hugging Face names, or those of passes/quantize_weights.h
// and transpose_weights.h, and the caches). Model and pool must outlive it.
class Generator {
 public:
  // Compiles the step of one token; all weights are zero until the arena's variables are filled (load_weights_as_kept).
  // Error: usage where the machine has no memory for it.
  static Result<std::unique_ptr<Generator>> create(const Model& model, const GeneratorOptions& options,
                                                   const ThreadPool& pool);

  const Arena& arena() const { return *arena_; }
  int64_t context() const { return context_; }  // tokens that a sequence may have
  int64_t sequences() const { return static_cast<int64_t>(lengths_.size()); }
  // Tokens of a sequence so far.
  int64_t length(int64_t sequence = 0) const { return lengths_[static_cast<size_t>(sequence)]; }
  void clear() { std::ranges::fill(lengths_, 0); }

  // Appends pieces[b] to sequence b, for each of the sequences; a piece may be empty. The logits [sequences,
  // vocab_size] of what follows the last token of each, valid until the next call; the row of an empty piece stays as
  // it was. Long pieces go in a few batches, whose programs are compiled at their first use. Errors: usage where a
  // sequence would be longer than context(), input where the vocabulary has no such id.
  Result<std::span<const float>> feed(std::span<const Tokens> pieces);
  // The same for a generator of one sequence; at least one id.
  Result<std::span<const float>> feed(Tokens ids) { return feed({&ids, 1}); }
  // Makes the programs that feed() will need for so many tokens more of the longest sequence.
  Status prepare(int64_t tokens);

  const Program& step_program() const { return *programs_.front().program; }

 private:
  struct Entry {
    int64_t tokens;
    std::unique_ptr<Program> program;
  };
  Generator(const Model& model, const ThreadPool& pool) : model_(model), pool_(pool) {}
  Status check(std::span<const Tokens> pieces) const;
  int64_t room() const;  // of the caches, behind the longest sequence
  Result<Graph> graph_of(int64_t tokens);
  Result<const Program*> program(int64_t tokens);
  // Runs the first tokens of each piece, as many as the program takes, and drops them from the pieces.
  Status run(const Program& program, int64_t tokens, std::span<Tokens> pieces);
  void place(int64_t sequence, int64_t tokens, Tokens ids);

  const Model& model_;
  const ThreadPool& pool_;
  WeightFormat weights_ = WeightFormat::fp32;
  PassContext passes_;
  VariableLayout variables_;
  std::unique_ptr<Arena> arena_;
  std::vector<Entry> programs_;  // the step of one token first
  int64_t context_ = 0, capacity_ = 0;
  std::vector<int64_t> lengths_;
  std::vector<float> logits_;                              // [sequences, vocab_size]
  std::vector<int32_t> ids_, positions_, starts_, lasts_;  // of one run, padded
};

struct GenerateOptions {
  int64_t max_tokens = 128;
  SamplingOptions sampling;
  std::vector<int32_t> ends;  // a sequence ends with any of these tokens, which is the last one of the result

  bool is_end(int32_t token) const { return std::ranges::find(ends, token) != ends.end(); }
};

struct Generation {
  std::vector<int32_t> tokens;   // the new ones
  bool context_is_full = false;  // why it ended before max_tokens, where not by EOS
  double prefill_seconds = 0;    // from the prompt to the first new token's logits, without compiling
  double seconds_per_token = 0;  // of the tokens behind the first
};

// Continues the prompts (at most as many as the generator has sequences, each of at least one token) in a cleared
// generator, all of them a token at a time; tells on_token of each new token at once. Prompt i draws with the seed
// sampling.seed + i, as it would alone. Errors: usage for options outside their range and for a prompt that is longer
// than the context; on_token's error ends all.
Result<std::vector<Generation>> generate(Generator& generator, std::span<const std::vector<int32_t>> prompts,
                                         const GenerateOptions& options,
                                         const std::function<Status(size_t prompt, int32_t token)>& on_token = {});
// The same for one.
Result<Generation> generate(Generator& generator, const std::vector<int32_t>& prompt, const GenerateOptions& options,
                            const std::function<Status(int32_t token)>& on_token = {});

}  // namespace ingot
