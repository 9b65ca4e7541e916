#include "infer/generator.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "passes/pipeline.h"
#include "passes/quantize_weights.h"
#include "passes/transpose_weights.h"

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

ProgramInput input_of(const char* name, const std::vector<int32_t>& values, const Shape& shape) {
  return {name, {reinterpret_cast<const std::byte*>(values.data()), DType::i32, shape}};
}

int64_t longest(std::span<const Tokens> pieces) {
  size_t most = 0;
  for (const Tokens& piece : pieces) most = std::max(most, piece.size());
  return static_cast<int64_t>(most);
}

}  // namespace

Result<Graph> generation_graph(const Model& model, const CachedBuildOptions& options, WeightFormat weights,
                               PassContext& context) {
  Graph graph;
  graph.name = "generation";
  Builder builder(graph);
  model.build_cached(builder, options);
  if (weights == WeightFormat::transposed) transpose_weights(graph, context);
  if (weights == WeightFormat::int8) quantize_weights(graph, context);
  INGOT_TRY(run_passes(graph, forward_passes(), context));
  INGOT_TRY(run_passes(graph, backward_passes(), context));
  graph.remove_dead_nodes();
  graph.remove_unread_sources();  // of weights that are read in 16 bits alone
  return graph.compacted();
}

Result<std::unique_ptr<Generator>> Generator::create(const Model& model, const GeneratorOptions& options,
                                                     const ThreadPool& pool) {
  INGOT_CHECK(options.tokens >= 1 && options.sequences >= 1, "a generator for {} sequences of {} tokens",
              options.sequences, options.tokens);
  std::unique_ptr<Generator> generator(new Generator(model, pool));
  generator->weights_ = options.weights;
  generator->passes_.precision = options.precision;
  generator->context_ = std::min(options.tokens, model.config().max_position_embeddings);
  // Room for the padding of the last batch of a prompt; beside longer ones also a full sequence is padded.
  const int64_t grain = batch_for(generator->context_, kBatches.back());
  generator->capacity_ =
      options.sequences > 1 ? generator->context_ + kBatches.back() : (generator->context_ + grain - 1) / grain * grain;
  generator->lengths_.resize(static_cast<size_t>(options.sequences));
  generator->logits_.resize(static_cast<size_t>(options.sequences * model.config().vocab_size));
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
  options.batch = sequences();
  options.tokens = tokens;
  options.capacity = capacity_;
  options.last_input = tokens > 1;
  return generation_graph(model_, options, weights_, passes_);
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

int64_t Generator::room() const {
  return capacity_ - *std::ranges::max_element(lengths_);
}

Status Generator::prepare(int64_t tokens) {
  for (int64_t done = 0; done < tokens;) {
    const int64_t batch = batch_for(tokens - done, room() - done);
    if (auto made = program(batch); !made.ok()) return made.error();
    done += batch;
  }
  return {};
}

Status Generator::check(std::span<const Tokens> pieces) const {
  INGOT_CHECK(static_cast<int64_t>(pieces.size()) == sequences() && longest(pieces) > 0,
              "{} pieces of up to {} tokens for {} sequences", pieces.size(), longest(pieces), sequences());
  for (size_t b = 0; b < pieces.size(); ++b) {
    const int64_t length = lengths_[b] + static_cast<int64_t>(pieces[b].size());
    if (length > context_)
      return usage_error("a sequence of {} tokens, the model's context is {}; use a shorter prompt", length, context_);
    for (const int32_t id : pieces[b])
      if (id < 0 || id >= model_.config().vocab_size)
        return input_error(
            "the token {} is outside the model's vocabulary of {}: tokenizer and model do not belong together", id,
            model_.config().vocab_size);
  }
  return {};
}

Result<std::span<const float>> Generator::feed(std::span<const Tokens> pieces) {
  INGOT_TRY(check(pieces));
  std::vector<Tokens> left(pieces.begin(), pieces.end());
  while (longest(left) > 0) {
    const int64_t batch = batch_for(longest(left), room());
    INGOT_ASSIGN(const Program* next, program(batch));
    INGOT_TRY(run(*next, batch, left));
  }
  return std::span<const float>(logits_);
}

// Padding repeats the last token behind it; what it leaves in the caches is never seen, and written over later.
void Generator::place(int64_t sequence, int64_t tokens, Tokens ids) {
  const int64_t length = lengths_[static_cast<size_t>(sequence)], count = static_cast<int64_t>(ids.size());
  const int64_t last_position = std::max<int64_t>(0, length + count - 1);
  for (int64_t t = 0; t < tokens; ++t) {
    ids_.push_back(count == 0 ? 0 : ids[static_cast<size_t>(std::min(t, count - 1))]);
    positions_.push_back(static_cast<int32_t>(std::min(length + t, last_position)));
  }
  starts_.push_back(static_cast<int32_t>(length));
  lasts_.push_back(static_cast<int32_t>(sequence * tokens + std::max<int64_t>(0, count - 1)));
}

Status Generator::run(const Program& program, int64_t tokens, std::span<Tokens> pieces) {
  for (std::vector<int32_t>* input : {&ids_, &positions_, &starts_, &lasts_}) input->clear();
  const auto used = [&](const Tokens& piece) { return std::min(piece.size(), static_cast<size_t>(tokens)); };
  for (size_t b = 0; b < pieces.size(); ++b) place(static_cast<int64_t>(b), tokens, pieces[b].first(used(pieces[b])));
  const std::array<ProgramInput, 4> inputs{
      input_of("ids", ids_, {sequences(), tokens}), input_of("positions", positions_, {sequences(), tokens}),
      input_of("start", starts_, {sequences()}), input_of("last", lasts_, {sequences()})};
  INGOT_TRY(program.run(*arena_, pool_, inputs, {}));

  const auto logits = program.output(*arena_, "logits").span<float>();
  const size_t width = logits.size() / pieces.size();
  for (size_t b = 0; b < pieces.size(); ++b) {
    const size_t count = used(pieces[b]);
    if (count == 0) continue;
    std::ranges::copy(logits.subspan(b * width, width), logits_.begin() + static_cast<std::ptrdiff_t>(b * width));
    lengths_[b] += static_cast<int64_t>(count);
    pieces[b] = pieces[b].subspan(count);
  }
  return {};
}

namespace {

// One prompt's way through generate().
struct Course {
  Sampler sampler;
  int64_t position;  // of the next token
  Generation result;
  bool ended = false;
};

Status check_prompts(const Generator& generator, std::span<const std::vector<int32_t>> prompts,
                     const GenerateOptions& options) {
  INGOT_TRY(check_sampling(options.sampling));
  if (options.max_tokens < 0) return usage_error("{} tokens to generate; expected 0 or more", options.max_tokens);
  INGOT_CHECK(static_cast<int64_t>(prompts.size()) <= generator.sequences(), "{} prompts for {} sequences",
              prompts.size(), generator.sequences());
  for (size_t i = 0; i < prompts.size(); ++i) {
    INGOT_CHECK(!prompts[i].empty() && generator.length(static_cast<int64_t>(i)) == 0,
                "a prompt of {} tokens for a sequence of {}", prompts[i].size(),
                generator.length(static_cast<int64_t>(i)));
    if (static_cast<int64_t>(prompts[i].size()) > generator.context())
      return usage_error("the prompt has {} tokens, the model's context is {}; use a shorter prompt", prompts[i].size(),
                         generator.context());
  }
  return {};
}

}  // namespace

Result<std::vector<Generation>> generate(Generator& generator, std::span<const std::vector<int32_t>> prompts,
                                         const GenerateOptions& options,
                                         const std::function<Status(size_t prompt, int32_t token)>& on_token) {
  INGOT_TRY(check_prompts(generator, prompts, options));
  std::vector<Tokens> pieces(static_cast<size_t>(generator.sequences()));
  std::vector<Course> courses;
  for (size_t i = 0; i < prompts.size(); ++i) {
    pieces[i] = prompts[i];
    SamplingOptions sampling = options.sampling;
    sampling.seed += i;
    courses.push_back({Sampler(sampling), static_cast<int64_t>(prompts[i].size()), {}});
  }
  INGOT_TRY(generator.prepare(longest(pieces)));
  auto start = Clock::now();
  INGOT_ASSIGN(std::span<const float> logits, generator.feed(pieces));
  for (Course& course : courses) {
    course.result.prefill_seconds = seconds_since(start);
    course.ended = options.max_tokens == 0;
  }
  const size_t width = logits.size() / pieces.size();

  start = Clock::now();
  const auto advance = [&](size_t i) -> Status {
    Course& course = courses[i];
    INGOT_ASSIGN(const int32_t token, course.sampler.sample(logits.subspan(i * width, width), course.position++));
    std::vector<int32_t>& tokens = course.result.tokens;
    tokens.push_back(token);
    if (on_token) INGOT_TRY(on_token(i, token));
    const bool enough = options.is_end(token) || static_cast<int64_t>(tokens.size()) == options.max_tokens;
    course.result.context_is_full = !enough && generator.length(static_cast<int64_t>(i)) == generator.context();
    course.ended = enough || course.result.context_is_full;
    if (tokens.size() > 1)
      course.result.seconds_per_token = seconds_since(start) / static_cast<double>(tokens.size() - 1);
    pieces[i] = Tokens(&tokens.back(), 1);
    return {};
  };
  while (!std::ranges::all_of(courses, &Course::ended)) {
    for (size_t i = 0; i < courses.size(); ++i) {
      pieces[i] = {};
      if (!courses[i].ended) INGOT_TRY(advance(i));
      if (courses[i].ended) pieces[i] = {};
    }
    if (longest(pieces) == 0) continue;
    INGOT_ASSIGN(logits, generator.feed(pieces));
  }
  std::vector<Generation> results;
  for (Course& course : courses) results.push_back(std::move(course.result));
  return results;
}

Result<Generation> generate(Generator& generator, const std::vector<int32_t>& prompt, const GenerateOptions& options,
                            const std::function<Status(int32_t token)>& on_token) {
  const auto tell = [&](size_t, int32_t token) { return on_token ? on_token(token) : Status(); };
  INGOT_ASSIGN(auto results, generate(generator, {&prompt, 1}, options, tell));
  return std::move(results.front());
}

}  // namespace ingot
