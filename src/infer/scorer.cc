#include "infer/scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "optim/step_graph.h"
#include "train/model_directory.h"
#include "train/programs.h"

namespace ingot {
namespace {

// Rows of a batch are as many as make about so many tokens: short windows alone would not fill the machine.
constexpr int64_t kBatchTokens = 512;

struct Document {
  std::vector<int32_t> ids;
  int64_t predicted_bytes = 0;  // of its text
};

Result<Document> encode(const Model& model, const Tokenizer& tokenizer, const std::string& text,
                        const ScoringOptions& options) {
  Document document;
  document.ids = tokenizer.encode(text, {.parse_special = false, .add_special = true});
  for (const int32_t id : document.ids)
    if (id >= model.config().vocab_size)
      return input_error("the tokenizer's id {} is outside the model's vocabulary of {}: they do not belong together",
                         id, model.config().vocab_size);
  document.predicted_bytes = static_cast<int64_t>(text.size());
  // Nothing predicts the first token, nor, where windows do not overlap, the first one of each.
  const size_t every = options.stride == options.window ? static_cast<size_t>(options.window) : document.ids.size();
  for (size_t i = 0; i < document.ids.size(); i += every)
    if (!tokenizer.is_special(document.ids[i]))
      document.predicted_bytes -= static_cast<int64_t>(tokenizer.decode({&document.ids[i], 1}).size());
  return document;
}

EvaluationResult overall_of(const std::vector<DocumentScore>& documents) {
  EvaluationResult result;
  double nats = 0;
  int64_t bytes = 0;
  for (const DocumentScore& document : documents) {
    nats += document.nats;
    bytes += document.bytes;
    result.tokens += document.tokens;
  }
  result.loss = nats / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.loss);
  result.bits_per_byte =
      bytes > 0 ? nats / std::numbers::ln2 / static_cast<double>(bytes) : std::numeric_limits<double>::quiet_NaN();
  return result;
}

}  // namespace

SlidingWindows::SlidingWindows(std::vector<int32_t> ids, int64_t window, int64_t stride)
    : ids_(std::move(ids)), window_(window), stride_(stride) {
  INGOT_CHECK(window >= 1 && stride >= 1 && stride <= window, "windows of {} tokens, {} apart", window, stride);
}

int64_t SlidingWindows::count() const {
  const auto tokens = static_cast<int64_t>(ids_.size());
  if (tokens < 2) return 0;
  return tokens <= window_ ? 1 : 1 + (tokens - window_ + stride_ - 1) / stride_;
}

int64_t SlidingWindows::length(int64_t index) const {
  return std::min(window_, static_cast<int64_t>(ids_.size()) - index * stride_);
}

Status SlidingWindows::fill(int64_t index, const RowView& row) const {
  const int64_t begin = index * stride_;
  std::copy_n(ids_.begin() + begin, row.ids.size(), row.ids.begin());
  fill_as_one_document(row);
  // Target t is token t + 1 of the window; the tokens before this one were predicted.
  const int64_t first_new = index == 0 ? 0 : window_ - stride_;
  std::fill_n(row.targets.begin(), std::max<int64_t>(0, first_new - 1), kIgnored);
  return {};
}

uint64_t SlidingWindows::fingerprint() const {
  StreamHash hash;
  hash.add(std::as_bytes(std::span(ids_)));
  hash.add(std::as_bytes(std::span(&window_, 1)));
  hash.add(std::as_bytes(std::span(&stride_, 1)));
  return hash.digest();
}

Result<ScoringOptions> resolve_scoring(const Model& model, ScoringOptions options) {
  const int64_t context = model.config().max_position_embeddings;
  if (options.window == 0) options.window = context;
  if (options.window < 2 || options.window > context)
    return usage_error("a window of {} tokens; expected 2 to {}, the model's context", options.window, context);
  if (options.stride == 0) options.stride = std::max<int64_t>(1, options.window / 2);
  if (options.stride < 1 || options.stride > options.window)
    return usage_error("a stride of {} tokens; expected 1 to {}, the window", options.stride, options.window);
  return options;
}

