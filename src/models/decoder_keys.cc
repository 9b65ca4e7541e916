#include "models/decoder.h"

namespace ingot {
namespace {

void read_scaling(ConfigReader& in, RotarySettings& rotary) {
  const char* kind = in.has("rope_type") ? "rope_type" : "type";  // older files say "type"
  if (in.has("rope_type")) in.informational({"type"});
  in.choice(kind, rotary.scaling,
            {{"default", RotaryScaling::none}, {"linear", RotaryScaling::linear}, {"llama3", RotaryScaling::llama3}});
  if (rotary.scaling == RotaryScaling::none) return;
  if (!in.has("factor")) in.fail("factor", "it is missing");
  in.number("factor", rotary.factor, 1e-6, 1e6);
  if (rotary.scaling != RotaryScaling::llama3) return;
  in.number("low_freq_factor", rotary.low_freq_factor, 1e-6, 1e6);
  in.number("high_freq_factor", rotary.high_freq_factor, 1e-6, 1e6);
  in.integer("original_max_position_embeddings", rotary.original_max_positions);
  if (rotary.high_freq_factor <= rotary.low_freq_factor)
    in.fail("high_freq_factor", "it must be greater than low_freq_factor");
}

}  // namespace

void read_rotary_keys(ConfigReader& in, ModelConfig& config) {
  const auto theta = [&](ConfigReader& from) { from.number("rope_theta", config.rotary.theta, 1e-6, 1e15); };
  if (in.has("rope_parameters")) {
    in.object("rope_parameters", [&](ConfigReader& inner) {
      theta(inner);
      read_scaling(inner, config.rotary);
    });
    return;
  }
  theta(in);
  in.object("rope_scaling", [&](ConfigReader& inner) { read_scaling(inner, config.rotary); });
}

void read_own_keys(ConfigReader& in, ModelConfig& config) {
  if (in.has("position_embedding_type"))
    in.choice("position_embedding_type", config.positions,
              {{"learned", PositionKind::learned},
               {"sinusoidal", PositionKind::sinusoidal},
               {"rotary", PositionKind::rotary}});
  if (in.has("norm_type"))
    in.choice("norm_type", config.norm, {{"layer_norm", NormKind::layer_norm}, {"rms_norm", NormKind::rms_norm}});
  if (in.has("do_layer_norm_before")) in.flag("do_layer_norm_before", config.pre_norm);
}

void read_activation(ConfigReader& in, std::string_view key, ModelConfig& config) {
  in.choice(key, config.activation,
            {{"gelu", Activation::gelu},
             {"gelu_new", Activation::gelu_tanh},
             {"gelu_pytorch_tanh", Activation::gelu_tanh},
             {"gelu_fast", Activation::gelu_tanh},
             {"relu", Activation::relu},
             {"silu", Activation::silu},
             {"swish", Activation::silu},
             {"sigmoid", Activation::sigmoid},
             {"tanh", Activation::tanh}});
}

void check_sizes(ConfigReader& in, const ModelConfig& config, std::string_view hidden_key, std::string_view heads_key,
                 bool even_split) {
  if (even_split && config.hidden_size % config.num_attention_heads != 0)
    in.fail(hidden_key,
            fmt::format("{} does not divide by {} = {}", config.hidden_size, heads_key, config.num_attention_heads));
  if (config.num_attention_heads % config.num_key_value_heads != 0)
    in.fail(heads_key, fmt::format("{} does not divide by num_key_value_heads = {}", config.num_attention_heads,
                                   config.num_key_value_heads));
  if (config.positions == PositionKind::rotary && config.head_dim % 2 != 0)
    in.fail(heads_key, fmt::format("rotary positions need an even head dimension, not {}", config.head_dim));
  if (config.positions == PositionKind::sinusoidal && config.hidden_size % 2 != 0)
    in.fail(hidden_key, fmt::format("sinusoidal positions need an even size, not {}", config.hidden_size));
}

}  // namespace ingot
