#include "train/setup.h"

#include <chrono>

#include "base/log.h"
#include "data/build.h"
#include "data/documents.h"
#include "data/encoder.h"
#include "data/shards.h"

namespace ingot {
namespace {

// Text beyond this is not read for training a tokenizer: merges hardly change any more.
constexpr uint64_t kTokenizerTextBytes = uint64_t{4} << 30;

SourceSpec spec_of(const DataSource& source, bool weighted) {
  SourceSpec spec{source.path, std::nullopt, source.text_key, source.template_text, std::nullopt};
  if (weighted) spec.weight = source.weight;
  return spec;
}

// Weights matter only where they differ: equal ones mean that every source is seen once an epoch.
bool has_weights_of_its_own(const std::vector<DataSource>& sources) {
  for (const DataSource& source : sources)
    if (source.weight != sources.front().weight) return true;
  return false;
}

Result<std::vector<std::string>> read_documents(const std::vector<DataSource>& sources) {
  std::vector<std::string> texts;
  uint64_t bytes = 0;
  TextEncoder bytes_alone;  // long files may be cut anywhere: the pieces are joined again
  bytes_alone.encode = [](std::string_view text, std::vector<int32_t>& ids) {
    ids.insert(ids.end(), text.begin(), text.end());
  };
  for (const DataSource& source : sources) {
    const SourceSpec spec = spec_of(source, false);
    INGOT_ASSIGN(SourceFiles files, find_source_files(spec));
    if (files.is_shards)
      return usage_error("tokenizer.train_vocab_size: {} holds token shards, a tokenizer is trained on text",
                         source.path);
    DocumentReader reader(spec, files.files, bytes_alone);
    for (bool continues = false; bytes < kTokenizerTextBytes;) {
      INGOT_ASSIGN(std::optional<Piece> piece, reader.next());
      if (!piece) break;
      RowText row;
      INGOT_TRY(text_of(*piece, row));
      bytes += row.text.size();
      if (continues)
        texts.back() += row.text;
      else
        texts.push_back(std::move(row.text));
      continues = !piece->ends_document;
    }
  }
  return texts;
}

Result<Tokenizer> train_tokenizer(const RunConfig& config, const ThreadPool& pool) {
  const std::string& path = *config.tokenizer.path;
  log_info("training a tokenizer of {} tokens on data.train", *config.tokenizer.train_vocab_size);
  INGOT_ASSIGN(const std::vector<std::string> texts, read_documents(config.data.train));
  const std::vector<std::string_view> documents(texts.begin(), texts.end());
  BpeTrainOptions options;
  options.vocab_size = *config.tokenizer.train_vocab_size;
  INGOT_ASSIGN(Tokenizer tokenizer, train_bpe(documents, options, pool));
  const fs::path parent = fs::path(path).parent_path();
  INGOT_TRY(ingot::create_directories(parent.empty() ? "." : parent));
  INGOT_TRY(remove_abandoned_files(parent.empty() ? "." : parent));
  INGOT_TRY(tokenizer.save(path));
  log_info("wrote {} ({} tokens)", path, tokenizer.vocab_size());
  return tokenizer;
}

bool is_tokenizer_directory(const std::string& path) {
  return Tokenizer::file_in(path).has_value();
}

Result<std::shared_ptr<const ShardSet>> open_source(const DataSource& source, bool weighted,
                                                    const std::optional<TextEncoder>& encoder, const fs::path& cache,
                                                    const ThreadPool& pool) {
  const SourceSpec spec = spec_of(source, weighted);
  if (!encoder) {
    INGOT_ASSIGN(SourceFiles files, find_source_files(spec));
    if (!files.is_shards)
      return usage_error(
          "data: {} is text, and no tokenizer is named; set tokenizer.path (and tokenizer.train_vocab_size to train "
          "one)",
          source.path);
    return ShardSet::open(source.path);
  }
  ShardBuildOptions options;
  auto last = std::chrono::steady_clock::now();
  options.progress = [last](const BuildProgress& p) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::seconds(5)) return;
    last = now;
    log_info("tokenizing: {} of {} MB, {} documents, {} tokens", p.bytes_read >> 20, p.bytes_total >> 20, p.documents,
             p.tokens);
  };
  return open_or_build(spec, *encoder, cache, pool, options);
}

