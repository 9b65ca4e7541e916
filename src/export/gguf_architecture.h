// How llama.cpp names and expects a model: its architecture, the keys that describe it, and for each parameter the
// tensor's name, order and type (as of llama.cpp's gguf-py/gguf/constants.py and src/llama-arch.cpp).
#pragma once

#include <string>
#include <vector>

#include "export/gguf_file.h"
#include "export/weight_rows.h"
#include "models/model.h"

namespace ingot {

struct GgufParameter {
  std::string name;  // the tensor's
  RowOrder order = RowOrder::same;
  bool plain = false;     // stays f32 whatever the type of the weights: one-dimensional tensors, learned positions
  bool adds_one = false;  // the tensor holds 1 + the parameter
};

// "llama" for a mistral, … Error (usage), naming the key: llama.cpp has no such model.
Result<std::string> gguf_architecture(const Model& model, const std::string& where);
// general.architecture and the architecture's own keys.
GgufMetadata architecture_metadata(const Model& model, const std::string& architecture);
// Where a parameter of that name goes.
GgufParameter gguf_parameter(const ParameterSpec& parameter, const std::string& architecture);
// rope_freqs.weight [head_dim/2]: what llama.cpp divides the rotary frequencies by; empty where they are plain or
// scaled linearly.
std::vector<float> rotary_factors(const ModelConfig& config);
// The tokens that llama.cpp computes as this model does: no more than the window of attention, which its "llama" lacks
// and its "gemma2" has.
int64_t gguf_context_length(const ModelConfig& config);

}  // namespace ingot
