#include "bench_ablate.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/median.h"
#include "base/system.h"
#include "bench_train.h"
#include "command.h"
#include "graph/text.h"
#include "optim/step_graph.h"
#include "train/model_directory.h"
#include "train/recompute_choice.h"

namespace ingot::cli {
namespace {

constexpr std::string_view kConfigured = "as configured", kUnfused = "nothing fused";
constexpr uint64_t kAblationSeed = 1;

// What a program computed, to be compared: the loss and all gradients one behind the other.
struct Results {
  double loss = 0;
  std::vector<std::vector<float>> gradients;
};

struct Form {
  std::string name, against;
  std::vector<std::string> disabled;
  std::vector<RecomputeLevel> recompute;
  std::unique_ptr<Program> program;
  std::vector<double> seconds;
  Results results;
};

// A pass that makes the program faster or smaller; the others (folding, dead code) make what these can see.
bool is_fusion(std::string_view pass) {
  return pass.starts_with("fuse_") || pass.starts_with("pack_") || pass.starts_with("merge_");
}

std::vector<std::string> passes_that(bool (*wanted)(std::string_view)) {
  std::vector<std::string> names;
  for (const auto passes : {forward_passes(), backward_passes()})
    for (const Pass& pass : passes)
      if (wanted(pass.name)) names.emplace_back(pass.name);
  return names;
}

// In the order in which they are shown; what others are compared with comes first.
Result<std::vector<Form>> forms_of(const Model& model, const ProgramSettings& settings, const ThreadPool& pool) {
  const int64_t layers = model.config().num_hidden_layers;
  INGOT_ASSIGN(const auto configured, TrainingPrograms::plan(model, settings, pool));
  const std::vector<RecomputeLevel> levels = configured->passes().recompute;
  const std::vector<std::string> fusions = passes_that(is_fusion);
  std::vector<Form> forms;
  const auto add = [&](std::string name, std::string_view against, std::vector<std::string> disabled,
                       std::vector<RecomputeLevel> recompute) {
    disabled.insert(disabled.end(), settings.disabled_passes.begin(), settings.disabled_passes.end());
    forms.push_back({std::move(name), std::string(against), std::move(disabled), std::move(recompute), {}, {}, {}});
  };
  add(std::string(kConfigured), kConfigured, {}, levels);
  add(std::string(kUnfused), kConfigured, fusions, levels);
  for (const std::string& pass : fusions) {
    add("without " + pass, kConfigured, {pass}, levels);
    std::vector<std::string> others = fusions;
    std::erase(others, pass);
    add("only " + pass, kUnfused, std::move(others), levels);
  }
  for (const char* pass : {"fold*", "cse*"}) add(fmt::format("without {}", pass), kConfigured, {pass}, levels);
  INGOT_ASSIGN(const std::vector<int64_t> all, recomputed_layers({}, layers));
  for (const RecomputePolicy policy : {RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full})
    if (auto other = fixed_levels(policy, all, layers); other != levels)
      add(fmt::format("recompute {}", name_of(policy)), kConfigured, {}, std::move(other));
  return forms;
}

class Ablation {
 public:
  Ablation(const Model& model, const ProgramSettings& settings, const ThreadPool& pool)
      : model_(model), settings_(settings), pool_(pool) {}

  Result<std::vector<AblationRow>> run(const AblateOptions& options) {
    INGOT_ASSIGN(forms_, forms_of(model_, settings_, pool_));
    INGOT_TRY(compile());
    for (Form& form : forms_) INGOT_TRY(compute(form));
    for (int64_t round = 0; round < options.rounds; ++round)
      for (Form& form : forms_) INGOT_TRY(time(form));
    std::vector<AblationRow> rows;
    for (const Form& form : forms_) rows.push_back(row_of(form));
    return rows;
  }

 private:
  Status compile() {
    StepGraphOptions options;
    options.rows = settings_.rows;
    options.tokens = settings_.tokens;
    options.dropout = settings_.dropout;
    options.freeze = settings_.freeze;
    VariableLayout variables;
    int64_t workspace = 0, scratch = 0;
    for (Form& form : forms_) {
      PassContext context{.no_fuse = settings_.no_fuse,
                          .disabled = form.disabled,
                          .recompute = form.recompute,
                          .precision = settings_.precision};
      INGOT_ASSIGN(Graph graph, micro_step_graph(model_, options, context));
      add_variables_of(graph, variables);
      INGOT_ASSIGN(form.program, Program::create(std::move(graph), variables, pool_.threads()));
      workspace = std::max(workspace, form.program->plan().workspace_bytes);
      scratch = std::max(scratch, form.program->scratch_bytes());
    }
    INGOT_TRY(check_memory(variables, workspace + scratch * pool_.threads()));
    INGOT_ASSIGN(Arena arena, Arena::create(std::move(variables), pool_));
    INGOT_TRY(arena.reserve(workspace, scratch, pool_));
    arena_ = std::make_unique<Arena>(std::move(arena));
    initialize_weights(model_, kAblationSeed, *arena_, pool_);
    fill_weight_copies(*arena_);
    batch_ = random_batch(settings_.rows, settings_.tokens, model_.config().vocab_size, kAblationSeed);
    return {};
  }

  // All forms share one arena; the gradients of those that others are compared with, and of one more, are copied.
  static Status check_memory(const VariableLayout& variables, int64_t workspace) {
    constexpr int64_t kCopies = 3;
    int64_t needed = variables.bytes() + workspace;
    for (const Variable& variable : variables.variables())
      if (variable.name.starts_with(gradient_name(""))) needed += kCopies * variable.type.bytes();
    const auto available = static_cast<int64_t>(available_memory());
    if (needed <= available) return {};
    return usage_error(
        "the largest of the forms to be compared needs {} MB of memory, {} MB are available; use a smaller "
        "training.micro_batch_size, data.sequence_length or model",
        needed >> 20, available >> 20);
  }

