// ingot train: the main job.
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "command.h"
#include "train/trainer.h"

namespace ingot::cli {
namespace {

struct TrainFlags {
  std::string config;
  std::vector<std::string> overrides;
  int64_t threads = 0;
  bool json = false;
};

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

void report(const RunConfig& config, const TrainingResult& result, bool json) {
  const fs::path output = config.output_dir;
  if (json) {
    print_json({{"finished", result.finished},
                {"step", result.state.step},
                {"tokens", result.state.tokens},
                {"loss", number(result.last_loss)},
                {"validation_loss", number(result.validation_loss)},
                {"perplexity", number(result.perplexity)},
                {"bits_per_byte", number(result.bits_per_byte)},
                {"train_seconds", result.train_seconds},
                {"output_dir", config.output_dir}});
    return;
  }
  if (!result.finished) return;
  log_info("model:       {}", (output / "model").string());
  log_info("curves:      {} (and evaluation.csv, tensorboard/)", (output / "metrics.csv").string());
  log_info("checkpoints: {}", (output / "checkpoints").string());
}

Status run_train(const TrainFlags& flags) {
  std::vector<std::string> overrides = flags.overrides;
  if (flags.threads > 0) overrides.push_back(fmt::format("threads={}", flags.threads));
  INGOT_ASSIGN(const RunConfig config, load_config(flags.config, overrides));
  INGOT_ASSIGN(const TrainingResult result, train(config));
  report(config, result, flags.json);
  if (result.finished) return {};
  return Error{ErrorKind::stopped,
               fmt::format("stopped by {} at step {} of {}, saved; run the same command again to go on",
                           result.stopped_by, result.state.step, result.state.total_steps)};
}

}  // namespace

void add_train(CLI::App& app, Command& command) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb = app.add_subcommand("train", "Trains a model; resumes by itself from the newest complete checkpoint");
  verb->footer("Example: ingot train config.yaml optimizer.learning_rate=3e-4 output_dir=runs/other");
  verb->add_option("config", flags->config, "Configuration file (YAML)")->required();
  verb->add_option("overrides", flags->overrides, "Keys to override, as key=value");
  verb->add_option("--threads", flags->threads, "Threads (default: OMP_NUM_THREADS, else the usable cores)")
      ->check(CLI::Range(1, 4096));
  verb->add_flag("--json", flags->json, "Print the result as one JSON object");
  verb->callback([flags, &command] { command.run = [flags] { return run_train(*flags); }; });
}

}  // namespace ingot::cli
