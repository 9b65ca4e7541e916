#include "train/verify_reference.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_text.h"
#include "checkpoint/convert.h"
#include "optim/update_graph.h"

namespace ingot {
namespace {

constexpr std::string_view kPrefix = "transformer.";  // which some GPT-2 checkpoints have and some have not

// The block that a parameter belongs to: the first part of its name that is a number.
int64_t layer_of(std::string_view name) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    int64_t layer = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), layer);
    if (error == std::errc() && end == part.data() + part.size()) return layer;
    name.remove_prefix(std::min(name.size(), part.size() + 1));
  }
  return kNone;
}

template <class T>
std::vector<int64_t> widened(const std::byte* data, size_t count) {
  std::vector<int64_t> out(count);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    out[i] = value;
  }
  return out;
}

}  // namespace

Result<Reference> Reference::open(const fs::path& path, const Model& model) {
  INGOT_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  Reference reference(std::move(file));
  INGOT_TRY(reference.read_batch(model));
  INGOT_TRY(reference.list_tensors(model));
  INGOT_TRY(reference.refuse_unknown());
  if (reference.steps_ > 0) INGOT_TRY(reference.read_optimizer());
  return reference;
}

std::vector<float> Reference::values(const ReferenceTensor& tensor) const {
  std::vector<float> out(static_cast<size_t>(tensor.shape.elements()));
  convert_to_f32(file_.view(tensor.name), out);
  return out;
}

const ReferenceTensor* Reference::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &ReferenceTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

Result<std::vector<int64_t>> Reference::integers(std::string_view name, int64_t low, int64_t high) const {
  const TensorInfo* info = file_.find(name);
  if (info == nullptr)
    return input_error("{}: there is no tensor {}, which every reference has", path().string(), name);
  if (info->dtype != DType::i64 && info->dtype != DType::i32)
    return input_error("{}: {} holds {}, expected i64", path().string(), name, name_of(info->dtype));
  const auto count = static_cast<size_t>(info->shape.elements());
  const std::byte* data = file_.view(*info).data;
  std::vector<int64_t> values =
      info->dtype == DType::i64 ? widened<int64_t>(data, count) : widened<int32_t>(data, count);
  for (size_t i = 0; i < count; ++i) {
    const bool ignored = name == "labels" && values[i] == kIgnored;
    if (!ignored && (values[i] < low || values[i] >= high))
      return input_error("{}: element {} of {} is {}, expected {} to {}", path().string(), i, name, values[i], low,
                         high - 1);
  }
  return values;
}

Status Reference::read_batch(const Model& model) {
  const int64_t vocab_size = model.config().vocab_size;
  INGOT_ASSIGN(const auto ids, integers("input_ids", 0, vocab_size));
  INGOT_ASSIGN(const auto labels, integers("labels", 0, vocab_size));
  const Shape shape = file_.find("input_ids")->shape;
  if (shape.rank() != 2 || shape.elements() == 0)
    return input_error("{}: input_ids has shape {}, expected [batch, tokens]", path().string(), shape.to_string());
  for (const std::string_view other : {"labels", "document_ids"})
    if (const TensorInfo* info = file_.find(other); info != nullptr && !(info->shape == shape))
      return input_error("{}: {} has shape {}, input_ids has {}", path().string(), other, info->shape.to_string(),
                         shape.to_string());
  INGOT_TRY(model.check_length(shape[1], path().string()));

  batch_.resize(shape[0], shape[1]);
  batch_.tokens = shape.elements();
  batch_.counted = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    batch_.ids[i] = static_cast<int32_t>(ids[i]);
    const bool is_last = (static_cast<int64_t>(i) + 1) % shape[1] == 0;
    batch_.targets[i] = is_last ? kIgnored : static_cast<int32_t>(labels[i + 1]);
    batch_.counted += batch_.targets[i] != kIgnored ? 1 : 0;
  }
  std::vector<int64_t> documents(ids.size(), 0);
  if (file_.find("document_ids") != nullptr) {
    INGOT_ASSIGN(documents, integers("document_ids", INT64_MIN, INT64_MAX));
  }
  return read_documents(documents);
}

// Positions restart, and attention does not look back, where the document changes.
Status Reference::read_documents(const std::vector<int64_t>& documents) {
  const int64_t tokens = batch_.sequence_length;
  for (int64_t row = 0; row < batch_.rows; ++row) {
    std::set<int64_t> seen;
    int32_t start = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      const auto i = static_cast<size_t>(row * tokens + t);
      if (t == 0 || documents[i] != documents[i - 1]) {
        start = static_cast<int32_t>(t);
        if (!seen.insert(documents[i]).second)
          return input_error(
              "{}: in row {} of document_ids the document {} comes back at token {}; a document's tokens "
              "must stand together",
              path().string(), row, documents[i], t);
      }
      batch_.segment_start[i] = start;
      batch_.positions[i] = static_cast<int32_t>(t) - start;
    }
  }
  return {};
}

