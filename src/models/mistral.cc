// Mistral (Jiang et al., arXiv:2310.06825): Llama with grouped queries and, in its first version, a sliding window.
#include "models/families.h"

namespace ingot {
namespace {

void read_config(ConfigReader& in, ModelConfig& config) {
  config.vocab_size = 32000;
  config.hidden_size = 4096;
  config.intermediate_size = 14336;
  config.num_hidden_layers = config.num_attention_heads = 32;
  config.num_key_value_heads = 8;
  config.max_position_embeddings = 131072;
  config.norm_eps = 1e-6;
  read_llama_keys(in, config);
  // null is a value of its own here: no window.
  if (in.is_null("sliding_window")) return;
  config.sliding_window = 4096;
  in.integer("sliding_window", config.sliding_window);
}

}  // namespace

Family mistral_family() {
  return llama_like_family("mistral", {"MistralForCausalLM", "MistralModel"}, read_config);
}

}  // namespace ingot
