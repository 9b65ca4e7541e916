// ingot generate: text from a prompt, with a key/value cache.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "base/system.h"
#include "choice_option.h"
#include "command.h"
#include "infer/generator.h"
#include "infer/prompts.h"

#include "text/chat_template.h"
#include "text/stream_decoder.h"

namespace ingot::cli {
namespace {

struct GenerateFlags {
  std::string model, prompt, chat, prompts, weights = "fp32";
  Precision precision = Precision::fp32;
  GenerateOptions options;
  int64_t threads = 0, batch_size = 8;
  bool json = false;
};

// The ids that the model starts from. Special tokens written in the prompt count as such: whoever calls wrote them.
Result<std::vector<int32_t>> prompt_ids(const LoadedModel& model, const Tokenizer& tokenizer,
                                        const std::string& prompt) {
  if (!prompt.empty()) {
    std::vector<int32_t> ids = tokenizer.encode(prompt, {.parse_special = true, .add_special = true});
    if (!ids.empty()) return ids;
  }
  if (tokenizer.bos_id()) return std::vector<int32_t>{*tokenizer.bos_id()};
  if (tokenizer.eos_id()) return std::vector<int32_t>{*tokenizer.eos_id()};
  return usage_error("{}: the tokenizer has no BOS and no EOS to start an empty text from; give a --prompt",
                     model.directory.string());
}

// The messages of --chat as the model's template writes them. It writes BOS itself, where the model wants one.
Result<std::vector<int32_t>> chat_ids(const LoadedModel& model, const Tokenizer& tokenizer, const std::string& file) {
  INGOT_ASSIGN(const std::string json, read_file(file));
  INGOT_ASSIGN(const auto messages, read_messages(json, file));
  INGOT_ASSIGN(const ChatTemplate chat, ChatTemplate::load(model.directory));
  INGOT_ASSIGN(const std::string text, chat.render(messages, true));
  std::vector<int32_t> ids = tokenizer.encode(text, {.parse_special = true});
  if (!ids.empty()) return ids;
  return input_error("{}: the model's chat template makes no text of it", file);
}

Status print_text(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
  return failed_error("writing to standard output failed");
}

// The text of one continuation, whole characters only; to stdout as it comes where it is to stream.
class TextOutput {
 public:
  // `before`: the tokens that the text goes on from, or none where it stands for itself. With them a space at its start
  // is kept, which some decoders take from the start of a text.
  TextOutput(const Tokenizer& tokenizer, bool stream, std::span<const int32_t> before)
      : decoder_(tokenizer, true), stream_(stream) {
    for (const int32_t token : before) (void)decoder_.push(token);
  }
  Status push(int32_t token) { return add(decoder_.push(token)); }
  Status finish() { return add(decoder_.flush()); }
  const std::string& text() const { return text_; }

 private:
  Status add(const std::string& text) {
    text_ += text;
    return stream_ && !text.empty() ? print_text(text) : Status();
  }