Status Reference::list(ReferenceStage stage, const std::string& name, const std::string& source, const Shape& shape,
                       int64_t layer) {
  const TensorInfo* info = file_.find(name);
  if (info == nullptr) return {};
  if (!(info->shape == shape))
    return input_error("{}: {} has shape {}, the model's is {}", path().string(), name, info->shape.to_string(),
                       shape.to_string());
  if (!is_float(info->dtype))
    return input_error("{}: {} holds {}, expected floating point", path().string(), name, name_of(info->dtype));
  tensors_.push_back({name, stage, source, shape, layer});
  return {};
}

Status Reference::list_parameters(const Model& model, ReferenceStage stage, const std::string& prefix) {
  std::vector<ParameterSpec> parameters(model.parameters().begin(), model.parameters().end());
  if (stage == ReferenceStage::gradient) std::ranges::reverse(parameters);  // the last one used has the first gradient
  for (const ParameterSpec& parameter : parameters) {
    std::string name = prefix + parameter.name;
    if (file_.find(name) == nullptr && parameter.name.starts_with(kPrefix))
      name = prefix + parameter.name.substr(kPrefix.size());
    INGOT_TRY(list(stage, name, parameter.name, parameter.shape, layer_of(parameter.name)));
  }
  return {};
}

Status Reference::list_tensors(const Model& model) {
  const ModelConfig& config = model.config();
  const Shape hidden{batch_.rows, batch_.sequence_length, config.hidden_size};
  for (int64_t k = 0; k <= config.num_hidden_layers; ++k) {
    const std::string name = fmt::format("hidden_states.{}", k);
    INGOT_TRY(list(ReferenceStage::activation, name, name, hidden));
  }
  INGOT_TRY(list(ReferenceStage::activation, "final_norm", "final_norm", hidden));
  INGOT_TRY(
      list(ReferenceStage::activation, "logits", "logits", {batch_.rows, batch_.sequence_length, config.vocab_size}));
  INGOT_TRY(list(ReferenceStage::loss, "loss", "loss", {}));
  for (int64_t k = config.num_hidden_layers; k >= 0; --k) {
    const std::string name = gradient_name(fmt::format("hidden_states.{}", k));
    INGOT_TRY(list(ReferenceStage::state_gradient, name, name, hidden));
  }
  INGOT_TRY(list_parameters(model, ReferenceStage::gradient, "grad."));
  if (const TensorInfo* losses = file_.find("train.losses")) {
    if (losses->shape.rank() != 1 || losses->shape.elements() == 0)
      return input_error("{}: train.losses has shape {}, expected [steps]", path().string(), losses->shape.to_string());
    steps_ = losses->shape[0];
    INGOT_TRY(list(ReferenceStage::step_losses, "train.losses", "loss", {steps_}));
    INGOT_TRY(list(ReferenceStage::step_norms, "train.grad_norms", "clip", {steps_}));
    INGOT_TRY(list_parameters(model, ReferenceStage::parameter_after, "after."));
  }
  if (tensors_.empty())
    return input_error("{}: it holds nothing to compare (hidden_states.0, logits, loss, grad.NAME, train.losses, …)",
                       path().string());
  return {};
}

Status Reference::refuse_unknown() const {
  std::set<std::string> known{"input_ids", "labels", "document_ids"};
  for (const ReferenceTensor& tensor : tensors_) known.insert(tensor.name);
  for (const TensorInfo& info : file_.tensors())
    if (!known.contains(info.name))
      return input_error("{}: the model has nothing that the tensor {} {} could be compared with", path().string(),
                         info.name, info.shape.to_string());
  return {};
}

Status Reference::read_optimizer() {
  const auto entry = file_.metadata().find("optimizer");
  if (entry == file_.metadata().end())
    return input_error("{}: train.losses is there, but the metadata entry \"optimizer\" (AdamW's settings) is not",
                       path().string());
  const auto json = parse_json<nlohmann::json>(entry->second);
  const auto broken = [&](std::string_view what) {
    return input_error("{}: metadata \"optimizer\": {} (found {})", path().string(), what, entry->second);
  };
  if (!json.is_object()) return broken("expected a JSON object");
  if (json.value("type", nlohmann::json()) != "adamw") return broken("expected \"type\": \"adamw\"");
  for (auto [key, field] : {std::pair{"learning_rate", &optimizer_.learning_rate},
                            {"eps", &optimizer_.eps},
                            {"weight_decay", &optimizer_.weight_decay},
                            {"max_grad_norm", &optimizer_.max_grad_norm}}) {
    if (!json.contains(key) || !json[key].is_number()) return broken(fmt::format("expected a number for \"{}\"", key));
    *field = json[key].get<double>();
  }
  const auto betas = json.value("betas", nlohmann::json());
  if (!betas.is_array() || betas.size() != 2 || !betas[0].is_number() || !betas[1].is_number())
    return broken("expected two numbers for \"betas\"");
  optimizer_.betas = {betas[0].get<double>(), betas[1].get<double>()};
  return {};
}

}  // namespace ingot
