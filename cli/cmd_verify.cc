// ingot verify: proves a migration against a reference run.
#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/system.h"
#include "command.h"
#include "train/setup.h"
#include "train/verify.h"

namespace ingot::cli {
namespace {

using nlohmann::ordered_json;

struct VerifyFlags {
  std::string model, reference, mode = "graph", precision = "fp32";
  double tolerance = VerifyOptions{}.tolerance;
  std::optional<int64_t> layer;
  int threads = 0;
  bool json = false;
};

ordered_json to_json(const Verification& verification) {
  ordered_json json{{"ok", verification.ok},
                    {"tolerance", verification.tolerance},
                    {"first_failure", nullptr},
                    {"tensors", ordered_json::array()}};
  if (!verification.ok) json["first_failure"] = verification.first_failure;
  for (const TensorComparison& c : verification.tensors)
    json["tensors"].push_back({{"name", c.name},
                               {"max_abs", c.max_abs},
                               {"max_rel", c.max_rel},
                               {"allowed", c.limit},
                               {"undetermined", c.undetermined},
                               {"ok", c.ok}});
  json["causes"] = verification.causes;
  return json;
}

Status run_verify(const VerifyFlags& flags) {
  ModelSection section;
  section.path = flags.model;
  INGOT_ASSIGN(const Model model, resolve_model(section, kNone));
  if (!has_weights(flags.model))
    return input_error("{} holds no weights: expected model.safetensors, its index, or a checkpoint", flags.model);
  const ThreadPool pool(default_threads(flags.threads));
  VerifyOptions options;
  options.fuse = flags.mode == "graph";
  options.tolerance = flags.tolerance;
  options.layer = flags.layer;
  INGOT_ASSIGN(const Verification verification, verify_model(model, flags.model, flags.reference, options, pool));
  if (flags.json)
    print_json(to_json(verification));
  else
    std::cout << describe(verification);
  if (verification.ok) return {};
  const TensorComparison& c = verification.tensors.back();
  return failed_error("{} differs by {:.3g}, allowed are {:.3g}", c.name, c.max_abs, c.limit);
}

}  // namespace

void add_verify(CLI::App& app, Command& command) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* verb =
      app.add_subcommand("verify", "Compare every tensor of a reference run with ours, in order of execution");
  verb->footer("Example: ingot verify models/gpt2 --reference reference.safetensors");
  verb->add_option("MODEL_DIR", flags->model, "Hugging Face directory, a run's model/, or a checkpoint")->required();
  verb->add_option("--reference", flags->reference, "What the other implementation computed (safetensors)")->required();
  verb->add_option("--tolerance", flags->tolerance, "Largest difference, relative to the tensor's largest entry")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--layer", flags->layer, "Only this block's hidden state and gradients (from 0)");
  verb->add_option("--mode", flags->mode, "graph: as compiled for training; eager: op by op, naming the first NaN")
      ->check(CLI::IsMember({"graph", "eager"}))
      ->capture_default_str();
  verb->add_option("--precision", flags->precision, "Precision of the computation")
      ->check(CLI::IsMember({"fp32"}))
      ->capture_default_str();
  verb->add_option("--threads", flags->threads, "Threads (default: OMP_NUM_THREADS, else the usable cores)")
      ->check(CLI::Range(1, 4096));
  verb->add_flag("--json", flags->json, "Print the result as one JSON object");
  verb->callback([flags, &command] { command.run = [flags] { return run_verify(*flags); }; });
}

}  // namespace ingot::cli
