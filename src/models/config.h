// ModelConfig: what a model is, in one form for all families. Each family reads it from the keys of its Hugging Face
// config.json (models/config_reader.h); which key sets what stands in the family's file.
#pragma once

#include <cstdint>
#include <string>

#include "nn/activation.h"
#include "nn/norm.h"
#include "nn/positions.h"

namespace ingot {

enum class PositionKind { learned, sinusoidal, rotary };

struct ModelConfig {
  std::string model_type;  // the family's name
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;  // of the MLP
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;  // not necessarily hidden_size / num_attention_heads
  int64_t max_position_embeddings = 0;

  PositionKind positions = PositionKind::learned;
  RotarySettings rotary;  // where positions are rotary
  NormKind norm = NormKind::layer_norm;
  double norm_eps = 1e-5;
  bool pre_norm = true;  // norms before attention and MLP and one at the end; else one after each residual sum
  Activation activation = Activation::gelu_tanh;
  bool attention_bias = true;         // of the q, k and v projections
  bool attention_output_bias = true;  // of the o projection
  bool mlp_bias = true;
  bool qk_norm = false;                   // an RMS norm over head_dim on each query and key
  bool norm_adds_one = false;             // a norm multiplies by 1 + its weight, which starts from 0
  bool tie_word_embeddings = true;        // the head is the embedding table
  int64_t sliding_window = 0;             // a token sees at most so many, itself included; 0: no limit
  bool alternate_windows = false;         // in the layers 0, 2, … alone
  bool scale_attention = true;            // scores are divided by the root of:
  double query_pre_attn_scalar = 0;       // 0: head_dim
  bool scale_attention_by_layer = false;  // and by the layer's number, counted from 1
  double embedding_scale = 1;             // of the rows that are looked up, not of a tied head
  // Scores, and logits, are cap·tanh(x / cap); 0: as they are.
  double attention_softcap = 0, final_softcap = 0;

  double embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;
  double initializer_range = 0.02;  // standard deviation of initial weights

  bool operator==(const ModelConfig&) const = default;

  // What the scores of layer `layer` (from 0) are multiplied by.
  double attention_scale(int64_t layer) const;
  int64_t window(int64_t layer) const;  // as sliding_window
};

}  // namespace ingot