Result<std::unique_ptr<Scorer>> Scorer::create(const Model& model, int64_t rows, int64_t tokens, const ThreadPool& pool,
                                               const MixedPrecision& precision) {
  INGOT_TRY(model.check_length(tokens, "evaluation"));
  std::unique_ptr<Scorer> scorer(new Scorer(model, pool));
  scorer->passes_.precision = precision;
  INGOT_ASSIGN(Graph graph, scorer->graph_of(rows, tokens));
  add_variables_of(graph, scorer->variables_);
  INGOT_ASSIGN(auto program, Program::create(std::move(graph), scorer->variables_, pool.threads()));
  INGOT_ASSIGN(Arena arena, make_arena(scorer->variables_, *program, pool));
  scorer->arena_ = std::make_unique<Arena>(std::move(arena));
  scorer->programs_.push_back({rows, tokens, std::move(program)});
  return scorer;
}

Result<Graph> Scorer::graph_of(int64_t rows, int64_t tokens) {
  StepGraphOptions options;
  options.rows = rows;
  options.tokens = tokens;
  return evaluation_graph(model_, options, passes_);
}

Result<const Program*> Scorer::program(int64_t rows, int64_t tokens) {
  for (const Entry& entry : programs_)
    if (entry.rows == rows && entry.tokens == tokens) return static_cast<const Program*>(entry.program.get());
  INGOT_ASSIGN(Graph graph, graph_of(rows, tokens));
  INGOT_ASSIGN(auto program, Program::create(std::move(graph), variables_, pool_.threads()));
  INGOT_TRY(arena_->reserve(program->plan().workspace_bytes, program->scratch_bytes(), pool_));
  programs_.push_back({rows, tokens, std::move(program)});
  return static_cast<const Program*>(programs_.back().program.get());
}

Result<double> Scorer::loss(const Batch& batch, float loss_scale) {
  INGOT_ASSIGN(const Program* evaluation, program(batch.rows, batch.sequence_length));
  return run_loss_program(*evaluation, *arena_, pool_, batch, loss_scale, {.batch = batch.rows});
}

Result<TextScore> score_documents(const LoadedModel& model, const std::vector<std::string>& documents,
                                  const ScoringOptions& given, const ThreadPool& pool) {
  INGOT_ASSIGN(const ScoringOptions options, resolve_scoring(model.model, given));
  INGOT_ASSIGN(const Tokenizer tokenizer, tokenizer_of(model));
  TextScore score;
  std::vector<std::shared_ptr<const SequenceSource>> sources;
  int64_t longest = 0, most_windows = 1;
  for (const std::string& text : documents) {
    INGOT_ASSIGN(Document document, encode(model.model, tokenizer, text, options));
    auto source = std::make_shared<SlidingWindows>(std::move(document.ids), options.window, options.stride);
    if (source->count() > 0) longest = std::max(longest, source->length(0));
    most_windows = std::max(most_windows, source->count());
    score.documents.push_back({.bytes = source->count() > 0 ? document.predicted_bytes : 0});
    sources.push_back(std::move(source));
  }
  if (longest == 0) return input_error("the text has no token to predict: give at least two tokens of text");
  EvaluationOptions batches_options;
  batches_options.sequence_length = options.window;
  const int64_t tokens = padded_length(longest, options.window);
  const int64_t rows = std::clamp<int64_t>(kBatchTokens / tokens, 1, most_windows);
  INGOT_ASSIGN(auto scorer, Scorer::create(model.model, rows, tokens, pool, options.precision));
  INGOT_TRY(load_weights(model.directory, model.model, scorer->arena()));
  if (options.weights == WeightFormat::int8) {
    INGOT_TRY(round_weights_to_int8(model.model, scorer->arena(), pool));
    fill_weight_copies(scorer->arena());
  }
  const auto loss_of = [&](const Batch& batch, float scale) { return scorer->loss(batch, scale); };
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i]->count() == 0) continue;
    batches_options.batch_size = sources[i]->count() < rows ? 1 : rows;  // two sizes, so that programs stay few
    INGOT_ASSIGN(EvaluationBatches batches, EvaluationBatches::create({sources[i]}, batches_options));
    INGOT_ASSIGN(const EvaluationResult result, evaluate(loss_of, batches));
    score.documents[i].tokens = result.tokens;
    score.documents[i].nats = result.loss * static_cast<double>(result.tokens);
  }
  score.overall = overall_of(score.documents);
  return score;
}

}  // namespace ingot
