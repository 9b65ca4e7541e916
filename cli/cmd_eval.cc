// ingot eval: how well a model predicts text, chooses answers and gives them.
#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <memory>

#include "base/system.h"
#include "choice_option.h"
#include "command.h"
#include "eval.h"
#include "export/export_directory.h"
#include "infer/fingerprint.h"

namespace ingot::cli {
namespace {

nlohmann::ordered_json document_json(const std::string& path, const DocumentScore& score) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  return {{"path", path},
          {"loss", score.tokens > 0 ? score.nats / static_cast<double>(score.tokens) : none},
          {"tokens", score.tokens},
          {"bytes", score.bytes}};
}

// The result as --json prints it and, with the figures of each document, as --out keeps it.
Status give_out(const EvalFlags& flags, const LoadedModel& model, const EvalResult& result) {
  nlohmann::ordered_json json = result.figures;
  INGOT_ASSIGN(const std::string fingerprint, model_fingerprint(model));
  json["settings"] = result.settings;
  json["model"] = {{"path", flags.model}, {"fingerprint", fingerprint}};
  json["version"] = INGOT_VERSION;
  if (flags.json) {
    print_json(json);
  } else {
    fmt::print("{}", result.text);
  }
  if (flags.out.empty()) return {};
  json["documents"] = result.documents;
  return write_file_atomic(flags.out,
                           json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

Result<EvalResult> evaluate_as_asked(const EvalFlags& flags, const LoadedModel& model, const ThreadPool& pool) {
  if (!flags.choices.paths.empty()) return eval_choices(flags, model, pool);
  if (!flags.prompts.empty()) return eval_generation(flags, model, pool);
  return eval_text(flags, model, pool);
}

Status run_eval(const EvalFlags& flags) {
  if (!flags.compare.empty()) return compare_results(flags);
  if (flags.texts.empty() && flags.choices.paths.empty() && flags.prompts.empty())
    return usage_error("nothing to evaluate: give --text, --choices or --generate, or two results to --compare");
  if (!flags.out.empty()) INGOT_TRY(check_out_file(flags.out));
  if (flags.model.empty()) return usage_error("no model: give its directory, as in ingot eval MODEL_DIR --text FILE");
  INGOT_ASSIGN(const LoadedModel model, open_model(flags.model));
  const ThreadPool pool(default_threads(static_cast<int>(flags.threads)));
  const Result<EvalResult> result = evaluate_as_asked(flags, model, pool);
  if (!result.ok()) return in_precision(result.error(), flags.precision);
  return give_out(flags, model, *result);
}

void add_text_flags(CLI::App& verb, EvalFlags& flags, CLI::Option* text) {
  verb.add_option("--stride", flags.scoring.stride,
                  "Tokens from one window to the next (default: half a window). What windows share counts once, in "
                  "the earlier one")
      ->needs(text)
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  verb.add_option("--weights", flags.weights,
                  "fp32, or int8 as `ingot generate --weights int8` keeps them; then what that costs is shown too")
      ->needs(text)
      ->capture_default_str();
}

void add_choice_flags(CLI::App& verb, EvalFlags& flags, CLI::Option* choices) {
  std::string names;
  for (const ChoiceTemplate& format : list_choice_templates())
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  verb.add_option("--subject", flags.choices.subject,
                  "This subject alone; the subject of a file that does not say its own (default: the file's name)")
      ->needs(choices);
  verb.add_option("--shots", flags.choices.shots, "Worked examples before each question, the first ones of its subject")
      ->needs(choices)
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  verb.add_option("--examples", flags.choices.examples,
                  "Where the worked examples are (default: dev/ beside the questions' directory)")
      ->needs(choices);
  verb.add_option("--template", flags.template_name,
                  fmt::format("The prompt: {} (default: mmlu for .csv, plain for .jsonl)", names))
      ->needs(choices);
  verb.add_option("--limit", flags.choices.limit, "The first N questions of each subject (default: all)")
      ->needs(choices)
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  verb.add_option("--batch-size", flags.batch_size, "Questions at a time: speed and memory, not the result")
      ->needs(choices)
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
}

void add_generation_flags(CLI::App& verb, EvalFlags& flags, CLI::Option* prompts) {
  SamplingOptions& sampling = flags.generation.sampling;
  const auto add = [&](const char* name, auto& value, const char* about) {
    return verb.add_option(name, value, about)->needs(prompts);
  };
  add("--max-tokens", flags.generation.max_tokens, "New tokens at most")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  add("--stop", flags.generation.stop, "The answer ends before this text (default: a line's end; \"\": nowhere)");
  verb.add_flag("--ignore-case", flags.generation.ignore_case, "ASCII letters match in either case")->needs(prompts);
  add("--temperature", sampling.temperature, "0: always the most probable token")->capture_default_str();
  add("--top-k", sampling.top_k, "Draw from so many of the most probable tokens; 0: from all")->capture_default_str();
  add("--top-p", sampling.top_p, "Draw from the fewest most probable tokens that have this probability together")
      ->capture_default_str();
  add("--seed", sampling.seed, "Of the first question; the next ones count up")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
}

nlohmann::ordered_json text_figures(const EvaluationResult& score) {
  return {{"loss", score.loss},
          {"perplexity", score.perplexity},
          {"bits_per_byte", score.bits_per_byte},
          {"tokens", score.tokens}};
}

}  // namespace

void put_mean(nlohmann::ordered_json& to, const std::string& name, const Mean& mean) {
  to[name] = mean.mean;
  to[name + "_stderr"] = mean.standard_error;
}

Result<EvalResult> eval_text(const EvalFlags& flags, const LoadedModel& model, const ThreadPool& pool) {
  std::vector<std::string> documents;
  StreamHash hash;
  for (const std::string& path : flags.texts) {
    INGOT_ASSIGN(std::string text, read_file(path));
    const uint64_t digest = hash_bytes(text);
    hash.add(std::as_bytes(std::span(&digest, 1)));
    documents.push_back(std::move(text));
  }
  INGOT_ASSIGN(ScoringOptions scoring, resolve_scoring(model.model, flags.scoring));
  INGOT_ASSIGN(scoring.weights, weight_format_from(flags.weights));
  scoring.precision.dtype = dtype_of(flags.precision);
  INGOT_ASSIGN(const TextScore score, score_documents(model, documents, scoring, pool));
  const EvaluationResult& overall = score.overall;
  if (!std::isfinite(overall.loss))
    return failed_error("{}: the loss is {}: the weights hold numbers that are not finite, or too large ones",
                        flags.model, overall.loss);
  EvalResult result;
  result.figures = text_figures(overall);
  result.settings = {{"kind", "text"},
                     {"template", "{text}, with the special tokens that the tokenizer's post-processor adds"},
                     {"window", scoring.window},
                     {"stride", scoring.stride},
                     {"precision", name_of(flags.precision)},
                     {"weights", flags.weights},
                     {"text", hash_text(hash.digest())}};
  result.documents = nlohmann::ordered_json::array();
  for (size_t i = 0; i < documents.size(); ++i)
    result.documents.push_back(document_json(flags.texts[i], score.documents[i]));
  result.text = fmt::format("loss           {:.6f}\nperplexity     {:.4f}\nbits per byte  {:.6f}\ntokens         {}\n",
                            overall.loss, overall.perplexity, overall.bits_per_byte, overall.tokens);
  if (scoring.weights == WeightFormat::fp32) return result;
  scoring.weights = WeightFormat::fp32;
  INGOT_ASSIGN(const TextScore plain, score_documents(model, documents, scoring, pool));
  const double increase = overall.perplexity / plain.overall.perplexity - 1;
  result.figures["fp32_weights"] = text_figures(plain.overall);
  result.figures["perplexity_increase"] = increase;
  result.text += fmt::format("with fp32 weights: loss {:.6f}, perplexity {:.4f}; {} weights: perplexity {:+.3f}%\n",
                             plain.overall.loss, plain.overall.perplexity, flags.weights, 100 * increase);
  return result;
}

void add_eval(CLI::App& app, Command& command) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* verb = app.add_subcommand("eval", "How well a model predicts text, chooses answers and gives them");
  verb->footer(
      "Examples: ingot eval runs/demo/model --text heldout/*.txt --json\n"
      "          ingot eval MODEL_DIR --choices mmlu/data/test --shots 5 --out a.json\n"
      "          ingot eval MODEL_DIR --generate arithmetic.jsonl\n"
      "          ingot eval --compare a.json b.json");
  verb->add_option("model", flags->model, "A Hugging Face directory, a run's model/ or a checkpoint directory");
  CLI::Option* text = verb->add_option("--text", flags->texts, "Text files, each one document");
  CLI::Option* choices =
      verb->add_option("--choices", flags->choices.paths,
                       "Multiple-choice questions: .csv (MMLU, C-Eval, CMMLU) or .jsonl files, or their directory");
  CLI::Option* prompts = verb->add_option("--generate", flags->prompts, "JSONL of {prompt, answer}: exact match");
  CLI::Option* compare =
      verb->add_option("--compare", flags->compare, "Two files of --out: what the second has more, with its error")
          ->expected(2);
  const std::vector<CLI::Option*> kinds{text, choices, prompts, compare};
  for (CLI::Option* one : kinds)
    for (CLI::Option* other : kinds)
      if (one != other) one->excludes(other);
  verb->add_option("--window", flags->scoring.window, "Tokens that the model sees at a time (default: its context)")
      ->excludes(prompts)
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  add_text_flags(*verb, *flags, text);
  add_choice_flags(*verb, *flags, choices);
  add_generation_flags(*verb, *flags, prompts);
  verb->add_option("--out", flags->out, "Write the result there too, with the figures of each document or question");
  add_precision(*verb, flags->precision);
  verb->add_option("--threads", flags->threads, "Threads (default: OMP_NUM_THREADS, else the usable cores)")
      ->check(CLI::Range(1, 4096));
  verb->add_flag("--json", flags->json, "Print the result as one JSON object (docs/evaluate.md)");
  verb->callback([flags, &command] { command.run = [flags] { return run_eval(*flags); }; });
}

}  // namespace ingot::cli
