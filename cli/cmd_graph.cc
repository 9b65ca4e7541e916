// ingot graph: a program's IR, whole or as a pass left it, and what was fused where.
#include <fmt/ranges.h>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/spelling.h"
#include "command.h"
#include "graph/text.h"
#include "train/plan_run.h"
#include "train/trainer.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::ordered_json;

struct GraphFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::string after, program = "micro_step";
  bool fusion_report = false, json = false;
  int64_t batch = 0, tokens = 0;
};

// A program's graph at the point that was asked for.
struct Inspected {
  Graph graph;
  PassContext context;
};

// The names that --after takes for a program, in the order in which they happen.
std::vector<std::string> stage_names(const std::string& program) {
  std::vector<std::string> names{"build"};
  if (program == "update") return names;
  for (const Pass& pass : forward_passes()) names.emplace_back(pass.name);
  if (program == "micro_step") names.emplace_back("differentiate");
  for (const Pass& pass : backward_passes()) names.emplace_back(pass.name);
  return names;
}

Status check_stage(const GraphFlags& flags) {
  if (flags.after.empty()) return {};
  const std::vector<std::string> names = stage_names(flags.program);
  if (std::ranges::find(names, flags.after) != names.end()) return {};
  return usage_error("--after {}: the program {} has no such pass (the nearest is {}); there are {}", flags.after,
                     flags.program, nearest_name(flags.after, names), fmt::join(names, ", "));
}

// No pass runs on the update program.
Result<Graph> update_of(const Model& model, const ProgramSettings& settings) {
  const ThreadPool pool(1);
  INGOT_ASSIGN(const auto programs, TrainingPrograms::plan(model, settings, pool));
  return programs->update_program().graph();
}

Result<Graph> compiled(const std::string& program, const Model& model, const ProgramSettings& settings,
                       PassContext& context, const PassTrace& trace) {
  if (program == "update") {
    INGOT_ASSIGN(Graph graph, update_of(model, settings));
    trace("build", graph);
    return graph;
  }
  StepGraphOptions options;
  options.rows = settings.rows;
  options.tokens = settings.tokens;
  options.fuse = settings.fuse;
  options.freeze = settings.freeze;
  return program == "evaluation" ? evaluation_graph(model, options, context, trace)
                                 : micro_step_graph(model, options, context, trace);
}

Result<Inspected> inspect(const GraphFlags& flags, const RunConfig& config, const Model& model) {
  ProgramSettings settings =
      program_settings(config, flags.batch > 0 ? flags.batch : config.training.micro_batch_size.value_or(1));
  INGOT_TRY(check_pass_names(settings.disabled_passes));
  Inspected result;
  result.context.no_fuse = settings.no_fuse;
  result.context.disabled = settings.disabled_passes;
  result.context.precision = settings.precision;
  if (settings.recompute.policy != RecomputePolicy::none && flags.program == "micro_step") {
    const ThreadPool pool(1);
    INGOT_ASSIGN(const auto programs, TrainingPrograms::plan(model, settings, pool));
    result.context.recompute = programs->passes().recompute;
  }
  std::optional<Graph> asked;
  const PassTrace keep = [&](std::string_view pass, const Graph& now) {
    if (pass == flags.after) asked = now.compacted();
  };
  INGOT_ASSIGN(result.graph, compiled(flags.program, model, settings, result.context, keep));
  if (flags.after.empty()) return result;
  if (!asked)
    return usage_error("--after {}: the configuration switches this pass off ({})", flags.after,
                       settings.fuse ? "compile.disable_passes" : "training.mode eager takes the plain ops one by one");
  result.graph = std::move(*asked);
  return result;
}

Json notes_json(const std::vector<FusionNote>& notes) {
  Json list = Json::array();
  for (const FusionNote& note : notes)
    list.push_back(
        {{"pattern", note.pattern}, {"path", note.path}, {"applied", note.applied}, {"reason", note.reason}});
  return list;
}

Status run_graph(const GraphFlags& flags) {
  INGOT_TRY(check_stage(flags));
  std::vector<std::string> overrides = flags.overrides;
  if (flags.tokens > 0) overrides.push_back(fmt::format("data.sequence_length={}", flags.tokens));
  INGOT_ASSIGN(const RunConfig config, load_config(flags.config, overrides));
  INGOT_TRY(check_supported(config));
  INGOT_ASSIGN(const PlannedModel planned, plan_model(config));
  INGOT_ASSIGN(const Inspected inspected, inspect(flags, config, planned.model));
  if (flags.json) {
    print_json({{"program", flags.program},
                {"after", flags.after.empty() ? Json(nullptr) : Json(flags.after)},
                {"nodes", inspected.graph.schedule().size()},
                {"graph", print_graph(inspected.graph)},
                {"fusions", notes_json(inspected.context.notes)}});
    return {};
  }
  std::cout << (flags.fusion_report ? fusion_report(inspected.context.notes) : print_graph(inspected.graph))
            << std::flush;
  return {};
}

}  // namespace

void add_graph(CLI::App& app, Command& command) {
  auto flags = std::make_shared<GraphFlags>();
  CLI::App* verb =
      app.add_subcommand("graph", "Prints a program's IR, whole or after one pass; says what was fused and what not");
  verb->footer(
      fmt::format("Examples: ingot graph config.yaml --after fuse_attention --batch 1 --seq 64\n"
                  "          ingot graph config.yaml --fusion-report\n"
                  "Passes: {}",
                  fmt::join(stage_names("micro_step"), ", ")));
  verb->add_option("config", flags->config, "Configuration file (YAML)")->required();
  verb->add_option("overrides", flags->overrides, "Keys to override, as key=value");
  verb->add_option("--after", flags->after,
                   "The graph as this pass left it (also: build, differentiate); default: at the end");
  verb->add_flag("--fusion-report", flags->fusion_report, "Which patterns were fused, which were not and why");
  verb->add_option("--program", flags->program, "Which program")
      ->check(CLI::IsMember({"micro_step", "evaluation", "update"}))
      ->capture_default_str();
  verb->add_option("--batch", flags->batch, "Sequences (default: training.micro_batch_size, else 1)")
      ->check(CLI::Range(1, 1 << 20));
  verb->add_option("--seq", flags->tokens, "Tokens of a sequence (default: data.sequence_length)")
      ->check(CLI::Range(1, 1 << 24));
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->callback([flags, &command] { command.run = [flags] { return run_graph(*flags); }; });
}

}  // namespace ingot::cli