  StreamDecoder decoder_;
  bool stream_;
  std::string text_;
};

using Prompts = std::vector<std::vector<int32_t>>;

Result<Prompts> prompts_of(const GenerateFlags& flags, const LoadedModel& model, const Tokenizer& tokenizer) {
  Prompts prompts;
  if (!flags.chat.empty()) {
    INGOT_ASSIGN(std::vector<int32_t> ids, chat_ids(model, tokenizer, flags.chat));
    prompts.push_back(std::move(ids));
    return prompts;
  }
  std::vector<std::string> texts{flags.prompt};
  if (!flags.prompts.empty()) {
    INGOT_ASSIGN(texts, read_prompts(flags.prompts));
  }
  for (const std::string& text : texts) {
    INGOT_ASSIGN(std::vector<int32_t> ids, prompt_ids(model, tokenizer, text));
    prompts.push_back(std::move(ids));
  }
  return prompts;
}

Result<int64_t> longest_prompt(const Prompts& prompts, int64_t context) {
  int64_t longest = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto length = static_cast<int64_t>(prompts[i].size());
    if (length > context)
      return usage_error("{} has {} tokens, the model's context is {}; use a shorter prompt",
                         prompts.size() == 1 ? "the prompt" : fmt::format("prompt {}", i + 1), length, context);
    longest = std::max(longest, length);
  }
  return longest;
}

// What is said of one continuation; several are told apart by their numbers.
Status give_out(const GenerateFlags& flags, const std::vector<int32_t>& prompt, const Generation& result,
                const std::string& text, std::optional<size_t> number) {
  if (flags.json) {
    print_json({{"prompt_ids", prompt},
                {"tokens", result.tokens},
                {"text", text},
                {"prefill_ms", result.prefill_seconds * 1e3},
                {"ms_per_token", result.seconds_per_token * 1e3}});
    return {};
  }
  return number ? print_text(fmt::format("[{}] {}\n", *number + 1, text)) : print_text("\n");  // it has been streamed
}

// Continues prompts[first, first + generator.sequences()).
Status generate_some(const GenerateFlags& flags, GenerateOptions options, const Tokenizer& tokenizer,
                     std::span<const std::vector<int32_t>> prompts, size_t first, Generator& generator) {
  const bool alone = prompts.size() == 1;
  const size_t count = std::min(prompts.size() - first, static_cast<size_t>(generator.sequences()));
  std::vector<TextOutput> outputs;
  for (size_t i = 0; i < count; ++i) {
    const bool is_answer = !flags.chat.empty();
    outputs.emplace_back(tokenizer, alone && !flags.json, is_answer ? Tokens() : Tokens(prompts[first + i]));
  }
  options.sampling.seed += first;
  generator.clear();
  INGOT_ASSIGN(const std::vector<Generation> results,
               generate(generator, prompts.subspan(first, count), options, [&](size_t i, int32_t token) {
                 return options.is_end(token) ? Status() : outputs[i].push(token);
               }));
  for (size_t i = 0; i < count; ++i) {
    INGOT_TRY(outputs[i].finish());
    const std::optional<size_t> number = alone ? std::nullopt : std::optional(first + i);
    INGOT_TRY(give_out(flags, prompts[first + i], results[i], outputs[i].text(), number));
    if (results[i].context_is_full)
      log_warning("{}stopped after {} new tokens: the model's context of {} tokens is full",
                  number ? fmt::format("prompt {}: ", *number + 1) : "", results[i].tokens.size(), generator.context());
  }
  return {};
}

Status run_generate(const GenerateFlags& flags) {
  INGOT_ASSIGN(const WeightFormat weights, weight_format_from(flags.weights));
  INGOT_TRY(check_sampling(flags.options.sampling));
  INGOT_ASSIGN(const LoadedModel model, open_model(flags.model));
  INGOT_ASSIGN(const Tokenizer tokenizer, tokenizer_of(model));
  INGOT_ASSIGN(const Prompts prompts, prompts_of(flags, model, tokenizer));
  const int64_t context = model.model.config().max_position_embeddings;
  INGOT_ASSIGN(const int64_t longest, longest_prompt(prompts, context));
  GenerateOptions options = flags.options;
  options.ends = tokenizer.end_ids();

  const ThreadPool pool(default_threads(static_cast<int>(flags.threads)));
  const MixedPrecision precision = {dtype_of(flags.precision), {}};
  const int64_t sequences = std::min(flags.batch_size, static_cast<int64_t>(prompts.size()));
  INGOT_ASSIGN(auto generator, Generator::create(model.model,
                                                 {.tokens = longest + std::min(options.max_tokens, context),
                                                  .sequences = sequences,
                                                  .weights = for_generation(weights, precision),
                                                  .precision = precision},
                                                 pool));
  INGOT_TRY(load_weights_as_kept(model.directory, model.model, generator->arena(), pool));
  for (size_t first = 0; first < prompts.size(); first += static_cast<size_t>(sequences))
    INGOT_TRY(in_precision(generate_some(flags, options, tokenizer, prompts, first, *generator), flags.precision));
  return {};
}

}  // namespace

void add_generate(CLI::App& app, Command& command) {
  auto flags = std::make_shared<GenerateFlags>();
  SamplingOptions& sampling = flags->options.sampling;
  CLI::App* verb = app.add_subcommand("generate", "Continues a prompt, with a key/value cache");
  verb->footer(
      "Example: ingot generate runs/demo/model --prompt \"Once upon a time\" --max-tokens 64 --temperature 0.8 --top-p "
      "0.95");
  verb->add_option("model", flags->model, "A Hugging Face directory, a run's model/ or a checkpoint directory")
      ->required();
  CLI::Option* prompt = verb->add_option(
      "--prompt", flags->prompt, "The text to continue; empty: starts from BOS. Special tokens in it count as such");
  CLI::Option* chat = verb->add_option(
      "--chat", flags->chat,
      "A JSON file of messages ([{\"role\": \"user\", \"content\": …}, …]), written as the model's chat "
      "template says, to be answered");
  CLI::Option* prompts = verb->add_option(
      "--prompts", flags->prompts, "A file of prompts, one a line (.jsonl: strings, or objects with \"prompt\")");
  prompt->excludes(chat, prompts);
  chat->excludes(prompts);
  verb->add_option("--batch-size", flags->batch_size, "Prompts of --prompts that are continued side by side")
      ->needs(prompts)
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  verb->add_option("--max-tokens", flags->options.max_tokens, "New tokens at most; generation ends earlier at EOS")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  verb->add_option("--temperature", sampling.temperature, "0: always the most probable token")->capture_default_str();
  verb->add_option("--top-k", sampling.top_k, "Draw from so many of the most probable tokens; 0: from all")
      ->capture_default_str();
  verb->add_option("--top-p", sampling.top_p,
                   "Draw from the fewest most probable tokens that have this probability together")
      ->capture_default_str();
  verb->add_option("--seed", sampling.seed,
                   "The same seed gives the same text; of the first of several prompts, the next ones count up")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  add_precision(*verb, flags->precision);
  verb->add_option("--weights", flags->weights,
                   "fp32, or int8: a quarter of the memory and of the reading a token (ingot eval --weights int8 says "
                   "what it costs)")
      ->capture_default_str();
  verb->add_option("--threads", flags->threads, "Threads (default: OMP_NUM_THREADS, else the usable cores)")
      ->check(CLI::Range(1, 4096));
  verb->add_flag("--json", flags->json,
                 "Print {prompt_ids, tokens, text, prefill_ms, ms_per_token}, an object for each prompt");
  verb->callback([flags, prompt, chat, prompts, &command] {
    if (prompt->count() + chat->count() + prompts->count() == 0)
      throw CLI::RequiredError("--prompt, --prompts or --chat");
    command.run = [flags] { return run_generate(*flags); };
  });
}

}  // namespace ingot::cli
