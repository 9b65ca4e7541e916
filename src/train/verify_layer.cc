#include "train/verify_layer.h"

#include <array>

#include "optim/step_graph.h"
#include "train/model_directory.h"
#include "train/verify_compare.h"
#include "train/verify_findings.h"

namespace ingot {
namespace {

// A program with its own memory and the weights that it reads.
struct Loaded {
  std::unique_ptr<Program> program;
  Arena arena;
};

class LayerVerifier {
 public:
  LayerVerifier(const Model& model, const fs::path& weights, const Reference& reference, const VerifyOptions& options,
                const ThreadPool& pool)
      : model_(model),
        weights_(weights),
        reference_(reference),
        options_(options),
        pool_(pool),
        findings_(reference, options) {
    layer_ = *options.layer;
    input_ = reference.find(state(layer_));
    output_ = reference.find(state(layer_ + 1));
    if (output_ == nullptr && layer_ + 1 == model.config().num_hidden_layers)
      final_norm_ = reference.find("final_norm");
    for (const ReferenceTensor& tensor : reference.tensors()) {
      const bool is_gradient = tensor.stage == ReferenceStage::gradient && tensor.layer == layer_;
      if (is_gradient || tensor.name == gradient_name(state(layer_))) gradients_.push_back(&tensor);
    }
  }

  Result<Verification> run() {
    if (input_ == nullptr)
      return input_error("{}: there is no tensor {}, which block {} starts from", reference_.path().string(),
                         state(layer_), layer_);
    if (output_ == nullptr && final_norm_ == nullptr && gradients_.empty())
      return input_error("{}: it holds nothing of layer {} to compare ({}, grad.NAME)", reference_.path().string(),
                         layer_, state(layer_ + 1));
    hidden_ = reference_.values(*input_);
    upstream_.assign(hidden_.size(), 0.0f);
    INGOT_TRY(check_output());
    if (findings_.ok() && !gradients_.empty()) INGOT_TRY(check_gradients());
    if (!findings_.ok()) INGOT_TRY(explain());
    return std::move(findings_.result());
  }

 private:
  static std::string state(int64_t layer) { return fmt::format("hidden_states.{}", layer); }

  StepGraphOptions graph_options() const {
    StepGraphOptions options;
    options.rows = reference_.batch().rows;
    options.tokens = reference_.batch().sequence_length;
    options.fuse = options_.fuse;
    options.dropout = false;
    return options;
  }

  Result<Loaded> load(const Model& model, Graph graph) const {
    VariableLayout variables;
    add_variables_of(graph, variables);
    INGOT_ASSIGN(auto program, Program::create(std::move(graph), variables, pool_.threads()));
    INGOT_ASSIGN(Arena arena, make_arena(variables, *program, pool_));
    INGOT_TRY(load_weights(weights_, model, arena));
    return Loaded{std::move(program), std::move(arena)};
  }
  Result<Loaded> load_block(const Model& model) const {
    PassContext context;
    context.precision = options_.precision;
    INGOT_ASSIGN(Graph graph, block_graph(model, layer_, graph_options(), context));
    return load(model, std::move(graph));
  }

  // Eager mode names the first op that makes a NaN or an infinity.
  Status execute(const Loaded& loaded, const std::vector<float>& hidden) {
    const Batch& batch = reference_.batch();
    const Shape tokens{batch.rows, batch.sequence_length};
    const auto integers = [&](const std::vector<int32_t>& values) {
      return ConstTensorView{reinterpret_cast<const std::byte*>(values.data()), DType::i32, tokens};
    };
    const auto floats = [&](const float* values, const Shape& shape) {
      return ConstTensorView{reinterpret_cast<const std::byte*>(values), DType::f32, shape};
    };
    const float scale = gradient_scale(options_), loss_scale = reference_.loss_scale() * scale;
    std::vector<float> upstream = upstream_;
    for (float& one : upstream) one *= scale;
    const std::array<ProgramInput, 7> inputs{{{"hidden", floats(hidden.data(), input_->shape)},
                                              {"hidden_grad", floats(upstream.data(), input_->shape)},
                                              {"ids", integers(batch.ids)},
                                              {"positions", integers(batch.positions)},
                                              {"first_visible", integers(batch.segment_start)},
                                              {"targets", integers(batch.targets)},
                                              {"loss_scale", floats(&loss_scale, {})}}};
    const NodeObserver observer = findings_.observer();
    return loaded.program->run(loaded.arena, pool_, inputs, {.batch = batch.rows}, options_.fuse ? nullptr : &observer);
  }

