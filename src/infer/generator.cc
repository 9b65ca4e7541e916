#include "infer/generator.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "passes/pipeline.h"

namespace ingot {
namespace {

// A prompt goes in batches of these lengths, so that a few programs serve every prompt and their workspace stays small.
constexpr std::array<int64_t, 4> kBatches = {1, 16, 64, 256};

// The batch for the next of `left` tokens where the cache has room for `room`: it holds all of them with padding, or is
// the largest that fits.
int64_t batch_for(int64_t left, int64_t room) {
  int64_t best = kBatches.front();
  for (const int64_t batch : kBatches) {
    if (batch > room) break;
    best = batch;
    if (batch >= left) break;
  }
  return best;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

ConstTensorView view_of(const std::vector<int32_t>& values, const Shape& shape) {
  return {reinterpret_cast<const std::byte*>(values.data()), DType::i32, shape};
}
ConstTensorView view_of(const int32_t& value) {
  return {reinterpret_cast<const std::byte*>(&value), DType::i32, {1}};
}

}  // namespace

Result<Graph> generation_graph(const Model& model, const CachedBuildOptions& options, PassContext& context) {
  Graph graph;
  graph.name = "generation";
  Builder builder(graph);
  model.build_cached(builder, options);
  INGOT_TRY(run_passes(graph, forward_passes(), context));
  INGOT_TRY(run_passes(graph, backward_passes(), context));
  graph.remove_dead_nodes();
  return graph.compacted();
}

Result<std::unique_ptr<Generator>> Generator::create(const Model& model, int64_t tokens, const ThreadPool& pool) {
  INGOT_CHECK(tokens >= 1, "a generator for {} tokens", tokens);
  std::unique_ptr<Generator> generator(new Generator(model, pool));
  generator->context_ = std::min(tokens, model.config().max_position_embeddings);
  // Room for the padding of the last batch of a prompt.
  const int64_t grain = batch_for(generator->context_, kBatches.back());
  generator->capacity_ = (generator->context_ + grain - 1) / grain * grain;
  INGOT_ASSIGN(Graph step, generator->graph_of(1));
  add_variables_of(step, generator->variables_);
  INGOT_ASSIGN(auto program, Program::create(std::move(step), generator->variables_, pool.threads()));
  INGOT_ASSIGN(Arena arena, make_arena(generator->variables_, *program, pool));
  generator->arena_ = std::make_unique<Arena>(std::move(arena));
  generator->programs_.push_back({1, std::move(program)});
  return generator;
}

Result<Graph> Generator::graph_of(int64_t tokens) {
  CachedBuildOptions options;
  options.tokens = tokens;
  options.capacity = capacity_;
  options.last_input = tokens > 1;
  return generation_graph(model_, options, passes_);
}

Result<const Program*> Generator::program(int64_t tokens) {
  const auto found = std::ranges::find(programs_, tokens, &Entry::tokens);
  if (found != programs_.end()) return static_cast<const Program*>(found->program.get());
  INGOT_ASSIGN(Graph graph, graph_of(tokens));
  INGOT_ASSIGN(auto program, Program::create(std::move(graph), variables_, pool_.threads()));
  INGOT_TRY(arena_->reserve(program->plan().workspace_bytes, program->scratch_bytes(), pool_));
  programs_.push_back({tokens, std::move(program)});
  return static_cast<const Program*>(programs_.back().program.get());
}

Status Generator::prepare(int64_t tokens) {
  for (int64_t done = 0; done < tokens;) {
    const int64_t batch = batch_for(tokens - done, capacity_ - length_ - done);
    if (auto made = program(batch); !made.ok()) return made.error();
    done += batch;
  }
  return {};
}

Status Generator::check(std::span<const int32_t> ids) const {
  INGOT_CHECK(!ids.empty(), "no tokens to feed");
  if (length_ + static_cast<int64_t>(ids.size()) > context_)
    return usage_error("a sequence of {} tokens, the model's context is {}; use a shorter prompt",
                       length_ + static_cast<int64_t>(ids.size()), context_);
  for (const int32_t id : ids)
    if (id < 0 || id >= model_.config().vocab_size)
      return input_error(
          "the token {} is outside the model's vocabulary of {}: tokenizer and model do not belong together", id,
          model_.config().vocab_size);
  return {};
}

Result<std::span<const float>> Generator::feed(std::span<const int32_t> ids) {
  INGOT_TRY(check(ids));
  const Program* last = nullptr;
  while (!ids.empty()) {
    const int64_t batch = batch_for(static_cast<int64_t>(ids.size()), capacity_ - length_);
    const auto used = std::min(ids.size(), static_cast<size_t>(batch));
    INGOT_ASSIGN(last, program(batch));
    INGOT_TRY(run(*last, batch, ids.first(used)));
    length_ += static_cast<int64_t>(used);
    ids = ids.subspan(used);
  }
  return last->output(*arena_, "logits").span<float>();
}

// Padding repeats the last token behind it; what it leaves in the caches is never seen, and written over later.
Status Generator::run(const Program& program, int64_t tokens, std::span<const int32_t> ids) {
  ids_.assign(ids.begin(), ids.end());
  ids_.resize(static_cast<size_t>(tokens), ids.back());
  positions_.resize(static_cast<size_t>(tokens));
  const int64_t last_position = length_ + static_cast<int64_t>(ids.size()) - 1;
  for (int64_t t = 0; t < tokens; ++t)
    positions_[static_cast<size_t>(t)] = static_cast<int32_t>(std::min(length_ + t, last_position));
  const auto start = static_cast<int32_t>(length_), last = static_cast<int32_t>(ids.size()) - 1;
  const Shape shape{1, tokens};
  const std::array<ProgramInput, 4> inputs{{{"ids", view_of(ids_, shape)},
                                            {"positions", view_of(positions_, shape)},
                                            {"start", view_of(start)},
                                            {"last", view_of(last)}}};
  return program.run(*arena_, pool_, inputs, {});
}

Result<Generation> generate(Generator& generator, std::span<const int32_t> prompt, const GenerateOptions& options,
                            const std::function<Status(int32_t token)>& on_token) {
  INGOT_TRY(check_sampling(options.sampling));
  if (options.max_tokens < 0) return usage_error("{} tokens to generate; expected 0 or more", options.max_tokens);
  const auto length = static_cast<int64_t>(prompt.size());
  if (length > generator.context())
    return usage_error("the prompt has {} tokens, the model's context is {}; use a shorter prompt", length,
                       generator.context());
  INGOT_CHECK(generator.length() == 0, "a generator with {} tokens is to continue a prompt", generator.length());
  INGOT_TRY(generator.prepare(length));
  Generation result;
  Sampler sampler(options.sampling);
  auto start = std::chrono::steady_clock::now();
  INGOT_ASSIGN(std::span<const float> logits, generator.feed(prompt));
  result.prefill_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  while (static_cast<int64_t>(result.tokens.size()) < options.max_tokens) {
    INGOT_ASSIGN(const int32_t token, sampler.sample(logits, length + static_cast<int64_t>(result.tokens.size())));
    result.tokens.push_back(token);
    if (on_token) INGOT_TRY(on_token(token));
    if (token == options.eos || static_cast<int64_t>(result.tokens.size()) == options.max_tokens) break;
    if ((result.context_is_full = generator.length() == generator.context())) break;
    INGOT_ASSIGN(logits, generator.feed({&result.tokens.back(), 1}));
  }
  if (result.tokens.size() > 1)
    result.seconds_per_token = seconds_since(start) / static_cast<double>(result.tokens.size() - 1);
  return result;
}

}  // namespace ingot