Status add_sequences(const RunConfig& config, const std::optional<TextEncoder>& encoder, const ThreadPool& pool,
                     RunSetup& setup) {
  const SequenceOptions options{config.data.sequence_length, config.data.packing, config.data.document_mask};
  const fs::path cache = fs::path(config.output_dir) / "data";
  const bool weighted = has_weights_of_its_own(config.data.train);
  const bool split = config.data.validation.empty() && config.data.validation_fraction > 0;
  for (const DataSource& source : config.data.train) {
    INGOT_ASSIGN(auto shards, open_source(source, weighted, encoder, cache, pool));
    std::optional<double> weight;
    if (weighted) weight = source.weight;
    if (!split) {
      INGOT_ASSIGN(auto sequences, make_sequences(Segments::all(shards), options));
      setup.train.push_back({std::move(sequences), weight});
      continue;
    }
    INGOT_ASSIGN(Split parts, split_for_validation(shards, config.data.validation_fraction));
    INGOT_ASSIGN(auto sequences, make_sequences(parts.train, options));
    setup.train.push_back({std::move(sequences), weight});
    if (auto held_out = make_sequences(parts.validation, options); held_out.ok())
      setup.validation.push_back(std::move(*held_out));
    else
      log_warning(
          "data.validation_fraction {} of {} holds out less than one sequence of {} tokens; there is no validation on "
          "it",
          config.data.validation_fraction, source.path, config.data.sequence_length);
  }
  for (const DataSource& source : config.data.validation) {
    INGOT_ASSIGN(auto shards, open_source(source, false, encoder, cache, pool));
    INGOT_ASSIGN(auto sequences, make_sequences(Segments::all(shards), options));
    setup.validation.push_back(std::move(sequences));
  }
  for (const MixturePart& part : setup.train) setup.sequences_per_epoch += part.sequences->count();
  return {};
}

}  // namespace

int64_t shard_vocabulary(const RunConfig& config) {
  for (const DataSource& source : config.data.train)
    if (ShardSet::is_shard_directory(source.path))
      if (auto shards = ShardSet::open(source.path); shards.ok()) return (*shards)->index().vocab_size;
  return kNone;
}

bool has_weights(const std::string& directory) {
  const fs::path path = directory;
  return fs::exists(path / "model.safetensors") || fs::exists(path / "model.safetensors.index.json") ||
         fs::exists(path / "manifest.json");
}

Result<std::optional<Tokenizer>> resolve_tokenizer(const RunConfig& config, const ThreadPool& pool) {
  if (config.tokenizer.path) {
    if (fs::exists(*config.tokenizer.path)) {
      INGOT_ASSIGN(Tokenizer tokenizer, Tokenizer::load(*config.tokenizer.path));
      if (config.tokenizer.train_vocab_size && tokenizer.vocab_size() != *config.tokenizer.train_vocab_size)
        log_warning("tokenizer.train_vocab_size is {}, but {} exists already and has {} tokens; it is used as it is",
                    *config.tokenizer.train_vocab_size, *config.tokenizer.path, tokenizer.vocab_size());
      return std::optional(std::move(tokenizer));
    }
    if (!config.tokenizer.train_vocab_size)
      return input_error(
          "tokenizer.path: {} does not exist; name an existing tokenizer.json, or set tokenizer.train_vocab_size to "
          "train one there",
          *config.tokenizer.path);
    INGOT_ASSIGN(Tokenizer tokenizer, train_tokenizer(config, pool));
    return std::optional(std::move(tokenizer));
  }
  if (config.tokenizer.train_vocab_size)
    return usage_error(
        "tokenizer.train_vocab_size is set, but tokenizer.path does not say where the trained tokenizer goes");
  if (config.model.path && is_tokenizer_directory(*config.model.path)) {
    INGOT_ASSIGN(Tokenizer tokenizer, Tokenizer::load(*config.model.path));
    return std::optional(std::move(tokenizer));
  }
  return std::optional<Tokenizer>();
}

