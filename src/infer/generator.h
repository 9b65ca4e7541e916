// Generator: a model that reads tokens one behind the other and says what may follow, with a cache of keys and values;
// and the loop that makes text of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "infer/loaded_model.h"
#include "infer/sampler.h"
#include "passes/pass.h"

namespace ingot {

// Model::build_cached run through the pass pipeline.
Result<Graph> generation_graph(const Model& model, const CachedBuildOptions& options, PassContext& context);

// One sequence; one thread at a time. Owns the arena (weights under their Hugging Face names, and the caches). Model
// and pool must outlive it.
class Generator {
 public:
  // For sequences of up to `tokens` tokens, at most the model's context. Compiles the step of one token; all weights
  // are zero until the arena's variables are filled (load_weights). Error: usage where the machine has no memory for
  // it.
  static Result<std::unique_ptr<Generator>> create(const Model& model, int64_t tokens, const ThreadPool& pool);

  const Arena& arena() const { return *arena_; }
  int64_t context() const { return context_; }  // tokens that a sequence may have
  int64_t length() const { return length_; }    // tokens of the sequence so far
  void clear() { length_ = 0; }

  // Appends ids (at least one) to the sequence. The logits [vocab_size] of what follows the last one, valid until the
  // next call. Several ids go in a few batches, whose programs are compiled at their first use. Error (usage): the
  // sequence would be longer than context(), or the vocabulary has no such id.
  Result<std::span<const float>> feed(std::span<const int32_t> ids);
  // Makes the programs that feed() will need for so many tokens more.
  Status prepare(int64_t tokens);

  const Program& step_program() const { return *programs_.front().program; }

 private:
  struct Entry {
    int64_t tokens;
    std::unique_ptr<Program> program;
  };
  Generator(const Model& model, const ThreadPool& pool) : model_(model), pool_(pool) {}
  Status check(std::span<const int32_t> ids) const;
  Result<Graph> graph_of(int64_t tokens);
  Result<const Program*> program(int64_t tokens);
  Status run(const Program& program, int64_t tokens, std::span<const int32_t> ids);

  const Model& model_;
  const ThreadPool& pool_;
  PassContext passes_;
  VariableLayout variables_;
  std::unique_ptr<Arena> arena_;
  std::vector<Entry> programs_;  // the step of one token first
  int64_t context_ = 0, capacity_ = 0, length_ = 0;
  std::vector<int32_t> ids_, positions_;  // of one run, padded
};

struct GenerateOptions {
  int64_t max_tokens = 128;
  SamplingOptions sampling;
  std::optional<int32_t> eos;  // generation ends with this token, which is the last one of the result
};

struct Generation {
  std::vector<int32_t> tokens;   // the new ones
  bool context_is_full = false;  // why it ended before max_tokens, where not by EOS
  double prefill_seconds = 0;    // from the prompt to the first new token's logits, without compiling
  double seconds_per_token = 0;  // of the tokens behind the first
};

// Continues the prompt (at least one token) in a cleared generator; tells on_token of each new token at once. Error:
// usage for options outside their range and for a prompt that is longer than the context; on_token's error ends it.
Result<Generation> generate(Generator& generator, std::span<const int32_t> prompt, const GenerateOptions& options,
                            const std::function<Status(int32_t token)>& on_token = {});

}  // namespace ingot
