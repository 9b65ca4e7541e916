#include "plan/run_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace ingot {
namespace {

std::string bytes_text(int64_t bytes) {
  const auto n = static_cast<double>(bytes);
  return n < 10e9 ? fmt::format("{:.1f} MB", n * 1e-6) : fmt::format("{:.1f} GB", n * 1e-9);
}

std::string duration_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{:.0f} minutes", seconds / 60);
  if (seconds < 3 * 86400) return fmt::format("{:.1f} hours", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

class Lines {
 public:
  template <class... Args>
  void add(std::string_view head, fmt::format_string<Args...> format, Args&&... args) {
    text += fmt::format("{:<14}{}\n", head, fmt::format(format, std::forward<Args>(args)...));
  }
  std::string text;
};

void describe_model(const RunPlan& plan, Lines& lines) {
  lines.add("model", "{}: {} parameters{}", plan.model, plan.parameters,
            plan.trained_parameters < plan.parameters ? fmt::format(", {} trained", plan.trained_parameters) : "");
  for (const auto& [component, count] : plan.components)
    lines.add("", "{:<12} {:>15} {:5.1f}%", component, count,
              100 * static_cast<double>(count) / static_cast<double>(plan.parameters));
}

void describe_steps(const RunPlan& plan, Lines& lines) {
  const Layout& l = plan.layout;
  lines.add("layout", "data {} × tensor {} × pipeline {} × context {} = {} rank{} of {} threads", l.data, l.tensor,
            l.pipeline, l.context, l.ranks(), l.ranks() == 1 ? "" : "s", plan.threads);
  lines.add("batch", "{} rank{} × {} sequences × {} accumulated = {} sequences of {}, {} tokens a step", l.data,
            l.data == 1 ? "" : "s", plan.micro_batch, plan.accumulation, plan.sequences_per_step(),
            plan.sequence_length, plan.tokens_per_step());
  std::string steps = plan.total_steps ? fmt::format("{}", *plan.total_steps) : "not known before the data are there";
  if (plan.steps_per_epoch) steps += fmt::format("; an epoch is {}", *plan.steps_per_epoch);
  lines.add("steps", "{}", steps);
  for (size_t i = 0; i < plan.rates.size(); ++i)
    lines.add(i == 0 ? "learning rate" : "", "{:<10.4g} at step {} ({})", plan.rates[i].learning_rate,
              plan.rates[i].step, plan.rates[i].when);
}

void describe_precision(const RunPlan& plan, Lines& lines) {
  lines.add("precision", "{}{}", plan.precision,
            plan.precisions.empty() ? "" : ", weights, gradients of weights and optimizer state in fp32");
  for (const PrecisionRow& row : plan.precisions)
    lines.add("", "{:<12} reads {:<5} {}", row.kind, row.operands, row.what);
}

void describe_memory(const RunPlan& plan, Lines& lines) {
  const MemoryEstimate& m = plan.memory;
  lines.add("memory", "{} of {} available", bytes_text(m.total()), bytes_text(plan.available_memory));
  const std::pair<const char*, int64_t> categories[] = {{"weights", m.weights},     {"gradients", m.gradients},
                                                        {"optimizer", m.optimizer}, {"activations", m.activations},
                                                        {"workspace", m.workspace}, {"staging", m.staging},
                                                        {"process", m.process}};
  for (const auto& [name, bytes] : categories)
    if (bytes > 0) lines.add("", "{:<12} {:>12}", name, bytes_text(bytes));
  lines.add("", "of the activations {} are kept for the backward pass; no plan could need less than {}",
            bytes_text(m.kept), bytes_text(m.lower_bound));
  if (!plan.recomputed.empty())
    lines.add("recompute", "{}: {:.1f}% of the step's time", plan.recomputed,
              100 * plan.recompute_seconds / plan.step_seconds);
  const DiskEstimate& d = plan.disk;
  lines.add("disk", "{} for checkpoints ({} of {} stay, and one is being written), {} free; final model {}",
            bytes_text(d.needed), d.keep, bytes_text(d.checkpoint), bytes_text(d.room), bytes_text(d.model));
}

void describe_time(const RunPlan& plan, Lines& lines) {
  lines.add("compute", "{:.4g} TFLOP a step as compiled, {:.4g} by the model's formula", plan.program_flops * 1e-12,
            plan.model_flops * 1e-12);
  lines.add("machine", "{:.0f} GFLOP/s peak for {}, products {:.0f}, copying {:.0f} GB/s (measured now)",
            plan.machine.peak_gflops, plan.precision, plan.machine.product_gflops, plan.machine.copy_gbytes_per_s);
  lines.add("time", "about {} a step, {:.0f} tokens/s, MFU {:.2f}{}", duration_text(plan.step_seconds),
            plan.tokens_per_second(), plan.mfu(),
            plan.total_steps
                ? fmt::format("; {} in all", duration_text(plan.step_seconds * static_cast<double>(*plan.total_steps)))
                : "");
}

void describe_list(std::string_view head, const std::vector<std::string>& items, Lines& lines) {
  for (const std::string& item : items) lines.add(head, "{}", item);
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> parameters_by_component(const Model& model) {
  std::vector<std::pair<std::string, int64_t>> components;
  for (const ParameterSpec& parameter : model.parameters()) {
    auto found = std::ranges::find(components, parameter.component, &std::pair<std::string, int64_t>::first);
    if (found == components.end()) found = components.insert(components.end(), {parameter.component, 0});
    found->second += parameter.shape.elements();
  }
  return components;
}

std::string describe(const RunPlan& plan) {
  Lines lines;
  describe_model(plan, lines);
  describe_steps(plan, lines);
  describe_precision(plan, lines);
  describe_memory(plan, lines);
  describe_time(plan, lines);
  describe_list("assumed", plan.assumptions, lines);
  describe_list("note", plan.warnings, lines);
  if (plan.fits()) lines.add("fits", "yes");
  describe_list("does not fit", plan.problems, lines);
  describe_list("would help", plan.remedies, lines);
  return lines.text;
}

}  // namespace ingot
