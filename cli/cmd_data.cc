// ingot data build | inspect: text to token shards, and what shards and batches hold.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/system.h"
#include "command.h"
#include "data/batch_stream.h"
#include "data/build.h"
#include "data/describe.h"
#include "text/tokenizer.h"
#include "train/setup.h"

namespace ingot::cli {
namespace {

// Lines of progress on stderr: rewritten in place on a terminal, one every few seconds elsewhere.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (is_terminal_ && shown_) std::cerr << '\n';
  }
  void show(const BuildProgress& progress) {
    const auto now = Clock::now();
    if (shown_ && now - last_ < std::chrono::milliseconds(is_terminal_ ? 200 : 5000)) return;
    const double seconds = seconds_since(start_);
    const double rate = static_cast<double>(progress.bytes_read) / std::max(seconds, 1e-3);
    const double left =
        static_cast<double>(progress.bytes_total - std::min(progress.bytes_read, progress.bytes_total)) /
        std::max(rate, 1.0);
    std::cerr << (is_terminal_ ? "\r\033[K" : "")
              << fmt::format("{:.1f} of {:.1f} MB, {:.2f} MB/s, {} documents, {} tokens, {:.0f} s left",
                             static_cast<double>(progress.bytes_read) * 1e-6,
                             static_cast<double>(progress.bytes_total) * 1e-6, rate * 1e-6, progress.documents,
                             progress.tokens, left)
              << (is_terminal_ ? "" : "\n") << std::flush;
    last_ = now;
    shown_ = true;
  }

 private:
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

nlohmann::ordered_json describe_shards(const ShardSet& set) {
  const ShardIndex& index = set.index();
  uint64_t bytes = 0;
  for (const ShardFile& file : index.files) bytes += file.bytes;
  nlohmann::ordered_json json{{"path", set.directory().string()},
                              {"documents", index.documents},
                              {"empty_documents", index.empty_documents},
                              {"tokens", index.tokens},
                              {"text_bytes", index.text_bytes},
                              {"vocab_size", index.vocab_size},
                              {"eos", nullptr},
                              {"tokenizer_fingerprint", hash_text(index.tokenizer_fingerprint)},
                              {"token_width", index.token_width},
                              {"shards", set.shards()},
                              {"has_prompts", index.has_prompts},
                              {"file_bytes", bytes}};
  if (index.eos) json["eos"] = *index.eos;
  return json;
}

void print_shards(const nlohmann::ordered_json& json) {
  for (const auto& [key, value] : json.items())
    std::cout << fmt::format("{:<22} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
}

struct BuildFlags {
  std::string tokenizer, out, text_key = "text", row_template, prompt_template;
  std::vector<std::string> inputs;
  int threads = 0;
  bool json = false;
};

Status build(const BuildFlags& flags) {
  INGOT_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(flags.tokenizer));
  std::vector<SourceSpec> specs;
  for (const std::string& input : flags.inputs) {
    SourceSpec spec{input, std::nullopt, flags.text_key, std::nullopt, std::nullopt};
    if (!flags.row_template.empty()) spec.row_template = flags.row_template;
    if (!flags.prompt_template.empty()) spec.prompt_template = flags.prompt_template;
    specs.push_back(std::move(spec));
  }
  if (!tokenizer.eos_id())
    log_warning("the tokenizer {} names no end-of-text token: documents will not be marked", flags.tokenizer);
  const ThreadPool pool(default_threads(flags.threads));
  ShardBuildOptions options;
  ProgressLine line;
  options.progress = [&](const BuildProgress& progress) { line.show(progress); };
  INGOT_ASSIGN(const std::shared_ptr<const ShardSet> set,
               build_shards(specs, encoder_of(tokenizer), flags.out, pool, options));
  if (flags.json)
    print_json(describe_shards(*set));
  else
    print_shards(describe_shards(*set));
  return {};
}

struct InspectFlags {
  std::string path, tokenizer;
  std::vector<std::string> overrides;
  int64_t step = 0, batch = 1, sequence_length = 1024, rows = 4, tokens = 64;
  uint64_t seed = 42;
  int threads = 0;
  bool no_packing = false, no_document_mask = false, no_shuffle = false, verify = false, json = false;
  std::vector<const CLI::Option*> of_shards;  // options that a run's configuration answers by keys of its own
};

nlohmann::ordered_json batch_to_json(const Batch& batch, const Tokenizer* tokenizer) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  Batch copy = batch;  // row() gives views that can be written
  for (int64_t i = 0; i < batch.rows; ++i) {
    const RowView row = copy.row(i);
    const auto list = [](std::span<const int32_t> values) {
      return std::vector<int32_t>(values.begin(), values.end());
    };
    nlohmann::ordered_json entry{{"sample", batch.samples[static_cast<size_t>(i)]},
                                 {"ids", list(row.ids)},
                                 {"targets", list(row.targets)},
                                 {"segment_start", list(row.segment_start)},
                                 {"positions", list(row.positions)}};
    if (tokenizer) entry["text"] = tokenizer->decode(row.ids);
    rows.push_back(std::move(entry));
  }
  return {{"rows", batch.rows},       {"sequence_length", batch.sequence_length}, {"tokens", batch.tokens},
          {"counted", batch.counted}, {"text_bytes", batch.text_bytes},           {"batch", std::move(rows)}};
}

