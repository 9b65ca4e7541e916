#include "train/verify.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/log.h"
#include "train/model_directory.h"
#include "train/programs.h"
#include "train/verify_compare.h"
#include "train/verify_findings.h"
#include "train/verify_layer.h"

namespace ingot {
namespace {

class Verifier {
 public:
  Verifier(const Model& model, const fs::path& weights, const Reference& reference, const VerifyOptions& options,
           const ThreadPool& pool)
      : model_(model),
        weights_(weights),
        reference_(reference),
        options_(options),
        pool_(pool),
        findings_(reference, options) {
    for (const ReferenceTensor& tensor : reference_.tensors())
      if (is_compared(tensor))
        tensors_.push_back(&tensor);
      else
        findings_.result().not_compared.push_back(tensor.name);
  }

  Result<Verification> run() {
    INGOT_TRY(check_activations());
    if (findings_.ok()) INGOT_TRY(check_training());
    if (!findings_.ok()) INGOT_TRY(explain());
    return std::move(findings_.result());
  }

 private:
  bool is_compared(const ReferenceTensor& tensor) const {
    const bool follows_curve =
        tensor.stage == ReferenceStage::step_norms || tensor.stage == ReferenceStage::parameter_after;
    return !options_.curve_tolerance || !follows_curve;
  }
  bool has(ReferenceStage stage) const {
    return std::ranges::any_of(tensors_, [&](const ReferenceTensor* t) { return t->stage == stage; });
  }

  Result<std::unique_ptr<TrainingPrograms>> load(const Model& model, bool keep_activations) const {
    const ReferenceOptimizer& optimizer = reference_.optimizer();
    ProgramSettings settings;
    settings.fuse = options_.fuse;
    settings.dropout = false;
    settings.precision = options_.precision;
    settings.keep_activations = keep_activations;
    settings.keep_state_gradients = keep_activations && has(ReferenceStage::state_gradient);
    settings.optimizer = {OptimizerType::adamw, optimizer.betas, optimizer.eps};
    settings.weight_decay = optimizer.weight_decay;
    settings.max_grad_norm = optimizer.max_grad_norm;
    settings.rows = reference_.batch().rows;
    settings.tokens = reference_.batch().sequence_length;
    INGOT_ASSIGN(auto programs, TrainingPrograms::create(model, settings, pool_));
    INGOT_TRY(load_weights(weights_, model, programs->arena()));
    return programs;
  }

  // Runs the batch, forward and backward; eager mode names the first op that makes a NaN or an infinity.
  Result<double> step(TrainingPrograms& programs) {
    const NodeObserver observer = findings_.observer();
    const Batch& batch = reference_.batch();
    const float scale = reference_.loss_scale() * gradient_scale(options_);
    INGOT_ASSIGN(const double loss,
                 programs.micro_step(batch, scale, false, {.batch = batch.rows}, options_.fuse ? nullptr : &observer));
    return loss / gradient_scale(options_);
  }

  // Adds a comparison; false where it is the first that fails.
  bool add(const ReferenceTensor& tensor, std::span<const float> found) {
    const std::vector<float> expected = reference_.values(tensor);
    if (tensor.stage == ReferenceStage::gradient && reference_.steps() > 0)
      undetermined_[tensor.source] = {rounding_errors(expected, found),
                                      reference_.optimizer().learning_rate * static_cast<double>(reference_.steps())};
    const auto undetermined =
        tensor.stage == ReferenceStage::parameter_after ? undetermined_.find(tensor.source) : undetermined_.end();
    const bool is_curve = tensor.stage == ReferenceStage::step_losses && options_.curve_tolerance;
    TensorComparison comparison =
        is_curve ? compare_curve(tensor, expected, found, *options_.curve_tolerance)
                 : compare(tensor, expected, found, options_.tolerance,
                           undetermined != undetermined_.end() ? undetermined->second : Undetermined());
    return findings_.add(tensor, std::move(comparison), expected, found);
  }

  Result<std::span<const float>> activation(TrainingPrograms& programs, const ReferenceTensor& tensor) const {
    INGOT_ASSIGN(const Program* program,
                 programs.micro_step_program(reference_.batch().rows, reference_.batch().sequence_length, false));
    return program->output(programs.arena(), tensor.source).span<float>();
  }

  Status check_activations() {
    if (!has(ReferenceStage::activation) && !has(ReferenceStage::state_gradient)) return {};
    INGOT_ASSIGN(const auto programs, load(model_, true));
    INGOT_ASSIGN([[maybe_unused]] const double loss, step(*programs));
    for (const ReferenceTensor* tensor : tensors_) {
      const bool is_gradient = tensor->stage == ReferenceStage::state_gradient;
      if (tensor->stage != ReferenceStage::activation && !is_gradient) continue;
      INGOT_ASSIGN(const auto found, activation(*programs, *tensor));
      if (is_gradient)
        state_gradients_[tensor->name] = unscaled(found, gradient_scale(options_));
      else if (!add(*tensor, found))
        return {};
    }
    return {};
  }

