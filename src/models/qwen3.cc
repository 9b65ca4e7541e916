// Qwen3 (Yang et al., arXiv:2505.09388): Llama with an RMS norm on each query and key, and head_dim a key of its own.
#include "models/families.h"

namespace ingot {
namespace {

void read_config(ConfigReader& in, ModelConfig& config) {
  config.vocab_size = 151936;
  config.hidden_size = 4096;
  config.intermediate_size = 22016;
  config.num_hidden_layers = config.num_attention_heads = config.num_key_value_heads = 32;
  config.head_dim = 128;
  config.max_position_embeddings = 32768;
  config.norm_eps = 1e-6;
  config.qk_norm = true;
  read_llama_keys(in, config);
  in.flag("attention_bias", config.attention_bias);
  config.attention_output_bias = config.attention_bias;
  // The window, where used, is on some layers alone.
  in.only("use_sliding_window", "false");
  in.informational({"sliding_window", "max_window_layers", "layer_types"});
}

}  // namespace

Family qwen3_family() {
  return llama_like_family("qwen3", {"Qwen3ForCausalLM", "Qwen3Model"}, read_config);
}

}  // namespace ingot
