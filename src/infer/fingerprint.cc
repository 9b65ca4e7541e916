#include "infer/fingerprint.h"

#include "checkpoint/reader.h"

namespace ingot {

Result<std::string> model_fingerprint(const LoadedModel& model) {
  INGOT_ASSIGN(const SafetensorsModel weights, open_weights(model.directory));
  StreamHash hash;
  const auto add = [&](std::string_view text) { hash.add(std::as_bytes(std::span(text.data(), text.size()))); };
  add(model.model.to_config_json());
  add(model.tokenizer ? hash_text(model.tokenizer->fingerprint()) : "no tokenizer");
  for (const SafetensorsModel::Tensor& tensor : weights.tensors()) {
    const ConstTensorView view = SafetensorsModel::view(tensor);
    add(fmt::format("{} {} {} ", tensor.info.name, name_of(view.dtype), view.shape.to_string()));
    hash.add({view.data, view.bytes()});
  }
  return hash_text(hash.digest());
}

}  // namespace ingot
