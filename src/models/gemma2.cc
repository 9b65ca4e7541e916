// Gemma 2 (Gemma Team, arXiv:2408.00118): norms before and after attention and MLP that multiply by 1 + their weights,
// a scaled embedding, a gated MLP, a window on every other layer, soft caps on scores and logits.
#include <cmath>

#include "models/decoder.h"
#include "models/families.h"

namespace ingot {
namespace {

const DecoderNames& names() {
  static const DecoderNames kNames = [] {
    DecoderNames names = llama_names();
    names.positions.clear();
    names.mlp_norm = "pre_feedforward_layernorm";
    names.attention_post_norm = "post_attention_layernorm";
    names.mlp_post_norm = "post_feedforward_layernorm";
    return names;
  }();
  return kNames;
}

void set_defaults(ModelConfig& config) {
  config.vocab_size = 256000;
  config.hidden_size = 2304;
  config.intermediate_size = 9216;
  config.num_hidden_layers = 26;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 4;
  config.head_dim = 256;
  config.query_pre_attn_scalar = 256;
  config.max_position_embeddings = 8192;
  config.norm_eps = 1e-6;
  config.sliding_window = 4096;
  config.attention_softcap = 50;
  config.final_softcap = 30;
  config.positions = PositionKind::rotary;
  config.norm = NormKind::rms_norm;
  config.norm_adds_one = config.alternate_windows = true;
  config.activation = Activation::gelu_tanh;
  config.attention_bias = config.attention_output_bias = config.mlp_bias = false;
}

// null: no cap.
void read_softcap(ConfigReader& in, std::string_view key, double& cap) {
  if (in.is_null(key))
    cap = 0;
  else
    in.number(key, cap, 1e-3, 1e6);
}

// The activation stands under hidden_activation; many files repeat it under a key that other families have.
void read_activations(ConfigReader& in, ModelConfig& config) {
  read_activation(in, "hidden_activation", config);
  if (!in.has("hidden_activation")) in.write("hidden_activation", "gelu_pytorch_tanh");
  if (!in.has("hidden_act")) return;
  ModelConfig repeated = config;
  read_activation(in, "hidden_act", repeated);
  if (repeated.activation != config.activation)
    in.fail("hidden_act", "hidden_activation, which counts, is another one");
}

// Which layers have the window is fixed: newer files say so in a list.
void check_layer_types(ConfigReader& in, const ModelConfig& config) {
  std::string expected;
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer)
    expected += fmt::format("{}\"{}_attention\"", layer > 0 ? ", " : "", layer % 2 == 0 ? "sliding" : "full");
  in.only("layer_types", "[" + expected + "]");
}

void read_config(ConfigReader& in, ModelConfig& config) {
  set_defaults(config);
  in.integer("vocab_size", config.vocab_size);
  in.integer("hidden_size", config.hidden_size);
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  in.integer("intermediate_size", config.intermediate_size);
  in.integer("num_hidden_layers", config.num_hidden_layers, 1, 10000);
  in.integer("num_attention_heads", config.num_attention_heads);
  in.integer("num_key_value_heads", config.num_key_value_heads);
  in.integer("head_dim", config.head_dim);
  in.number("query_pre_attn_scalar", config.query_pre_attn_scalar, 1e-6, 1e6);
  in.integer("max_position_embeddings", config.max_position_embeddings);
  read_activations(in, config);
  in.number("rms_norm_eps", config.norm_eps, 0, 1);
  in.number("initializer_range", config.initializer_range, 0, 10);
  in.flag("tie_word_embeddings", config.tie_word_embeddings);
  in.flag("attention_bias", config.attention_bias);
  config.attention_output_bias = config.attention_bias;
  in.number("attention_dropout", config.attention_dropout, 0, 0.999);
  read_rotary_keys(in, config);
  read_softcap(in, "attn_logit_softcapping", config.attention_softcap);
  read_softcap(in, "final_logit_softcapping", config.final_softcap);
  if (in.is_null("sliding_window"))
    config.sliding_window = 0;
  else
    in.integer("sliding_window", config.sliding_window);
  check_layer_types(in, config);
  in.only("use_bidirectional_attention", "false");
  in.informational({"cache_implementation"});
  check_sizes(in, config, "hidden_size", "num_attention_heads", false);
}

}  // namespace

Family gemma2_family() {
  return decoder_family("gemma2", {"Gemma2ForCausalLM", "Gemma2Model"}, read_config, names);
}

}  // namespace ingot