Result<Model> resolve_model(const ModelSection& section, int64_t vocab_size) {
  ModelOptions options;
  if (vocab_size != kNone) options.vocab_size = vocab_size;
  const bool has_keys = section.config != "{}" && !section.config.empty();
  if (section.path) {
    const fs::path file = fs::path(*section.path) / "config.json";
    INGOT_ASSIGN(const std::string text, read_file(file));
    INGOT_ASSIGN(Model model, Model::from_json(text, file.string(), options));
    return has_keys ? model.with_overrides(section.config, "model.config") : Result<Model>(std::move(model));
  }
  if (section.preset) {
    INGOT_ASSIGN(Model model, Model::preset(*section.preset, options));
    return has_keys ? model.with_overrides(section.config, "model.config") : Result<Model>(std::move(model));
  }
  if (!has_keys)
    return usage_error(
        "model: nothing says which model; set model.preset, model.path or model.config (with model_type)");
  options.unknown_keys = UnknownKeys::refuse;
  auto model = Model::from_json(section.config, "model.config", options);
  if (!model.ok()) return Error{ErrorKind::usage, model.error().message};
  return std::move(*model);
}

Result<std::string> check_vocabulary(int64_t model_vocab_size, const Tokenizer& tokenizer) {
  const int64_t tokens = tokenizer.vocab_size();
  if (tokens > model_vocab_size)
    return usage_error(
        "the tokenizer has {} tokens, the model's vocab_size is {}: ids beyond it have no embedding; set "
        "model.config.vocab_size to {} or more",
        tokens, model_vocab_size, tokens);
  if (model_vocab_size - tokens > std::max<int64_t>(tokens / 10, 256))
    return fmt::format(
        "the model's vocab_size is {}, the tokenizer has {} tokens: {} rows of the embedding are never used",
        model_vocab_size, tokens, model_vocab_size - tokens);
  return std::string();
}

Result<RunSetup> set_up_run(const RunConfig& config, const ThreadPool& all_threads) {
  if (config.data.train.empty()) return usage_error("data.train is empty: name at least one file, directory or glob");
  const int workers = static_cast<int>(std::max<int64_t>(1, config.data.workers.value_or(all_threads.threads())));
  const ThreadPool pool(workers);
  INGOT_ASSIGN(std::optional<Tokenizer> tokenizer, resolve_tokenizer(config, pool));
  INGOT_ASSIGN(Model model,
               resolve_model(config.model, tokenizer ? tokenizer->vocab_size() : shard_vocabulary(config)));
  if (tokenizer) {
    INGOT_ASSIGN(const std::string warning, check_vocabulary(model.config().vocab_size, *tokenizer));
    if (!warning.empty()) log_warning("{}", warning);
  }
  INGOT_TRY(model.check_length(config.data.sequence_length, "data.sequence_length"));
  RunSetup setup{std::move(tokenizer), std::move(model), {}, {}, 0};
  std::optional<TextEncoder> encoder;
  if (setup.tokenizer) encoder = encoder_of(*setup.tokenizer);
  INGOT_TRY(add_sequences(config, encoder, pool, setup));
  return setup;
}

StreamOptions stream_options(const RunConfig& config, int64_t micro_batch) {
  StreamOptions options;
  options.sequence_length = config.data.sequence_length;
  options.global_batch_size = config.training.global_batch_size;
  options.micro_batch_size = micro_batch;
  options.shuffle = config.data.shuffle;
  options.seed = static_cast<uint64_t>(config.seed);
  options.prefetch_batches = static_cast<int>(config.data.prefetch_batches);
  return options;
}

}  // namespace ingot
