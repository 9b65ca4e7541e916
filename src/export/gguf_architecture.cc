#include "export/gguf_architecture.h"

#include <algorithm>
#include <array>

namespace ingot {
namespace {

struct Architecture {
  std::string_view family, name;
};
constexpr auto kArchitectures = std::to_array<Architecture>({{"gpt2", "gpt2"},
                                                             {"llama", "llama"},
                                                             {"mistral", "llama"},
                                                             {"qwen2", "qwen2"},
                                                             {"qwen3", "qwen3"},
                                                             {"gemma2", "gemma2"}});

struct TensorName {
  std::string_view parameter, tensor;  // of a parameter within its layer, or outside of layers
  RowOrder order = RowOrder::same;
  bool adds_one = false;
};
constexpr auto kGpt2Names = std::to_array<TensorName>({{"wte", "token_embd"},
                                                       {"wpe", "position_embd"},
                                                       {"ln_f", "output_norm"},
                                                       {"lm_head", "output"},
                                                       {"ln_1", "attn_norm"},
                                                       {"attn.c_attn", "attn_qkv", RowOrder::transposed},
                                                       {"attn.c_proj", "attn_output", RowOrder::transposed},
                                                       {"ln_2", "ffn_norm"},
                                                       {"mlp.c_fc", "ffn_up", RowOrder::transposed},
                                                       {"mlp.c_proj", "ffn_down", RowOrder::transposed}});
constexpr auto kLlamaNames = std::to_array<TensorName>({{"embed_tokens", "token_embd"},
                                                        {"norm", "output_norm"},
                                                        {"lm_head", "output"},
                                                        {"input_layernorm", "attn_norm"},
                                                        {"self_attn.q_proj", "attn_q", RowOrder::rotary_pairs},
                                                        {"self_attn.k_proj", "attn_k", RowOrder::rotary_pairs},
                                                        {"self_attn.v_proj", "attn_v"},
                                                        {"self_attn.q_norm", "attn_q_norm"},
                                                        {"self_attn.k_norm", "attn_k_norm"},
                                                        {"self_attn.o_proj", "attn_output"},
                                                        {"post_attention_layernorm", "ffn_norm"},
                                                        {"mlp.gate_proj", "ffn_gate"},
                                                        {"mlp.up_proj", "ffn_up"},
                                                        {"mlp.down_proj", "ffn_down"}});

constexpr auto kGemma2Names =
    std::to_array<TensorName>({{"embed_tokens", "token_embd"},
                               {"norm", "output_norm", RowOrder::same, true},
                               {"input_layernorm", "attn_norm", RowOrder::same, true},
                               {"self_attn.q_proj", "attn_q"},
                               {"self_attn.k_proj", "attn_k"},
                               {"self_attn.v_proj", "attn_v"},
                               {"self_attn.o_proj", "attn_output"},
                               {"post_attention_layernorm", "post_attention_norm", RowOrder::same, true},
                               {"pre_feedforward_layernorm", "ffn_norm", RowOrder::same, true},
                               {"mlp.gate_proj", "ffn_gate"},
                               {"mlp.up_proj", "ffn_up"},
                               {"mlp.down_proj", "ffn_down"},
                               {"post_feedforward_layernorm", "post_ffw_norm", RowOrder::same, true}});

std::span<const TensorName> names_of(std::string_view architecture) {
  if (architecture == "gpt2") return kGpt2Names;
  if (architecture == "gemma2") return kGemma2Names;
  return kLlamaNames;
}

uint32_t count(int64_t value) {
  INGOT_CHECK(value >= 0 && value <= UINT32_MAX, "{} in a key of 32 bits", value);
  return static_cast<uint32_t>(value);
}

// llama.cpp computes Gemma 2's scale of the scores from the shape: by hidden_size / heads in its 27B, which it knows by
// the 46 layers, else by head_dim.
constexpr int64_t kLayersOfGemma27b = 46;

std::string unsupported_gemma2(const ModelConfig& config) {
  if (config.activation != Activation::gelu_tanh)
    return "hidden_activation: llama.cpp's gemma2 has gelu_pytorch_tanh alone";
  if (config.attention_bias) return "attention_bias: llama.cpp's gemma2 has none";
  if (!config.tie_word_embeddings) return "tie_word_embeddings: llama.cpp's gemma2 has no head of its own";
  if (config.attention_softcap == 0) return "attn_logit_softcapping: llama.cpp's gemma2 always caps";
  if (config.final_softcap == 0) return "final_logit_softcapping: llama.cpp's gemma2 always caps";
  const bool large = config.num_hidden_layers == kLayersOfGemma27b;
  const int64_t divisor = large ? config.hidden_size / config.num_attention_heads : config.head_dim;
  if (config.query_pre_attn_scalar != static_cast<double>(divisor))
    return fmt::format("query_pre_attn_scalar: {}, where llama.cpp's gemma2 has {} for this shape",
                       config.query_pre_attn_scalar, divisor);
  if (config.rotary.scaling == RotaryScaling::llama3)
    return "rope_scaling: llama.cpp's gemma2 has no frequencies of the kind llama3";
  return {};
}

// The key of config.json whose value llama.cpp's architecture does not have, and why; empty where all is well.
std::string unsupported(const ModelConfig& config, std::string_view architecture) {
  if (architecture == "gemma2") return unsupported_gemma2(config);
  const bool gpt2 = architecture == "gpt2";
  const Activation activation = gpt2 ? Activation::gelu_tanh : Activation::silu;
  if (config.activation != activation)
    return fmt::format("{}: llama.cpp's {} has {} alone", gpt2 ? "activation_function" : "hidden_act", architecture,
                       gpt2 ? "gelu_new" : "silu");
  if (!config.scale_attention) return "scale_attn_weights: llama.cpp scales the scores always";
  if (config.scale_attention_by_layer) return "scale_attn_by_inverse_layer_idx: llama.cpp scales all layers alike";
  if (architecture == "qwen3" && config.attention_bias) return "attention_bias: llama.cpp's qwen3 has none";
  if (architecture != "llama" && config.rotary.scaling == RotaryScaling::llama3)
    return fmt::format("rope_scaling: llama.cpp's {} has no frequencies of the kind llama3", architecture);
  return {};
}

void rotary_metadata(const ModelConfig& config, const std::string& prefix, GgufMetadata& out) {
  out.emplace_back(prefix + "attention.key_length", count(config.head_dim));
  out.emplace_back(prefix + "attention.value_length", count(config.head_dim));
  out.emplace_back(prefix + "rope.dimension_count", count(config.head_dim));
  out.emplace_back(prefix + "rope.freq_base", static_cast<float>(config.rotary.theta));
  if (config.rotary.scaling != RotaryScaling::linear) return;
  out.emplace_back(prefix + "rope.scaling.type", std::string("linear"));
  out.emplace_back(prefix + "rope.scaling.factor", static_cast<float>(config.rotary.factor));
}

// Without a window all positions are within it.
void gemma2_metadata(const ModelConfig& config, const std::string& prefix, GgufMetadata& out) {
  const int64_t window = config.sliding_window > 0 ? config.sliding_window : config.max_position_embeddings;
  out.emplace_back(prefix + "attention.sliding_window", count(window));
  out.emplace_back(prefix + "attn_logit_softcapping", static_cast<float>(config.attention_softcap));
  out.emplace_back(prefix + "final_logit_softcapping", static_cast<float>(config.final_softcap));
}

// "model.layers.7.mlp.up_proj" becomes "mlp.up_proj" and "blk.7.".
std::pair<std::string_view, std::string> split_layer(std::string_view name) {
  for (const std::string_view root : {"transformer.", "model."})
    if (name.starts_with(root)) name.remove_prefix(root.size());
  for (const std::string_view layers : {"h.", "layers."}) {
    if (!name.starts_with(layers)) continue;
    name.remove_prefix(layers.size());
    const size_t dot = name.find('.');
    return {name.substr(dot + 1), fmt::format("blk.{}.", name.substr(0, dot))};
  }
  return {name, ""};
}

}  // namespace

Result<std::string> gguf_architecture(const Model& model, const std::string& where) {
  const ModelConfig& config = model.config();
  const auto* found = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                   [&](const Architecture& a) { return a.family == config.model_type; });
  if (found == kArchitectures.end())
    return usage_error(
        "{}: a model of type {} cannot be written as GGUF; gpt2, llama, mistral, qwen2, "
        "qwen3 and gemma2 can",
        where, config.model_type);
  if (const auto keys = model.own_keys(); !keys.empty())
    return usage_error("{}: {} is Ingot's own, llama.cpp's {} has no such model", where, keys.front(), found->name);
  if (const std::string problem = unsupported(config, found->name); !problem.empty())
    return usage_error("{}: {}", where, problem);
  return std::string(found->name);
}

