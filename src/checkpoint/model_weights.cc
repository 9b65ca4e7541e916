#include "checkpoint/model_weights.h"

#include <algorithm>
#include <set>

#include "base/log.h"

namespace ingot {
namespace {

bool is_saved_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with("rotary_emb.inv_freq");
}

Status check_tensor(const SafetensorsModel::Tensor& tensor, const ParameterSpec& parameter) {
  const TensorInfo& info = tensor.info;
  if (info.shape != parameter.shape)
    return input_error("{}: the tensor {} has shape {}, the model's configuration says {}", tensor.file.string(),
                       info.name, info.shape.to_string(), parameter.shape.to_string());
  if (!is_float(info.dtype))
    return input_error("{}: the tensor {} holds {}, expected floating point", tensor.file.string(), info.name,
                       name_of(info.dtype));
  return {};
}

// A tied head that is in the file all the same, and masks that old versions saved, say nothing that the model needs.
Status check_left_over(std::set<std::string> names, const Model& model, const fs::path& where) {
  std::erase_if(names, [&](const std::string& name) {
    const bool is_tied_head = name.ends_with("lm_head.weight") && model.config().tie_word_embeddings;
    if (is_tied_head)
      log_info("{}: lm_head.weight is tied to the embedding by the configuration; the embedding is used",
               where.string());
    return is_saved_buffer(name) || is_tied_head;
  });
  if (names.empty()) return {};
  return input_error("{}: the tensor {} has no place in the model ({} such tensors)", where.string(), *names.begin(),
                     names.size());
}

}  // namespace

Result<std::vector<const SafetensorsModel::Tensor*>> match_weights(const SafetensorsModel& weights, const Model& model,
                                                                   const fs::path& where) {
  const bool prefixed = weights.find("transformer.wte.weight") != nullptr || weights.find("wte.weight") == nullptr;
  const std::string prefix = prefixed ? "" : "transformer.";
  std::set<std::string> left_over;
  for (const SafetensorsModel::Tensor& tensor : weights.tensors()) left_over.insert(prefix + tensor.info.name);
  std::vector<const SafetensorsModel::Tensor*> matched;
  for (const ParameterSpec& parameter : model.parameters()) {
    const bool inside = !prefixed && parameter.name.starts_with(prefix);  // the head is outside
    const SafetensorsModel::Tensor* tensor =
        weights.find(inside ? parameter.name.substr(prefix.size()) : parameter.name);
    if (tensor == nullptr)
      return input_error("{}: the tensor {} {} of the model is missing", where.string(), parameter.name,
                         parameter.shape.to_string());
    INGOT_TRY(check_tensor(*tensor, parameter));
    left_over.erase(prefix + tensor->info.name);
    matched.push_back(tensor);
  }
  INGOT_TRY(check_left_over(std::move(left_over), model, where));
  return matched;
}

}  // namespace ingot
