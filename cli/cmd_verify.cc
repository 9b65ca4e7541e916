// ingot verify: proves a migration against a reference run; makes a small model to begin with.
#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/system.h"
#include "choice_option.h"
#include "command.h"
#include "export/shrunk_model.h"
#include "models/shrink.h"

#include "train/setup.h"
#include "train/verify.h"

namespace ingot::cli {
namespace {

using nlohmann::ordered_json;

struct VerifyFlags {
  std::string model, reference, mode = "graph";
  Precision precision = Precision::fp32;
  std::optional<double> tolerance;
  std::optional<double> curve_tolerance;
  std::optional<int64_t> layer;
  std::string shrink, out;  // --shrink: empty without
  uint64_t seed = 0;
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
  json["not_compared"] = verification.not_compared;
  return json;
}

// "2x64": layers and width.
Result<std::pair<int64_t, int64_t>> parse_shrink(const std::string& text) {
  int64_t layers = 0, width = 0;
  const char *at = text.data(), *end = at + text.size();
  const auto first = std::from_chars(at, end, layers);
  const bool has_x = first.ec == std::errc() && first.ptr != end && *first.ptr == 'x';
  const auto second = has_x ? std::from_chars(first.ptr + 1, end, width) : first;
  if (!has_x || second.ec != std::errc() || second.ptr != end || layers < 1 || width < 1)
    return usage_error("--shrink {}: expected LAYERSxHIDDEN, such as 2x64", text);
  return std::pair(layers, width);
}

Status run_shrink(const VerifyFlags& flags, const Model& model) {
  if (!flags.reference.empty())
    return usage_error("--shrink makes a model, --reference verifies one: give one of them");
  if (flags.out.empty()) return usage_error("--shrink needs --out DIR, where the smaller model goes");
  INGOT_ASSIGN(const auto size, parse_shrink(flags.shrink));
  const auto small = shrunk(model, size.first, size.second);
  if (!small.ok())
    return Error{small.error().kind, fmt::format("--shrink {}: {}", flags.shrink, small.error().message)};
  INGOT_TRY(write_shrunk_model(*small, flags.model, flags.out, flags.seed));
  const ModelConfig& config = small->config();
  if (flags.json) {
    print_json({{"out", flags.out},
                {"parameters", small->parameter_count()},
                {"config", ordered_json::parse(small->to_config_json())}});
    return {};
  }
  fmt::print(
      "{}: {}, {} layers of width {}, {} heads ({} of keys and values) of {}, intermediate {}, vocabulary {}: {} "
      "parameters, random\n",
      flags.out, config.model_type, config.num_hidden_layers, config.hidden_size, config.num_attention_heads,
      config.num_key_value_heads, config.head_dim, config.intermediate_size, config.vocab_size,
      small->parameter_count());
  return {};
}

Status run_verify(const VerifyFlags& flags) {
  ModelSection section;
  section.path = flags.model;
  INGOT_ASSIGN(const Model model, resolve_model(section, kNone));
  if (!flags.shrink.empty()) return run_shrink(flags, model);
  if (!flags.out.empty()) return usage_error("--out says where --shrink writes; there is no --shrink");
  if (flags.reference.empty())
    return usage_error(
        "give --reference FILE to verify the model, or --shrink LAYERSxHIDDEN --out DIR for a small one");
  if (flags.layer && flags.curve_tolerance)
    return usage_error("--layer looks at one block, --curve-tolerance at the steps of all: give one of them");
  if (!has_weights(flags.model))
    return input_error("{} holds no weights: expected model.safetensors, its index, or a checkpoint", flags.model);
  const ThreadPool pool(default_threads(flags.threads));
  VerifyOptions options;
  options.fuse = flags.mode == "graph";
  options.precision.dtype = dtype_of(flags.precision);
  options.tolerance = flags.tolerance.value_or(usual_tolerance(options.precision.dtype));
  options.layer = flags.layer;
  options.curve_tolerance = flags.curve_tolerance;
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
  verb->footer(
      "Example: ingot verify models/gpt2 --reference reference.safetensors\n"
      "         ingot verify models/gpt2 --reference reference.safetensors --layer 3\n"
      "         ingot verify models/gpt2 --shrink 2x64 --out small    (then make its reference: docs/migrate.md)");
  verb->add_option("MODEL_DIR", flags->model, "Hugging Face directory, a run's model/, or a checkpoint")->required();
  verb->add_option("--reference", flags->reference, "What the other implementation computed (safetensors)");
  verb->add_option("--tolerance", flags->tolerance,
                   "Largest difference, relative to the tensor's largest entry (default: 1e-4; bf16 0.15, fp16 0.025)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--curve-tolerance", flags->curve_tolerance,
                   "Of many steps: each loss may differ by so much of itself; norms and weights are left aside")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--layer", flags->layer,
                   "This block alone (from 0), fed with the reference's hidden state: its output and its gradients");
  verb->add_option("--shrink", flags->shrink,
                   "LAYERSxHIDDEN: write a small model of the same kind with random weights to --out, verify nothing");
  verb->add_option("--out", flags->out, "Directory for --shrink");
  verb->add_option("--seed", flags->seed, "Of the random weights of --shrink")->capture_default_str();
  verb->add_option("--mode", flags->mode, "graph: as compiled for training; eager: op by op, naming the first NaN")
      ->check(CLI::IsMember({"graph", "eager"}))
      ->capture_default_str();
  add_precision(*verb, flags->precision);
  verb->add_option("--threads", flags->threads, "Threads (default: OMP_NUM_THREADS, else the usable cores)")
      ->check(CLI::Range(1, 4096));
  verb->add_flag("--json", flags->json, "Print the result as one JSON object");
  verb->callback([flags, &command] { command.run = [flags] { return run_verify(*flags); }; });
}

}  // namespace ingot::cli
