#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/log.h"
#include "checkpoint/model_weights.h"
#include "checkpoint/weight_source.h"
#include "export/export.h"
#include "export/export_directory.h"
#include "export/gguf_architecture.h"
#include "export/gguf_tokenizer.h"
#include "export/narrow.h"
#include "export/weight_rows.h"

namespace ingot {
namespace {

struct PlannedTensor {
  GgufTensor stored;
  const SafetensorsModel::Tensor* source = nullptr;  // none: `values` are the tensor
  RowOrder order = RowOrder::same;
  int64_t head_rows = 1;  // with rotary_pairs
  bool adds_one = false;
  std::vector<float> values = {};
};

DType element_type(GgufType type) {
  switch (type) {
    case GgufType::f16:
      return DType::f16;
    case GgufType::bf16:
      return DType::bf16;
    default:
      return DType::f32;  // what q8_0 is made from, too
  }
}

GgufType as_it_is(DType dtype) {
  if (dtype == DType::f16) return GgufType::f16;
  return dtype == DType::bf16 ? GgufType::bf16 : GgufType::f32;
}

GgufType stored_type(const GgufParameter& parameter, const Shape& shape, DType dtype, std::optional<GgufType> wanted) {
  if (parameter.plain) return GgufType::f32;
  const GgufType type = wanted.value_or(as_it_is(dtype));
  return type == GgufType::q8_0 && shape[-1] % kQ8Block != 0 ? GgufType::f16 : type;
}

std::vector<PlannedTensor> plan_tensors(const Model& model, const std::vector<const SafetensorsModel::Tensor*>& sources,
                                        const std::string& architecture, std::optional<GgufType> wanted) {
  std::vector<PlannedTensor> plan;
  for (size_t i = 0; i < sources.size(); ++i) {
    const ParameterSpec& parameter = model.parameters()[i];
    const GgufParameter target = gguf_parameter(parameter, architecture);
    const Shape shape = stored_shape(parameter.shape, target.order);
    plan.push_back({{target.name, stored_type(target, shape, sources[i]->info.dtype, wanted), shape},
                    sources[i],
                    target.order,
                    model.config().head_dim,
                    target.adds_one});
  }
  if (std::vector<float> factors = rotary_factors(model.config()); !factors.empty()) {
    const auto size = static_cast<int64_t>(factors.size());
    plan.push_back(
        {{"rope_freqs.weight", GgufType::f32, {size}}, nullptr, RowOrder::same, 1, false, std::move(factors)});
  }
  return plan;
}

// The type of most bytes.
GgufType prevailing_type(const std::vector<PlannedTensor>& plan) {
  std::map<GgufType, uint64_t> bytes;
  for (const PlannedTensor& tensor : plan) bytes[tensor.stored.type] += tensor.stored.bytes();
  return std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// llama.cpp's number for a file most of whose weights have that type.
uint32_t file_type(GgufType type) {
  switch (type) {
    case GgufType::f16:
      return 1;
    case GgufType::q8_0:
      return 7;
    case GgufType::bf16:
      return 32;
    case GgufType::f32:
      break;
  }
  return 0;
}

Status write_q8_0(const std::string& name, std::span<const std::byte> numbers, std::vector<std::byte>& blocks,
                  GgufWriter& writer) {
  const std::span values(reinterpret_cast<const float*>(numbers.data()), numbers.size() / sizeof(float));
  blocks.resize(stored_bytes(GgufType::q8_0, static_cast<int64_t>(values.size())));
  if (!quantize_q8_0(values, blocks.data()))
    return failed_error("the tensor {} holds numbers that q8_0 cannot: not finite, or beyond 8e6", name);
  return writer.write(blocks);
}

// What stands in a tensor's place where the format holds 1 + the weight.
std::span<const std::byte> plus_one(std::span<const std::byte> numbers, std::vector<float>& sums) {
  const std::span values(reinterpret_cast<const float*>(numbers.data()), numbers.size() / sizeof(float));
  sums.assign(values.begin(), values.end());
  for (float& sum : sums) sum += 1.0f;
  return std::as_bytes(std::span(sums));
}

Status write_tensor(const WeightSource& source, const PlannedTensor& tensor, GgufWriter& writer) {
  if (tensor.source == nullptr) return writer.write(std::as_bytes(std::span(tensor.values)));
  const GgufType type = tensor.stored.type;
  INGOT_CHECK(!tensor.adds_one || type == GgufType::f32, "1 + a tensor that is not f32");
  std::vector<std::byte> blocks;
  std::vector<float> sums;
  return stream_weight(source, {tensor.source, tensor.order, tensor.head_rows, element_type(type)}, name_of(type),
                       [&](std::span<const std::byte> part) {
                         if (type == GgufType::q8_0) return write_q8_0(tensor.source->info.name, part, blocks, writer);
                         return writer.write(tensor.adds_one ? plus_one(part, sums) : part);
                       });
}

Status write_tensors(const WeightSource& source, const std::vector<PlannedTensor>& plan, GgufWriter& writer) {
  for (const PlannedTensor& tensor : plan) INGOT_TRY(write_tensor(source, tensor, writer));
  return writer.finish();
}

// What a file says beyond the model's own numbers.
void warn(const ExportSource& model, const std::vector<PlannedTensor>& plan, std::optional<GgufType> wanted) {
  const ModelConfig& config = model.model.config();
  if (gguf_context_length(config) < config.max_position_embeddings)
    log_warning("{}: llama.cpp has no sliding window here; the file's context is that window, {} tokens",
                model.directory.string(), config.sliding_window);
  if (wanted != GgufType::q8_0) return;
  std::string names;
  for (const PlannedTensor& tensor : plan)
    if (tensor.stored.type == GgufType::f16) names += (names.empty() ? "" : ", ") + tensor.stored.name;
  if (!names.empty()) log_warning("rows that are no multiple of {} long are f16: {}", kQ8Block, names);
}

// The template that chats are put into, as the tokenizer's directory has it.
Status add_chat_template(const WeightSource& source, GgufMetadata& metadata) {
  INGOT_ASSIGN(const auto own_file, source.read_file("chat_template.jinja"));
  if (own_file) {
    metadata.emplace_back("tokenizer.chat_template", *own_file);
    return {};
  }
  INGOT_ASSIGN(const auto config, source.read_file("tokenizer_config.json"));
  const auto json = parse_json<nlohmann::json>(config.value_or("{}"));
  if (json.is_object() && json.contains("chat_template") && json["chat_template"].is_string())
    metadata.emplace_back("tokenizer.chat_template", json["chat_template"].get<std::string>());
  return {};
}

Status check_file_place(const fs::path& out, uint64_t bytes) {
  std::error_code ignored;
  if (fs::is_directory(out, ignored))
    return usage_error("{} is a directory; expected the name of a file", out.string());
  if (out.has_parent_path()) INGOT_TRY(ingot::create_directories(out.parent_path()));
  INGOT_ASSIGN(const uint64_t room, free_disk_bytes(out));
  if (room >= bytes) return {};
  return failed_error("{} needs {} bytes and its disk has {} left", out.string(), bytes, room);
}

}  // namespace

Result<ExportReport> export_gguf(const ExportSource& model, const fs::path& out, std::optional<GgufType> type) {
  const std::string where = model.directory.string();
  INGOT_TRY(check_out_file(out));
  INGOT_ASSIGN(const std::string architecture, gguf_architecture(model.model, where));
  if (model.tokenizer == nullptr)
    return input_error("{}: there is no tokenizer, which a GGUF file holds; put the model's tokenizer.json there",
                       where);
  INGOT_ASSIGN(const WeightSource source, WeightSource::open(model.directory));
  INGOT_ASSIGN(const auto sources, match_weights(source.weights(), model.model, model.directory));
  const std::vector<PlannedTensor> plan = plan_tensors(model.model, sources, architecture, type);

  ExportReport report{{out.filename().string()}, std::string(name_of(prevailing_type(plan))), plan.size(), 0};
  GgufMetadata metadata = architecture_metadata(model.model, architecture);
  metadata.emplace_back("general.file_type", file_type(prevailing_type(plan)));
  metadata.emplace_back("general.quantization_version", uint32_t{2});
  metadata.emplace_back("general.alignment", static_cast<uint32_t>(kGgufAlignment));
  INGOT_ASSIGN(GgufMetadata words, tokenizer_metadata(*model.tokenizer, model.model.config().vocab_size, where));
  std::move(words.begin(), words.end(), std::back_inserter(metadata));
  INGOT_TRY(add_chat_template(source, metadata));
  warn(model, plan, type);

  std::vector<GgufTensor> tensors;
  uint64_t bytes = 0;
  for (const PlannedTensor& tensor : plan) {
    tensors.push_back(tensor.stored);
    bytes += tensor.stored.bytes();
  }
  INGOT_TRY(check_file_place(out, bytes));
  INGOT_ASSIGN(GgufWriter writer, GgufWriter::create(out, metadata, std::move(tensors)));
  INGOT_TRY(write_tensors(source, plan, writer));
  report.bytes = writer.size();
  return report;
}

}  // namespace ingot
