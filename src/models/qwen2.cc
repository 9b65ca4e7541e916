// Qwen2 and Qwen2.5 (Yang et al., arXiv:2407.10671): Llama with biases on q, k and v.
#include "models/families.h"

namespace ingot {
namespace {

void read_config(ConfigReader& in, ModelConfig& config) {
  config.vocab_size = 151936;
  config.hidden_size = 4096;
  config.intermediate_size = 22016;
  config.num_hidden_layers = config.num_attention_heads = config.num_key_value_heads = 32;
  config.max_position_embeddings = 32768;
  config.norm_eps = 1e-6;
  read_llama_keys(in, config);
  config.attention_bias = true;
  // The window, where used, is on some layers alone.
  in.only("use_sliding_window", "false");
  in.informational({"sliding_window", "max_window_layers", "layer_types"});
}

}  // namespace

Family qwen2_family() {
  return llama_like_family("qwen2", {"Qwen2ForCausalLM", "Qwen2Model"}, read_config);
}

}  // namespace ingot
