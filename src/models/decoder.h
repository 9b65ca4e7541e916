// The decoder-only transformer that the built-in families are: one way to build it, with the names and the layout that
// a family's checkpoints have.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/family.h"
#include "nn/linear.h"

namespace ingot {

// Names of modules in the checkpoint, without ".weight" and ".bias".
struct DecoderNames {
  std::string root;  // before all but the head: "transformer"
  std::string embedding, positions;
  std::string layers;                    // before the layer's number: "h"
  std::string attention_norm, mlp_norm;  // within a layer
  // Within a layer, of what attention and MLP give before it is added to the residual stream; empty: none.
  std::string attention_post_norm = {}, mlp_post_norm = {};
  std::string attention;            // within a layer
  std::string qkv;                  // within attention: one projection, or empty:
  std::string q, k, v;              // three
  std::string attention_output;     // within attention
  std::string mlp, gate, up, down;  // gate, up and down within mlp; gate empty: a plain MLP
  std::string final_norm;
  std::string head = "lm_head";
  WeightLayout layout = WeightLayout::out_in;  // of all weights but embeddings and head, which are [V,C]
};

// Llama's, which most newer families have with little change.
const DecoderNames& llama_names();

std::vector<ParameterSpec> decoder_parameters(const ModelConfig& config, const DecoderNames& names);
ForwardValues build_decoder(Builder& builder, const ModelConfig& config, const DecoderNames& names,
                            const Weights& weights, const TokenInputs& tokens);

// A family of such a transformer. `names` is called where the tensors are named.
Family decoder_family(std::string name, std::vector<std::string> architectures,
                      std::function<void(ConfigReader& in, ModelConfig& config)> read_config,
                      const DecoderNames& (*names)());

// What families read alike. Ingot's own keys, of use to those who design a model: position_embedding_type
// (learned, sinusoidal, rotary), norm_type (layer_norm, rms_norm), do_layer_norm_before (false: post-norm).
void read_own_keys(ConfigReader& in, ModelConfig& config);
// rope_theta and rope_scaling (or both in rope_parameters).
void read_rotary_keys(ConfigReader& in, ModelConfig& config);
void read_activation(ConfigReader& in, std::string_view key, ModelConfig& config);
// Checks what must hold between sizes, by the names that the family gives them. `even_split`: heads must divide
// hidden_size.
void check_sizes(ConfigReader& in, const ModelConfig& config, std::string_view hidden_key, std::string_view heads_key,
                 bool even_split);

}  // namespace ingot