  std::vector<float> values(const Loaded& loaded, const std::string& output) const {
    const auto span = loaded.program->output(loaded.arena, output).span<float>();
    return unscaled(span, output.starts_with(gradient_name("")) ? gradient_scale(options_) : 1.0f);
  }

  bool add(const ReferenceTensor& tensor, std::span<const float> found) {
    const std::vector<float> expected = reference_.values(tensor);
    return findings_.add(tensor, compare(tensor, expected, found, options_.tolerance), expected, found);
  }

  Status check_output() {
    INGOT_ASSIGN(const Loaded block, load_block(model_));
    INGOT_TRY(execute(block, hidden_));
    found_ = values(block, state(layer_ + 1));
    if (output_ != nullptr) {
      add(*output_, found_);
    } else if (final_norm_ != nullptr) {
      INGOT_ASSIGN(const Loaded tail, load_tail());
      INGOT_TRY(execute(tail, found_));
      add(*final_norm_, values(tail, "final_norm"));
    }
    return {};
  }

  Result<Loaded> load_tail() const {
    PassContext context;
    context.precision = options_.precision;
    INGOT_ASSIGN(Graph graph, tail_graph(model_, layer_ + 1, graph_options(), context));
    return load(model_, std::move(graph));
  }

  Status find_upstream() {
    const std::string name = gradient_name(state(layer_ + 1));
    if (const ReferenceTensor* given = reference_.find(name)) {
      upstream_ = reference_.values(*given);
      return {};
    }
    INGOT_ASSIGN(const Loaded tail, load_tail());
    INGOT_TRY(execute(tail, output_ != nullptr ? reference_.values(*output_) : found_));
    upstream_ = values(tail, name);
    own_upstream_ = true;
    return {};
  }

  Status check_gradients() {
    INGOT_TRY(find_upstream());
    INGOT_ASSIGN(const Loaded block, load_block(model_));
    INGOT_TRY(execute(block, hidden_));
    for (const ReferenceTensor* tensor : gradients_) {
      const bool of_state = tensor->stage == ReferenceStage::state_gradient;
      if (!add(*tensor, values(block, of_state ? tensor->source : gradient_name(tensor->source)))) return {};
    }
    return {};
  }

  // ---- after a difference

  Status explain() {
    std::vector<std::string> notes;
    if (own_upstream_)
      notes.push_back(
          fmt::format("the gradient that reaches this block is that of our blocks behind it, since the file has no {}",
                      gradient_name(state(layer_ + 1))));
    const ReferenceTensor* failed = findings_.failed();
    if (!options_.explain || failed != output_) return findings_.explain(model_, {}, std::move(notes));
    return findings_.explain(
        model_,
        [&](const Model& model, const Conjecture& what) -> Result<Findings::Values> {
          const auto block = load_block(model);
          if (!block.ok()) return Findings::Values();  // the checkpoint is none of such a model
          if (what.edit) what.edit(model, block->arena);
          INGOT_TRY(execute(*block, hidden_));
          return Findings::Values(values(*block, failed->source));
        },
        std::move(notes));
  }

  const Model& model_;
  const fs::path& weights_;
  const Reference& reference_;
  const VerifyOptions& options_;
  const ThreadPool& pool_;
  int64_t layer_ = 0;
  const ReferenceTensor *input_ = nullptr, *output_ = nullptr;
  const ReferenceTensor* final_norm_ = nullptr;  // what the last block's output is judged by where the file has it not
  std::vector<const ReferenceTensor*> gradients_;
  std::vector<float> hidden_, found_, upstream_;  // in, out, and the gradient by what the block hands on
  bool own_upstream_ = false;
  Findings findings_;
};

}  // namespace

Result<Verification> verify_layer(const Model& model, const fs::path& weights, const Reference& reference,
                                  const VerifyOptions& options, const ThreadPool& pool) {
  return LayerVerifier(model, weights, reference, options, pool).run();
}

}  // namespace ingot