GgufMetadata architecture_metadata(const Model& model, const std::string& architecture) {
  const ModelConfig& config = model.config();
  const std::string prefix = architecture + ".";
  GgufMetadata out{{"general.architecture", architecture},
                   {"general.type", std::string("model")},
                   {"general.name", config.model_type},
                   {prefix + "vocab_size", count(config.vocab_size)},
                   {prefix + "context_length", count(gguf_context_length(config))},
                   {prefix + "embedding_length", count(config.hidden_size)},
                   {prefix + "block_count", count(config.num_hidden_layers)},
                   {prefix + "feed_forward_length", count(config.intermediate_size)},
                   {prefix + "attention.head_count", count(config.num_attention_heads)},
                   {prefix + "attention.head_count_kv", count(config.num_key_value_heads)}};
  const bool rms = config.norm == NormKind::rms_norm;
  out.emplace_back(prefix + (rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon"),
                   static_cast<float>(config.norm_eps));
  if (config.positions == PositionKind::rotary) rotary_metadata(config, prefix, out);
  if (architecture == "gemma2") gemma2_metadata(config, prefix, out);
  return out;
}

GgufParameter gguf_parameter(const ParameterSpec& parameter, const std::string& architecture) {
  const auto [inside, block] = split_layer(parameter.name);
  const size_t dot = inside.rfind('.');
  const std::string_view module = inside.substr(0, dot), suffix = inside.substr(dot);  // ".weight" or ".bias"
  const std::span<const TensorName> names = names_of(architecture);
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const TensorName& name) { return name.parameter == module; });
  INGOT_CHECK(found != names.end(), "the parameter {} has no name in GGUF", parameter.name);
  GgufParameter result{fmt::format("{}{}{}", block, found->tensor, suffix), found->order,
                       parameter.shape.rank() < 2 || found->tensor == "position_embd", found->adds_one};
  // Only llama.cpp's "llama" turns neighbouring rows; a bias that is not turned has no order to change.
  if (result.order == RowOrder::rotary_pairs && architecture != "llama") result.order = RowOrder::same;
  if (result.order == RowOrder::transposed && parameter.shape.rank() < 2) result.order = RowOrder::same;
  return result;
}

std::vector<float> rotary_factors(const ModelConfig& config) {
  if (config.positions != PositionKind::rotary || config.rotary.scaling != RotaryScaling::llama3) return {};
  RotarySettings plain = config.rotary;
  plain.scaling = RotaryScaling::none;
  const std::vector<double> wanted = rotary_frequencies(config.rotary, config.head_dim),
                            base = rotary_frequencies(plain, config.head_dim);
  std::vector<float> factors;
  for (size_t i = 0; i < wanted.size(); ++i) factors.push_back(static_cast<float>(base[i] / wanted[i]));
  return factors;
}

int64_t gguf_context_length(const ModelConfig& config) {
  if (config.sliding_window == 0 || config.model_type == "gemma2") return config.max_position_embeddings;
  return std::min(config.max_position_embeddings, config.sliding_window);
}

}  // namespace ingot
