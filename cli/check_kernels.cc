#include "check_kernels.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/rng.h"
#include "data/sequences.h"
#include "kernels/instruction_set.h"
#include "ops/interpret.h"
#include "train/model_directory.h"
#include "train/programs.h"

namespace ingot::cli {
namespace {

constexpr double kTolerance = 1e-4;
constexpr uint64_t kCheckSeed = 5;
constexpr double kRate = 1e-2;
constexpr int64_t kRows = 2, kTokens = 11, kVocabulary = 53;

// Between them every kernel that training uses; sizes that fill no vector.
struct TinyModel {
  std::string_view name, config;
};
constexpr TinyModel kModels[] = {
    {"gpt2", R"({"model_type": "gpt2", "vocab_size": 53, "n_positions": 16, "n_embd": 18, "n_layer": 2, "n_head": 3})"},
    {"llama", R"({"model_type": "llama", "vocab_size": 53, "hidden_size": 20, "intermediate_size": 37,
                  "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1})"}};

using Tensors = std::map<std::string, RefTensor>;

Batch tiny_batch() {
  Batch batch;
  batch.resize(kRows, kTokens);
  for (int64_t row = 0; row < kRows; ++row) {
    const RowView view = batch.row(row);
    for (size_t t = 0; t < view.ids.size(); ++t)
      view.ids[t] = static_cast<int32_t>(
          bounded_at(stream_key(kCheckSeed, "check.tokens"), static_cast<uint64_t>(row * kTokens) + t, kVocabulary));
    fill_as_one_document(view);
  }
  batch.counted = kRows * (kTokens - 1);
  return batch;
}

float scale_of(const Batch& batch) {
  return 1.0f / static_cast<float>(batch.counted);
}

RefTensor tensor_of(const std::vector<int32_t>& values) {
  return {{kRows, kTokens}, {values.begin(), values.end()}};
}

RefTensor tensor_of(const TensorView& view) {
  const auto values = view.span<float>();
  return {view.shape, {values.begin(), values.end()}};
}

// The largest difference between what the kernels computed and what is right, over tensors.
class Comparison {
 public:
  Comparison(std::string isa, std::string_view model) { check_.isa = std::move(isa), check_.model = model; }

  void compare(const std::string& name, const RefTensor& expected, const RefTensor& actual) {
    double largest = 0, difference = 0;
    for (size_t i = 0; i < expected.data.size(); ++i) {
      largest = std::max(largest, std::abs(expected.data[i]));
      const double d = std::abs(expected.data[i] - actual.data[i]);
      difference = std::isfinite(d) ? std::max(difference, d) : INFINITY;
    }
    // Some gradients are zero but for rounding (the biases of keys).
    const double error = difference / std::max(largest, 1e-3);
    if (error <= check_.error) return;
    check_.error = error;
    check_.where = name;
  }
  const KernelCheck& result() const { return check_; }

 private:
  KernelCheck check_;
};

// Loss and gradients by the plain ops, unfused, in double.
Result<Tensors> reference_step(const Model& model, const Batch& batch, const Arena& weights) {
  StepGraphOptions options;
  options.rows = kRows;
  options.tokens = kTokens;
  options.fuse = false;
  options.dropout = false;
  PassContext context;
  INGOT_ASSIGN(const Graph graph, micro_step_graph(model, options, context));
  Tensors sources{{"ids", tensor_of(batch.ids)},
                  {"positions", tensor_of(batch.positions)},
                  {"first_visible", tensor_of(batch.segment_start)},
                  {"targets", tensor_of(batch.targets)},
                  {"loss_scale", {{}, {scale_of(batch)}}}};
  for (const Source& source : graph.sources)
    if (source.kind != SourceKind::input) sources[source.name] = tensor_of(weights.variable(source.name));
  return interpret_results(graph, sources);
}

// The variables after the first update from those in the arena.
Tensors reference_update(const Graph& graph, const Arena& arena) {
  const auto control = update_control(kRate, {}, 1);
  Tensors sources{{"control", {{3}, {control.begin(), control.end()}}}, {"gradient_scale", {{}, {1}}}};
  for (const Source& source : graph.sources)
    if (source.kind != SourceKind::input) sources[source.name] = tensor_of(arena.variable(source.name));
  return interpret_results(graph, sources);
}

Result<KernelCheck> check_path(const std::string& isa, const TinyModel& tiny, const ThreadPool& pool) {
  INGOT_ASSIGN(const Model model, Model::from_json(tiny.config, "check"));
  ProgramSettings settings;
  settings.rows = kRows;
  settings.tokens = kTokens;
  settings.dropout = false;
  INGOT_ASSIGN(const auto programs, TrainingPrograms::create(model, settings, pool));
  const Arena& arena = programs->arena();
  initialize_weights(model, kCheckSeed, arena, pool);
  const Batch batch = tiny_batch();
  INGOT_ASSIGN(const Tensors step, reference_step(model, batch, arena));

  Comparison comparison(isa, tiny.name);
  INGOT_ASSIGN(const double loss, programs->micro_step(batch, scale_of(batch), false, {kCheckSeed, 1, 0, kRows}));
  comparison.compare("loss", step.at("loss"), {{}, {loss}});
  for (const TrainedParameter& parameter : programs->trained()) {
    const std::string name = gradient_name(parameter.name);
    comparison.compare(name, step.at(name), tensor_of(arena.variable(name)));
  }
  // From the gradients as they are: AdamW's first update is their sign, which rounding may turn.
  const Tensors update = reference_update(programs->update_program().graph(), arena);
  INGOT_ASSIGN([[maybe_unused]] const UpdateResult done, programs->update(kRate, 1));
  for (const TrainedParameter& parameter : programs->trained())
    comparison.compare(parameter.name, update.at(parameter.name), tensor_of(arena.variable(parameter.name)));
  return comparison.result();
}

Status check_models(const std::string& isa, const ThreadPool& pool, std::vector<KernelCheck>& checks) {
  INGOT_TRY(kernels::choose_instruction_set(isa));
  for (const TinyModel& tiny : kModels) {
    INGOT_ASSIGN(KernelCheck check, check_path(isa, tiny, pool));
    checks.push_back(std::move(check));
  }
  return {};
}

}  // namespace

bool KernelCheck::ok() const {
  return error <= kTolerance;
}

Result<std::vector<KernelCheck>> check_kernel_paths(const ThreadPool& pool) {
  const std::string before = kernels::instruction_set();
  std::vector<KernelCheck> checks;
  Status status;
  for (const std::string& isa : kernels::all_instruction_sets())
    if (status.ok()) status = check_models(isa, pool, checks);
  INGOT_TRY(kernels::choose_instruction_set(before));
  INGOT_TRY(status);
  return checks;
}

}  // namespace ingot::cli
