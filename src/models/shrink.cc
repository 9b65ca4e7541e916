#include "models/shrink.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace ingot {
namespace {

using Json = nlohmann::json;

struct Heads {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
};

// head_dim in proportion to the width that each head has; 0: there is none.
int64_t head_dim_of(const ModelConfig& config, int64_t hidden_size, int64_t heads) {
  const bool rotary = config.positions == PositionKind::rotary;
  if (config.num_attention_heads * config.head_dim == config.hidden_size) {
    const bool divides = hidden_size % heads == 0 && (!rotary || hidden_size / heads % 2 == 0);
    return divides ? hidden_size / heads : 0;
  }
  const double all = static_cast<double>(config.num_attention_heads * config.head_dim) *
                     static_cast<double>(hidden_size) / static_cast<double>(config.hidden_size);
  return 2 * std::max<int64_t>(std::llround(all / static_cast<double>(heads) / 2), 1);
}

// Of the numbers of heads of the model's kind that fit, the one that changes head_dim least.
std::optional<Heads> heads_of(const ModelConfig& config, int64_t hidden_size) {
  const int64_t group = config.num_attention_heads / config.num_key_value_heads;
  const int64_t least = config.num_key_value_heads == 1 ? 1 : 2;
  std::optional<Heads> best;
  for (int64_t kv_heads = least; kv_heads <= config.num_key_value_heads; ++kv_heads) {
    const Heads one{kv_heads * group, kv_heads, head_dim_of(config, hidden_size, kv_heads * group)};
    if (one.head_dim == 0) continue;
    const auto change = [&](const Heads& h) {
      return std::abs(std::log(static_cast<double>(h.head_dim) / static_cast<double>(config.head_dim)));
    };
    if (!best || change(one) < change(*best)) best = one;
    if (config.num_key_value_heads == 1) break;
  }
  return best;
}

Error no_heads(const ModelConfig& config, int64_t hidden_size) {
  int64_t next = hidden_size;
  while (next < config.hidden_size && !heads_of(config, next)) ++next;
  return usage_error(
      "a width of {} cannot be divided among heads as the model's is ({} heads, {} of keys and values); the next "
      "width that can is {}",
      hidden_size, config.num_attention_heads, config.num_key_value_heads, next);
}

// The keys to change; those that only some families have where they are among `known`.
Json changes_of(const ModelConfig& config, const Json& known, int64_t layers, int64_t hidden_size, const Heads& heads) {
  const double ratio = static_cast<double>(hidden_size) / static_cast<double>(config.hidden_size);
  const auto inner = std::max<int64_t>(std::llround(static_cast<double>(config.intermediate_size) * ratio), 1);
  Json json{{"num_hidden_layers", layers},
            {"hidden_size", hidden_size},
            {"num_attention_heads", heads.heads},
            {"intermediate_size", inner}};
  if (known.contains("num_key_value_heads")) json["num_key_value_heads"] = heads.kv_heads;
  if (known.contains("head_dim")) json["head_dim"] = heads.head_dim;
  if (known.contains("query_pre_attn_scalar"))
    json["query_pre_attn_scalar"] =
        config.query_pre_attn_scalar * static_cast<double>(heads.head_dim) / static_cast<double>(config.head_dim);
  if (config.sliding_window > 0) json["sliding_window"] = std::min(config.sliding_window, kShrunkWindow);
  if (known.contains("layer_types")) json["layer_types"] = nullptr;  // a list of all layers; the families' own pattern
  return json;
}

}  // namespace

Result<Model> shrunk(const Model& model, int64_t layers, int64_t hidden_size) {
  const ModelConfig& config = model.config();
  if (layers < 1 || layers > config.num_hidden_layers)
    return usage_error("{} layers: expected 1 to {}, which the model has", layers, config.num_hidden_layers);
  if (hidden_size < 1 || hidden_size > config.hidden_size)
    return usage_error("a width of {}: expected 1 to {}, which the model has", hidden_size, config.hidden_size);
  const std::optional<Heads> heads = heads_of(config, hidden_size);
  if (!heads) return no_heads(config, hidden_size);
  const Json known = Json::parse(model.to_config_json());
  return model.with_overrides(changes_of(config, known, layers, hidden_size, *heads).dump(), "the smaller model");
}

void initialize_shrunk(const Model& model, const ParameterSpec& parameter, uint64_t seed, float* out) {
  constexpr double kNoise = 0.1;
  const bool is_matrix = parameter.init == InitKind::normal;
  const double usual = 1 / std::sqrt(static_cast<double>(model.config().hidden_size));
  ParameterSpec noisy = parameter;
  noisy.init = InitKind::normal;
  noisy.std = is_matrix ? std::max(parameter.std, usual) : kNoise;
  const int64_t elements = parameter.shape.elements();
  initialize(noisy, seed, 0, elements, out);
  if (parameter.init == InitKind::ones)
    for (int64_t i = 0; i < elements; ++i) out[i] += 1.0f;
}

}  // namespace ingot