// The micro-batches of one step, as a run with these options makes them.
Status show_step(const InspectFlags& flags, std::vector<MixturePart> parts, StreamOptions options,
                 const Tokenizer* tokenizer) {
  const int64_t number = std::max<int64_t>(1, flags.step);
  options.prefetch_batches = 0;
  Cursor start;
  start.samples = (number - 1) * options.global_batch_size;
  INGOT_ASSIGN(const std::unique_ptr<BatchStream> stream, BatchStream::create(std::move(parts), options, start));
  INGOT_ASSIGN(const StepBatches* const step, stream->next());
  if (flags.json) {
    nlohmann::ordered_json batches = nlohmann::ordered_json::array();
    for (const Batch& batch : step->micro) batches.push_back(batch_to_json(batch, tokenizer));
    print_json({{"step", number},
                {"sequences_per_epoch", stream->sequences_per_epoch()},
                {"tokens", step->tokens},
                {"counted", step->counted},
                {"text_bytes", step->text_bytes},
                {"micro_batches", std::move(batches)}});
    return {};
  }
  std::cout << fmt::format("step {} of {} an epoch\n", number, stream->steps_per_epoch());
  for (size_t i = 0; i < step->micro.size(); ++i) {
    if (step->micro.size() > 1) std::cout << fmt::format("micro-batch {} of {}\n", i + 1, step->micro.size());
    std::cout << describe_batch(step->micro[i], tokenizer, {flags.rows, flags.tokens});
  }
  return {};
}

Status inspect_step_of_shards(const InspectFlags& flags, std::shared_ptr<const ShardSet> set,
                              const Tokenizer* tokenizer) {
  const SequenceOptions sequence_options{flags.sequence_length, !flags.no_packing, !flags.no_document_mask};
  INGOT_ASSIGN(std::shared_ptr<const SequenceSource> sequences,
               make_sequences(Segments::all(std::move(set)), sequence_options));
  StreamOptions options;
  options.sequence_length = flags.sequence_length;
  options.global_batch_size = options.micro_batch_size = flags.batch;
  options.shuffle = !flags.no_shuffle;
  options.seed = flags.seed;
  return show_step(flags, {{sequences, std::nullopt}}, options, tokenizer);
}

Status inspect_shards(const InspectFlags& flags) {
  if (!flags.overrides.empty())
    return usage_error("{}: keys are overridden in a configuration, and {} is a directory of shards",
                       flags.overrides.front(), flags.path);
  INGOT_ASSIGN(std::shared_ptr<const ShardSet> set, ShardSet::open(flags.path));
  if (flags.verify) INGOT_TRY(set->verify());
  std::optional<Tokenizer> tokenizer;
  if (!flags.tokenizer.empty()) {
    INGOT_ASSIGN(tokenizer, Tokenizer::load(flags.tokenizer));
    if (tokenizer->fingerprint() != set->index().tokenizer_fingerprint)
      return input_error("{} was built with another tokenizer (fingerprint {}; {} has {})", flags.path,
                         hash_text(set->index().tokenizer_fingerprint), flags.tokenizer,
                         hash_text(tokenizer->fingerprint()));
  }
  if (flags.step > 0) return inspect_step_of_shards(flags, std::move(set), tokenizer ? &*tokenizer : nullptr);
  nlohmann::ordered_json json = describe_shards(*set);
  json["verified"] = flags.verify;
  if (flags.json)
    print_json(json);
  else
    print_shards(json);
  return {};
}

