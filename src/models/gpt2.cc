// GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019): learned positions, layer norm
// before each part, one projection for q, k and v, weights stored [in, out], a tied head.
#include <algorithm>

#include "models/decoder.h"
#include "models/families.h"

namespace ingot {
namespace {

const DecoderNames& names() {
  static const DecoderNames kNames{.root = "transformer",
                                   .embedding = "wte",
                                   .positions = "wpe",
                                   .layers = "h",
                                   .attention_norm = "ln_1",
                                   .mlp_norm = "ln_2",
                                   .attention = "attn",
                                   .qkv = "c_attn",
                                   .q = {},
                                   .k = {},
                                   .v = {},
                                   .attention_output = "c_proj",
                                   .mlp = "mlp",
                                   .gate = {},
                                   .up = "c_fc",
                                   .down = "c_proj",
                                   .final_norm = "ln_f",
                                   .layout = WeightLayout::in_out};
  return kNames;
}

void read_config(ConfigReader& in, ModelConfig& config) {
  config.vocab_size = 50257;
  config.hidden_size = 768;
  config.num_hidden_layers = config.num_attention_heads = 12;
  config.max_position_embeddings = 1024;
  in.integer("vocab_size", config.vocab_size);
  in.integer("n_positions", config.max_position_embeddings);
  in.integer("n_embd", config.hidden_size);
  in.integer("n_layer", config.num_hidden_layers, 1, 10000);
  in.integer("n_head", config.num_attention_heads);
  config.intermediate_size = 4 * config.hidden_size;
  in.integer("n_inner", config.intermediate_size);
  config.num_key_value_heads = config.num_attention_heads;
  config.head_dim = std::max<int64_t>(config.hidden_size / config.num_attention_heads, 1);
  read_activation(in, "activation_function", config);
  in.number("layer_norm_epsilon", config.norm_eps, 0, 1);
  in.number("initializer_range", config.initializer_range, 0, 10);
  in.flag("tie_word_embeddings", config.tie_word_embeddings);
  in.number("embd_pdrop", config.embedding_dropout, 0, 0.999);
  in.number("attn_pdrop", config.attention_dropout, 0, 0.999);
  in.number("resid_pdrop", config.residual_dropout, 0, 0.999);
  in.flag("scale_attn_weights", config.scale_attention);
  in.flag("scale_attn_by_inverse_layer_idx", config.scale_attention_by_layer);
  read_own_keys(in, config);
  if (config.positions == PositionKind::rotary) read_rotary_keys(in, config);
  // reorder_and_upcast_attn: the softmax is in fp32 here in any case. summary_*: of a classification head.
  in.informational({"n_ctx", "reorder_and_upcast_attn", "summary_type", "summary_use_proj", "summary_activation",
                    "summary_proj_to_labels", "summary_first_dropout"});
  check_sizes(in, config, "n_embd", "n_head", true);
}

}  // namespace

Family gpt2_family() {
  Family family = decoder_family("gpt2", {"GPT2LMHeadModel", "GPT2Model"}, read_config, names);
  family.key_aliases = {{"hidden_size", "n_embd"},
                        {"max_position_embeddings", "n_positions"},
                        {"num_attention_heads", "n_head"},
                        {"num_hidden_layers", "n_layer"},
                        {"intermediate_size", "n_inner"}};
  return family;
}

}  // namespace ingot
