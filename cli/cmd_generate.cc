// ingot generate: text from a prompt, with a key/value cache.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "base/system.h"
#include "command.h"
#include "infer/generator.h"
#include "text/chat_template.h"
#include "text/stream_decoder.h"
#include "train/model_directory.h"

namespace ingot::cli {
namespace {

struct GenerateFlags {
  std::string model, prompt, chat, precision = "fp32";
  GenerateOptions options;
  int64_t threads = 0;
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

// Text to stdout as it comes, whole characters only; the whole of it is kept.
class TextOutput {
 public:
  TextOutput(Tokenizer tokenizer, bool stream) : decoder_(std::move(tokenizer), true), stream_(stream) {}
  Status push(int32_t token) {
    const std::string text = decoder_.push(token);
    text_ += text;
    return stream_ && !text.empty() ? print(text) : Status();
  }
  Status finish() {
    const std::string rest = decoder_.flush();
    text_ += rest;
    return stream_ ? print(rest + "\n") : Status();
  }
  const std::string& text() const { return text_; }

 private:
  static Status print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
    return failed_error("writing to standard output failed");
  }

  StreamDecoder decoder_;
  bool stream_;
  std::string text_;
};

Status check_precision(const std::string& precision) {
  if (precision == "fp32") return {};
  return usage_error("--precision {}: this version has fp32 only", precision);
}

Status run_generate(const GenerateFlags& flags) {
  INGOT_TRY(check_precision(flags.precision));
  INGOT_TRY(check_sampling(flags.options.sampling));
  INGOT_ASSIGN(const LoadedModel model, open_model(flags.model));
  INGOT_ASSIGN(const Tokenizer tokenizer, tokenizer_of(model));
  INGOT_ASSIGN(const std::vector<int32_t> prompt, flags.chat.empty() ? prompt_ids(model, tokenizer, flags.prompt)
                                                                     : chat_ids(model, tokenizer, flags.chat));
  const int64_t context = model.model.config().max_position_embeddings, length = static_cast<int64_t>(prompt.size());
  if (length > context)
    return usage_error("the prompt has {} tokens, the model's context is {}; use a shorter prompt", length, context);
  GenerateOptions options = flags.options;
  options.eos = tokenizer.eos_id();

  const ThreadPool pool(default_threads(static_cast<int>(flags.threads)));
  const int64_t tokens = length + std::min(options.max_tokens, context);
  INGOT_ASSIGN(auto generator, Generator::create(model.model, tokens, pool));
  INGOT_TRY(load_weights(model.directory, model.model, generator->arena()));
  TextOutput output(tokenizer, !flags.json);
  INGOT_ASSIGN(const Generation result, generate(*generator, prompt, options, [&](int32_t token) {
                 return token == options.eos ? Status() : output.push(token);
               }));
  INGOT_TRY(output.finish());
  if (result.context_is_full)
    log_warning("stopped after {} new tokens: the model's context of {} tokens is full", result.tokens.size(), context);
  if (flags.json)
    print_json({{"prompt_ids", prompt},
                {"tokens", result.tokens},
                {"text", output.text()},
                {"prefill_ms", result.prefill_seconds * 1e3},
                {"ms_per_token", result.seconds_per_token * 1e3}});
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
  prompt->excludes(chat);
  verb->add_option("--max-tokens", flags->options.max_tokens, "New tokens at most; generation ends earlier at EOS")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  verb->add_option("--temperature", sampling.temperature, "0: always the most probable token")->capture_default_str();
  verb->add_option("--top-k", sampling.top_k, "Draw from so many of the most probable tokens; 0: from all")
      ->capture_default_str();
  verb->add_option("--top-p", sampling.top_p,
                   "Draw from the fewest most probable tokens that have this probability together")
      ->capture_default_str();
  verb->add_option("--seed", sampling.seed, "The same seed gives the same text")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  verb->add_option("--precision", flags->precision, "fp32")->capture_default_str();
  verb->add_option("--threads", flags->threads, "Threads (default: OMP_NUM_THREADS, else the usable cores)")
      ->check(CLI::Range(1, 4096));
  verb->add_flag("--json", flags->json, "Print {prompt_ids, tokens, text, prefill_ms, ms_per_token}");
  verb->callback([flags, prompt, chat, &command] {
    if (prompt->count() + chat->count() == 0) throw CLI::RequiredError("--prompt or --chat");
    command.run = [flags] { return run_generate(*flags); };
  });
}

}  // namespace ingot::cli
