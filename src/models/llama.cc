// Llama (Touvron et al., arXiv:2302.13971) and what its relatives share: rotary positions, RMS norm before each part, a
// gated MLP, grouped queries, weights stored [out, in].
#include <algorithm>

#include "models/decoder.h"
#include "models/families.h"

namespace ingot {

const DecoderNames& llama_names() {
  static const DecoderNames kNames{.root = "model",
                                   .embedding = "embed_tokens",
                                   .positions = "embed_positions",
                                   .layers = "layers",
                                   .attention_norm = "input_layernorm",
                                   .mlp_norm = "post_attention_layernorm",
                                   .attention = "self_attn",
                                   .qkv = {},
                                   .q = "q_proj",
                                   .k = "k_proj",
                                   .v = "v_proj",
                                   .attention_output = "o_proj",
                                   .mlp = "mlp",
                                   .gate = "gate_proj",
                                   .up = "up_proj",
                                   .down = "down_proj",
                                   .final_norm = "norm",
                                   .layout = WeightLayout::out_in};
  return kNames;
}

namespace {

void read_config(ConfigReader& in, ModelConfig& config) {
  config.vocab_size = 32000;
  config.hidden_size = 4096;
  config.intermediate_size = 11008;
  config.num_hidden_layers = config.num_attention_heads = 32;
  config.max_position_embeddings = 2048;
  config.norm_eps = 1e-6;
  read_llama_keys(in, config);
  in.flag("attention_bias", config.attention_bias);
  config.attention_output_bias = config.attention_bias;
  in.flag("mlp_bias", config.mlp_bias);
}

}  // namespace

void read_llama_keys(ConfigReader& in, ModelConfig& config) {
  config.positions = PositionKind::rotary;
  config.norm = NormKind::rms_norm;
  config.activation = Activation::silu;
  config.attention_bias = config.attention_output_bias = config.mlp_bias = false;
  config.tie_word_embeddings = false;
  in.integer("vocab_size", config.vocab_size);
  in.integer("hidden_size", config.hidden_size);
  in.integer("intermediate_size", config.intermediate_size);
  in.integer("num_hidden_layers", config.num_hidden_layers, 1, 10000);
  in.integer("num_attention_heads", config.num_attention_heads);
  if (config.num_key_value_heads == 0) config.num_key_value_heads = config.num_attention_heads;
  in.integer("num_key_value_heads", config.num_key_value_heads);
  const bool even_split = config.head_dim == 0 && !in.has("head_dim");
  if (config.head_dim == 0) config.head_dim = std::max<int64_t>(config.hidden_size / config.num_attention_heads, 1);
  in.integer("head_dim", config.head_dim);
  in.integer("max_position_embeddings", config.max_position_embeddings);
  read_activation(in, "hidden_act", config);
  in.number("rms_norm_eps", config.norm_eps, 0, 1);
  in.number("initializer_range", config.initializer_range, 0, 10);
  in.flag("tie_word_embeddings", config.tie_word_embeddings);
  in.number("attention_dropout", config.attention_dropout, 0, 0.999);
  read_own_keys(in, config);
  if (config.positions == PositionKind::rotary) read_rotary_keys(in, config);
  check_sizes(in, config, "hidden_size", "num_attention_heads", even_split);
}

Family llama_like_family(std::string name, std::vector<std::string> architectures,
                         std::function<void(ConfigReader&, ModelConfig&)> read) {
  return decoder_family(std::move(name), std::move(architectures), std::move(read), llama_names);
}

Family llama_family() {
  return llama_like_family("llama", {"LlamaForCausalLM", "LlamaModel"}, read_config);
}

}  // namespace ingot
