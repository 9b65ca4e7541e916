// ingot plan: what a run will take, before anything runs.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/system.h"
#include "command.h"
#include "train/plan_run.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PlanFlags {
  std::string config;
  std::vector<std::string> overrides;
  bool presets = false, families = false, json = false;
  int threads = 0;
};

Json memory_json(const MemoryEstimate& m) {
  return {{"weights", m.weights},         {"gradients", m.gradients}, {"optimizer", m.optimizer},
          {"activations", m.activations}, {"workspace", m.workspace}, {"staging", m.staging},
          {"process", m.process},         {"total", m.total()}};
}

Json plan_json(const RunPlan& plan) {
  const Layout& l = plan.layout;
  Json components = Json::object(), rates = Json::array();
  for (const auto& [name, count] : plan.components) components[name] = count;
  for (const RatePoint& point : plan.rates)
    rates.push_back({{"step", point.step}, {"learning_rate", point.learning_rate}});
  Json precisions = Json::array();
  for (const PrecisionRow& row : plan.precisions)
    precisions.push_back({{"kind", row.kind}, {"operands", row.operands}, {"computes", row.what}});
  const auto known = [](const std::optional<int64_t>& value) { return value ? Json(*value) : Json(nullptr); };
  return {{"parameters", plan.parameters},
          {"trained_parameters", plan.trained_parameters},
          {"components", components},
          {"layout",
           {{"data", l.data},
            {"tensor", l.tensor},
            {"pipeline", l.pipeline},
            {"context", l.context},
            {"zero_stage", l.zero_stage}}},
          {"threads", plan.threads},
          {"fits", plan.fits()},
          {"precision", plan.precision},
          {"precisions", precisions},
          {"memory", memory_json(plan.memory)},
          {"available_memory", plan.available_memory},
          {"activations", {{"kept_for_backward", plan.memory.kept}, {"lower_bound", plan.memory.lower_bound}}},
          {"recomputed", plan.recomputed},
          {"recompute_ms", plan.recompute_seconds * 1e3},
          {"disk_bytes", plan.disk.needed},
          {"checkpoint_bytes", plan.disk.checkpoint},
          {"free_disk_bytes", plan.disk.room},
          {"batch",
           {{"ranks", l.data},
            {"micro_batch_size", plan.micro_batch},
            {"accumulation", plan.accumulation},
            {"global_batch_size", plan.sequences_per_step()},
            {"sequence_length", plan.sequence_length},
            {"tokens_per_step", plan.tokens_per_step()}}},
          {"steps", known(plan.total_steps)},
          {"steps_per_epoch", known(plan.steps_per_epoch)},
          {"learning_rates", rates},
          {"flops_per_step", plan.model_flops},
          {"program_flops_per_step", plan.program_flops},
          {"peak_gflops", plan.machine.peak_gflops},
          {"step_ms", plan.step_seconds * 1e3},
          {"tokens_per_second", plan.tokens_per_second()},
          {"mfu", plan.mfu()},
          {"problems", plan.problems},
          {"remedies", plan.remedies},
          {"assumptions", plan.assumptions},
          {"warnings", plan.warnings}};
}

Status list_presets_and_families(const PlanFlags& flags) {
  Json lists = Json::object();
  if (flags.presets) {
    Json presets = Json::array();
    for (const Preset& preset : list_presets()) {
      INGOT_ASSIGN(const Model model, Model::preset(preset.name));
      presets.push_back({{"name", preset.name}, {"parameters", model.parameter_count()}, {"about", preset.about}});
      if (!flags.json)
        std::cout << fmt::format("{:<14} {:>8.1f}M  {}\n", preset.name,
                                 static_cast<double>(model.parameter_count()) * 1e-6, preset.about);
    }
    lists["presets"] = presets;
  }
  if (flags.families) {
    lists["families"] = family_names();
    if (!flags.json)
      for (const std::string& name : family_names()) std::cout << name << "\n";
  }
  if (flags.json) print_json(lists);
  return {};
}

Status run_plan(const PlanFlags& flags) {
  if (flags.presets || flags.families) return list_presets_and_families(flags);
  if (flags.config.empty()) return usage_error("plan needs a configuration file (or --presets, --families)");
  std::vector<std::string> overrides = flags.overrides;
  if (flags.threads > 0) overrides.push_back(fmt::format("threads={}", flags.threads));
  INGOT_ASSIGN(const RunConfig config, load_config(flags.config, overrides));
  const ThreadPool pool(default_threads(static_cast<int>(config.threads.value_or(0))));
  INGOT_ASSIGN(const RunPlan plan, plan_run(config, measure_machine(pool, dtype_of(config.training.precision)),
                                            static_cast<int64_t>(available_memory()), pool));
  if (flags.json)
    print_json(plan_json(plan));
  else
    std::cout << describe(plan) << std::flush;
  if (plan.fits()) return {};
  std::string message = plan.problems.front();
  for (const std::string& remedy : plan.remedies)
    message += (&remedy == &plan.remedies.front() ? "; what would help: " : ", or ") + remedy;
  return Error{ErrorKind::usage, message};
}

}  // namespace

void add_plan(CLI::App& app, Command& command) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* verb = app.add_subcommand("plan", "Says what a run will take (memory, disk, time) before anything runs");
  verb->footer(
      "Example: ingot plan config.yaml training.micro_batch_size=4\nExit status 2 where the run does not fit.");
  verb->add_option("config", flags->config, "Configuration file (YAML)");
  verb->add_option("overrides", flags->overrides, "Keys to override, as key=value");
  verb->add_flag("--presets", flags->presets, "List the model presets");
  verb->add_flag("--families", flags->families, "List the model families (model_type)");
  verb->add_option("--threads", flags->threads, "Threads (default: OMP_NUM_THREADS, else the usable cores)")
      ->check(CLI::Range(1, 4096));
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->callback([flags, &command] { command.run = [flags] { return run_plan(*flags); }; });
}

}  // namespace ingot::cli