Status inspect_run(const InspectFlags& flags) {
  for (const CLI::Option* option : flags.of_shards)
    if (option->count() > 0)
      return usage_error(
          "{} is for a directory of shards; {} is a configuration: override its keys instead, as "
          "training.global_batch_size=8",
          option->get_name(), flags.path);
  INGOT_ASSIGN(const RunConfig config, load_config(flags.path, flags.overrides));
  INGOT_TRY(check_consistent(config));
  const ThreadPool pool(
      default_threads(flags.threads > 0 ? flags.threads : static_cast<int>(config.threads.value_or(0))));
  INGOT_ASSIGN(RunSetup setup, set_up_run(config, pool));
  const int64_t micro_batch = config.training.micro_batch_size.value_or(config.training.global_batch_size);
  return show_step(flags, std::move(setup.train), stream_options(config, micro_batch),
                   setup.tokenizer ? &*setup.tokenizer : nullptr);
}

Status inspect(const InspectFlags& flags) {
  return fs::is_regular_file(flags.path) ? inspect_run(flags) : inspect_shards(flags);
}

void add_build(CLI::App& data, Command& command) {
  auto flags = std::make_shared<BuildFlags>();
  CLI::App* app = data.add_subcommand("build", "Turn text, JSONL or CSV into token shards.");
  app->footer("Example: ingot data build --tokenizer gpt2/tokenizer.json --input 'corpus/*.txt' --out shards");
  app->add_option("--tokenizer", flags->tokenizer, "A tokenizer.json, or a directory that holds one")->required();
  app->add_option("--input", flags->inputs, ".txt .jsonl .csv files, directories, globs")->required();
  app->add_option("--out", flags->out,
                  "The directory to make; shards that it holds are replaced unless the inputs are the same")
      ->required();
  app->add_option("--text-key", flags->text_key, "The JSONL key or CSV column that holds the text")
      ->capture_default_str();
  app->add_option("--template", flags->row_template, "Text of a row, like 'Age {age}, job {job}'");
  app->add_option("--prompt-template", flags->prompt_template, "Text that goes before it and is no target of the loss");
  app->add_option("--threads", flags->threads, "Threads (default: OMP_NUM_THREADS, else all cores)")
      ->check(CLI::PositiveNumber);
  app->add_flag("--json", flags->json, "Print one JSON object");
  app->callback([flags, &command] { command.run = [flags] { return build(*flags); }; });
}

void add_inspect(CLI::App& data, Command& command) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* app = data.add_subcommand("inspect", "Show what token shards hold, or the batch of one training step.");
  app->footer(
      "Examples: ingot data inspect config.yaml --step 100\n"
      "          ingot data inspect shards --step 1 --batch 8 --sequence-length 256 --tokenizer gpt2/tokenizer.json");
  app->add_option("path", flags->path,
                  "A run's configuration (its shards are built where they are missing), or a directory of shards")
      ->required();
  app->add_option("overrides", flags->overrides, "Keys of the configuration to override, as key=value");
  app->add_option("--step", flags->step, "Show the batch of this step, from 1 on (of a configuration: 1)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app->add_option("--rows", flags->rows, "Show this many rows of a micro-batch")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  app->add_option("--tokens", flags->tokens, "Show this many tokens of a row")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  app->add_option("--threads", flags->threads, "Threads for what must be built first")->check(CLI::Range(1, 4096));
  app->add_flag("--json", flags->json, "Print one JSON object");
  flags->of_shards = {
      app->add_flag("--verify", flags->verify, "Read every byte and compare checksums"),
      app->add_option("--batch", flags->batch, "Sequences of a step")
          ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
          ->capture_default_str(),
      app->add_option("--sequence-length", flags->sequence_length, "Tokens of a sequence")
          ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
          ->capture_default_str(),
      app->add_option("--tokenizer", flags->tokenizer, "Show the text of tokens too"),
      app->add_option("--seed", flags->seed, "Seed of the order")->capture_default_str(),
      app->add_flag("--no-packing", flags->no_packing, "One document a row"),
      app->add_flag("--no-document-mask", flags->no_document_mask, "Attention and positions go on across documents"),
      app->add_flag("--no-shuffle", flags->no_shuffle, "Sequences in their own order")};
  for (const CLI::Option* option : flags->of_shards) app->get_option(option->get_name())->group("Of shards");
  app->callback([flags, &command] { command.run = [flags] { return inspect(*flags); }; });
}

}  // namespace

void add_data(CLI::App& app, Command& command) {
  CLI::App* data = app.add_subcommand("data", "Turn text into token shards; look into shards and batches.");
  data->require_subcommand(1);
  add_build(*data, command);
  add_inspect(*data, command);
}

}  // namespace ingot::cli
