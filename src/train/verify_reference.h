// A reference run: the safetensors file in which another implementation wrote what it computed (reference.py's format):
// input_ids, labels and document_ids i64 [B,T] (labels unshifted, -100: ignored; document_ids optional), and any of
// hidden_states.K and final_norm [B,T,C], logits [B,T,V], loss [], grad.hidden_states.K [B,T,C], grad.NAME, and of N
// optimizer steps on the same batch train.losses and train.grad_norms [N] and after.NAME. The metadata entry
// "optimizer" is a JSON object with the settings of AdamW. docs/migrate.md describes it for users.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "data/batch.h"
#include "models/model.h"

namespace ingot {

// What a tensor of a reference is; the stages are in order of execution.
enum class ReferenceStage { activation, loss, state_gradient, gradient, step_losses, step_norms, parameter_after };

struct ReferenceTensor {
  std::string name;  // in the file
  ReferenceStage stage = ReferenceStage::activation;
  std::string source;  // the program's output, or the model's parameter
  Shape shape;
  int64_t layer = kNone;  // the block, from 0, whose parameter it is of; kNone: none
};

struct ReferenceOptimizer {
  double learning_rate = 0, eps = 0, weight_decay = 0, max_grad_norm = 0;
  std::array<double, 2> betas{};
};

class Reference {
 public:
  // Reads and checks the whole file against the model: names, shapes, ids, labels. Errors: input, naming the tensor.
  static Result<Reference> open(const fs::path& path, const Model& model);

  const fs::path& path() const { return file_.path(); }
  const Batch& batch() const { return batch_; }
  // One over the targets that count; 0 where none does.
  float loss_scale() const { return batch_.counted > 0 ? 1.0f / static_cast<float>(batch_.counted) : 0.0f; }
  // In order of execution: forward, loss, gradients from the last parameter used to the first, optimizer steps.
  const std::vector<ReferenceTensor>& tensors() const { return tensors_; }
  std::vector<float> values(const ReferenceTensor& tensor) const;
  const ReferenceTensor* find(std::string_view name) const;  // nullptr where the file has it not

  int64_t steps() const { return steps_; }  // 0: none
  const ReferenceOptimizer& optimizer() const { return optimizer_; }

 private:
  explicit Reference(SafetensorsFile file) : file_(std::move(file)) {}
  Result<std::vector<int64_t>> integers(std::string_view name, int64_t low, int64_t high) const;
  Status read_batch(const Model& model);
  Status read_documents(const std::vector<int64_t>& documents);
  Status list_tensors(const Model& model);
  Status list(ReferenceStage stage, const std::string& name, const std::string& source, const Shape& shape,
              int64_t layer = kNone);
  Status list_parameters(const Model& model, ReferenceStage stage, const std::string& prefix);
  Status refuse_unknown() const;
  Status read_optimizer();

  SafetensorsFile file_;
  Batch batch_;
  std::vector<ReferenceTensor> tensors_;
  int64_t steps_ = 0;
  ReferenceOptimizer optimizer_;
};

}  // namespace ingot