  Status check_training() {
    if (std::ranges::all_of(tensors_, [](const auto* t) { return t->stage == ReferenceStage::activation; })) return {};
    INGOT_ASSIGN(const auto programs, load(model_, false));
    INGOT_ASSIGN(const double loss, step(*programs));
    std::vector<float> losses{static_cast<float>(loss)}, norms;
    for (const ReferenceTensor* tensor : tensors_) {
      if (tensor->stage == ReferenceStage::loss && !add(*tensor, losses)) return {};
      if (tensor->stage == ReferenceStage::state_gradient && !add(*tensor, state_gradients_[tensor->name])) return {};
      if (tensor->stage != ReferenceStage::gradient) continue;
      const auto gradient = programs->arena().variable(gradient_name(tensor->source)).span<float>();
      if (!add(*tensor, unscaled(gradient, gradient_scale(options_)))) return {};
    }
    if (reference_.steps() == 0) return {};
    INGOT_TRY(train(*programs, losses, norms));
    for (const ReferenceTensor* tensor : tensors_) {
      if (tensor->stage == ReferenceStage::step_losses && !add(*tensor, losses)) return {};
      if (tensor->stage == ReferenceStage::step_norms && !add(*tensor, norms)) return {};
      if (tensor->stage != ReferenceStage::parameter_after) continue;
      if (!add(*tensor, programs->arena().variable(tensor->source).span<float>())) return {};
    }
    return {};
  }

  // The optimizer steps, the first of which has its gradients already.
  Status train(TrainingPrograms& programs, std::vector<float>& losses, std::vector<float>& norms) {
    for (int64_t t = 1; t <= reference_.steps(); ++t) {
      if (t > 1) {
        INGOT_ASSIGN(const double loss, step(programs));
        losses.push_back(static_cast<float>(loss));
      }
      INGOT_ASSIGN(const UpdateResult update,
                   programs.update(reference_.optimizer().learning_rate, t, nullptr, gradient_scale(options_)));
      norms.push_back(static_cast<float>(update.grad_norm));
    }
    return {};
  }

  // ---- after a difference

  Status explain() {
    const ReferenceTensor& failed = *findings_.failed();
    if (!options_.explain || failed.stage != ReferenceStage::activation) return findings_.explain(model_, {});
    return findings_.explain(model_, [&](const Model& model, const Conjecture& what) -> Result<Findings::Values> {
      const auto programs = load(model, true);
      if (!programs.ok()) return Findings::Values();  // the checkpoint is none of such a model
      if (what.edit) what.edit(model, (*programs)->arena());
      INGOT_ASSIGN([[maybe_unused]] const double loss, step(**programs));
      INGOT_ASSIGN(const auto found, activation(**programs, failed));
      return Findings::Values({found.begin(), found.end()});
    });
  }

  const Model& model_;
  const fs::path& weights_;
  const Reference& reference_;
  const VerifyOptions& options_;
  const ThreadPool& pool_;
  std::vector<const ReferenceTensor*> tensors_;
  Findings findings_;
  std::map<std::string, Undetermined> undetermined_;  // by parameter
  // By name: they are compared after the loss, when the program that made them is gone.
  std::map<std::string, std::vector<float>> state_gradients_;
};

std::string coordinates(int64_t element, const Shape& shape) {
  std::string out = "[";
  const Shape strides = dense_strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis)
    out += fmt::format("{}{}", axis > 0 ? "," : "", element / strides[axis] % shape[axis]);
  return out + "]";
}

}  // namespace

Result<Verification> verify_model(const Model& model, const fs::path& weights, const fs::path& reference,
                                  const VerifyOptions& options, const ThreadPool& pool) {
  const int64_t layers = model.config().num_hidden_layers;
  if (options.layer && (*options.layer < 0 || *options.layer >= layers))
    return usage_error("there is no layer {}: the model has the layers 0 to {}", *options.layer, layers - 1);
  INGOT_ASSIGN(const Reference expected, Reference::open(reference, model));
  if (options.layer) return verify_layer(model, weights, expected, options, pool);
  return Verifier(model, weights, expected, options, pool).run();
}

double usual_tolerance(DType dtype) {
  if (dtype == DType::f32) return VerifyOptions().tolerance;
  return dtype == DType::bf16 ? 0.15 : 0.025;
}

std::string describe(const Verification& verification) {
  size_t width = 6;
  for (const TensorComparison& c : verification.tensors) width = std::max(width, c.name.size());
  std::string out = fmt::format("{:<{}}  {:>12}  {:>12}  {:>12}\n", "tensor", width, "max_abs", "max_rel", "allowed");
  for (const TensorComparison& c : verification.tensors)
    out += fmt::format("{:<{}}  {:>12.3e}  {:>12.3e}  {:>12.3e}  {}\n", c.name, width, c.max_abs, c.max_rel, c.limit,
                       !c.ok                ? "DIFFERS"
                       : c.undetermined > 0 ? fmt::format("ok ({} entries of no gradient aside)", c.undetermined)
                                            : "ok");
  if (!verification.not_compared.empty())
    out += fmt::format("not compared: {}\n", fmt::join(verification.not_compared, ", "));
  if (verification.ok) return out + fmt::format("\nall {} tensors agree\n", verification.tensors.size());
  const TensorComparison& c = verification.tensors.back();
  out += fmt::format("\nthe first that differs: {} {}, most at {}: expected {:.9g}, found {:.9g}\n", c.name,
                     c.shape.to_string(), coordinates(c.worst, c.shape), c.expected, c.found);
  if (!verification.causes.empty()) out += "likely causes:\n";
  for (const std::string& cause : verification.causes) out += "  - " + cause + "\n";
  return out;
}

}  // namespace ingot
