// ingot eval: how well a model predicts text.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/system.h"
#include "command.h"
#include "infer/scorer.h"

namespace ingot::cli {
namespace {

struct EvalFlags {
  std::string model, precision = "fp32";
  std::vector<std::string> texts;
  ScoringOptions scoring;
  int64_t threads = 0;
  bool json = false;
};

Status run_eval(const EvalFlags& flags) {
  if (flags.precision != "fp32") return usage_error("--precision {}: this version has fp32 only", flags.precision);
  INGOT_ASSIGN(const LoadedModel model, open_model(flags.model));
  std::vector<std::string> documents;
  for (const std::string& path : flags.texts) {
    INGOT_ASSIGN(std::string text, read_file(path));
    documents.push_back(std::move(text));
  }
  const ThreadPool pool(default_threads(static_cast<int>(flags.threads)));
  INGOT_ASSIGN(const EvaluationResult result, score_documents(model, documents, flags.scoring, pool));
  if (flags.json) {
    print_json({{"loss", result.loss},
                {"perplexity", result.perplexity},
                {"bits_per_byte", result.bits_per_byte},
                {"tokens", result.tokens}});
    return {};
  }
  fmt::print("loss           {:.6f}\nperplexity     {:.4f}\nbits per byte  {:.6f}\ntokens         {}\n", result.loss,
             result.perplexity, result.bits_per_byte, result.tokens);
  return {};
}

}  // namespace

void add_eval(CLI::App& app, Command& command) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* verb = app.add_subcommand("eval", "Loss, perplexity and bits per byte of a model on text");
  verb->footer("Example: ingot eval runs/demo/model --text heldout/*.txt --json");
  verb->add_option("model", flags->model, "A Hugging Face directory, a run's model/ or a checkpoint directory")
      ->required();
  verb->add_option("--text", flags->texts, "Text files, each one document")->required();
  verb->add_option("--window", flags->scoring.window, "Tokens that the model sees at a time (default: its context)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--stride", flags->scoring.stride,
                   "Tokens from one window to the next (default: half a window). What windows share counts once, in "
                   "the earlier one")
      ->check(CLI::PositiveNumber);
  verb->add_option("--precision", flags->precision, "fp32")->capture_default_str();
  verb->add_option("--threads", flags->threads, "Threads (default: OMP_NUM_THREADS, else the usable cores)")
      ->check(CLI::Range(1, 4096));
  verb->add_flag("--json", flags->json, "Print {loss, perplexity, bits_per_byte, tokens}");
  verb->callback([flags, &command] { command.run = [flags] { return run_eval(*flags); }; });
}

}  // namespace ingot::cli