  Result<double> step(const Form& form) const {
    return run_loss_program(*form.program, *arena_, pool_, batch_, 1.0f / static_cast<float>(batch_.counted),
                            {kAblationSeed, 1, 0, batch_.rows});
  }

  // A first run, which is also its warm-up.
  Status compute(Form& form) {
    INGOT_ASSIGN(form.results.loss, step(form));
    if (!std::isfinite(form.results.loss))
      return failed_error("{}: the loss is {}; there is nothing to compare", form.name, form.results.loss);
    for (const Variable& variable : arena_->variables().variables()) {
      if (!variable.name.starts_with(gradient_name(""))) continue;
      const auto values = arena_->variable(variable.name).span<float>();
      form.results.gradients.emplace_back(values.begin(), values.end());
    }
    INGOT_TRY(difference_of(form));
    const bool compared_with = form.name == kConfigured || form.name == kUnfused;
    if (!compared_with) form.results.gradients.clear();
    return {};
  }

  Status difference_of(const Form& form) {
    const Results &found = form.results, &expected = form_named(form.against).results;
    double largest = 0;
    for (size_t i = 0; i < expected.gradients.size(); ++i) {
      double difference = 0, scale = 0;
      for (size_t j = 0; j < expected.gradients[i].size(); ++j) {
        const double e = expected.gradients[i][j];
        if (!std::isfinite(found.gradients[i][j])) return failed_error("{}: a gradient is not finite", form.name);
        difference = std::max(difference, std::abs(found.gradients[i][j] - e));
        scale = std::max(scale, std::abs(e));
      }
      if (scale > 0) largest = std::max(largest, difference / scale);
    }
    gradient_difference_[form.name] = largest;
    return {};
  }

  Status time(Form& form) {
    const auto start = Clock::now();
    INGOT_TRY(step(form));
    form.seconds.push_back(seconds_since(start));
    return {};
  }

  const Form& form_named(std::string_view name) const { return *std::ranges::find(forms_, name, &Form::name); }

  AblationRow row_of(const Form& form) {
    const Form& other = form_named(form.against);
    AblationRow row{form.name, form.against};
    const double seconds = median(form.seconds);
    row.ms = seconds * 1e3;
    row.tokens_per_second = static_cast<double>(settings_.rows * settings_.tokens) / seconds;
    std::vector<double> ratios;
    for (size_t i = 0; i < form.seconds.size(); ++i) ratios.push_back(form.seconds[i] / other.seconds[i]);
    row.time_ratio = median(std::move(ratios));
    row.memory_bytes = form.program->plan().workspace_bytes;
    row.loss_difference = std::abs(form.results.loss - other.results.loss);
    row.gradient_difference = gradient_difference_[form.name];
    const int64_t other_bytes = other.program->plan().workspace_bytes;
    // "only" is on and what it is compared with off; elsewhere the other way round. Recomputation pays in memory.
    const bool on = form.name.starts_with("only ");
    const double saved = on ? 1 / row.time_ratio : row.time_ratio;
    const int64_t memory_saved = on ? other_bytes - row.memory_bytes : row.memory_bytes - other_bytes;
    const bool compared = on || form.name.starts_with("without ");
    row.same_program = &form != &other && print_graph(form.program->graph()) == print_graph(other.program->graph());
    row.pays = !compared || row.same_program || saved > 1 + kNoise || memory_saved > 0;
    return row;
  }

  const Model& model_;
  const ProgramSettings& settings_;
  const ThreadPool& pool_;
  std::vector<Form> forms_;
  std::map<std::string, double> gradient_difference_;
  std::unique_ptr<Arena> arena_;
  Batch batch_;
};

}  // namespace

Result<std::vector<AblationRow>> ablate(const Model& model, const ProgramSettings& settings,
                                        const AblateOptions& options, const ThreadPool& pool) {
  if (!settings.fuse) return usage_error("training.mode is eager: there is nothing to switch off");
  return Ablation(model, settings, pool).run(options);
}

void print_ablation(const std::vector<AblationRow>& rows, bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const AblationRow& row : rows)
      list.push_back({{"name", row.name},
                      {"against", row.against},
                      {"ms", row.ms},
                      {"tokens_per_second", row.tokens_per_second},
                      {"time_ratio", row.time_ratio},
                      {"memory_bytes", row.memory_bytes},
                      {"loss_difference", row.loss_difference},
                      {"gradient_difference", row.gradient_difference},
                      {"same_program", row.same_program},
                      {"pays", row.pays}});
    print_json({{"rows", list}});
    return;
  }
  std::cout << fmt::format("{:<36}{:>10}{:>10}{:>8}{:>12}{:>10}{:>10}\n", "forward and backward", "ms", "tokens/s",
                           "time ×", "memory MB", "loss ±", "grads ±");
  for (const AblationRow& row : rows)
    std::cout << fmt::format("{:<36}{:10.2f}{:10.0f}{:8.3f}{:12.1f}{:10.1e}{:10.1e}{}\n", row.name, row.ms,
                             row.tokens_per_second, row.time_ratio, static_cast<double>(row.memory_bytes) * 1e-6,
                             row.loss_difference, row.gradient_difference,
                             row.same_program ? "  has no place here"
                             : row.pays       ? ""
                                              : "  does not pay");
  std::cout << fmt::format("time × and differences: \"only\" beside \"{}\", all others beside \"{}\"\n", kUnfused,
                           kConfigured);
}

}  // namespace ingot::cli
