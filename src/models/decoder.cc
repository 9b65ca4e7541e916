#include "models/decoder.h"

#include <cmath>

#include "nn/dropout.h"
#include "nn/mlp.h"
#include "ops/add.h"
#include "ops/embedding.h"
#include "ops/scale.h"
#include "ops/split.h"

namespace ingot {
namespace {

// Collects the parameters of one component after the other.
class Parameters {
 public:
  Parameters(const ModelConfig& config, const DecoderNames& names) : config_(config), names_(names) {}

  void embedding(const std::string& name, int64_t rows) {
    add(name + ".weight", {rows, config_.hidden_size}, InitKind::normal, "embedding");
  }
  void norm(const std::string& name, int64_t size) {
    add(name + ".weight", {size}, config_.norm_adds_one ? InitKind::zeros : InitKind::ones, "norm");
    if (config_.norm == NormKind::layer_norm) add(name + ".bias", {size}, InitKind::zeros, "norm");
  }
  // `residual`: its output is added to the residual stream, which 2·layers such outputs reach.
  void linear(const std::string& name, int64_t in, int64_t out, bool bias, const char* component,
              bool residual = false) {
    const bool in_out = names_.layout == WeightLayout::in_out;
    add(name + ".weight", in_out ? Shape{in, out} : Shape{out, in}, InitKind::normal, component);
    if (residual) all_.back().std /= std::sqrt(2.0 * static_cast<double>(config_.num_hidden_layers));
    if (bias) add(name + ".bias", {out}, InitKind::zeros, component);
  }
  void add(std::string name, Shape shape, InitKind init, const char* component) {
    all_.push_back({std::move(name), shape, init, config_.initializer_range, component});
  }
  std::vector<ParameterSpec> take() { return std::move(all_); }

 private:
  const ModelConfig& config_;
  const DecoderNames& names_;
  std::vector<ParameterSpec> all_;
};

void attention_parameters(const ModelConfig& c, const DecoderNames& names, const std::string& layer, Parameters& out) {
  const std::string inside = layer + names.attention + ".";
  const int64_t q = c.num_attention_heads * c.head_dim, kv = c.num_key_value_heads * c.head_dim;
  if (!names.qkv.empty()) {
    out.linear(inside + names.qkv, c.hidden_size, q + 2 * kv, c.attention_bias, "attention");
  } else {
    out.linear(inside + names.q, c.hidden_size, q, c.attention_bias, "attention");
    out.linear(inside + names.k, c.hidden_size, kv, c.attention_bias, "attention");
    out.linear(inside + names.v, c.hidden_size, kv, c.attention_bias, "attention");
  }
  if (c.qk_norm)
    for (const char* name : {"q_norm", "k_norm"})
      out.add(inside + name + ".weight", {c.head_dim}, InitKind::ones, "norm");
  out.linear(inside + names.attention_output, q, c.hidden_size, c.attention_output_bias, "attention", true);
}

void mlp_parameters(const ModelConfig& c, const DecoderNames& names, const std::string& layer, Parameters& out) {
  const std::string inside = layer + names.mlp + ".";
  if (!names.gate.empty()) out.linear(inside + names.gate, c.hidden_size, c.intermediate_size, c.mlp_bias, "mlp");
  out.linear(inside + names.up, c.hidden_size, c.intermediate_size, c.mlp_bias, "mlp");
  out.linear(inside + names.down, c.intermediate_size, c.hidden_size, c.mlp_bias, "mlp", true);
}

// Builds the blocks; all values are [B,T,C] but where said.
class Decoder {
 public:
  Decoder(Builder& builder, const ModelConfig& config, const DecoderNames& names, const Weights& weights,
          const TokenInputs& tokens)
      : builder_(builder), config_(config), names_(names), weights_(weights.under(names.root)), tokens_(tokens) {}

  ForwardValues build() {
    const Builder::Scope scope(builder_, names_.root);
    ForwardValues values;
    ValueId x = embed();
    values.hidden_states.push_back(x);
    for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      x = block(x, layer);
      values.hidden_states.push_back(x);
    }
    values.final_norm = config_.pre_norm ? normed(x, weights_, names_.final_norm) : x;
    return values;
  }

 private:
  ValueId embed() {
    const Builder::Scope scope(builder_, names_.embedding);
    ValueId x = embedding(builder_, weights_(names_.embedding + ".weight"), tokens_.ids);
    if (config_.embedding_scale != 1) x = scale(builder_, x, config_.embedding_scale);
    if (config_.positions == PositionKind::learned)
      x = add(builder_, x, learned_positions(builder_, weights_(names_.positions + ".weight"), tokens_.positions));
    if (config_.positions == PositionKind::sinusoidal)
      x = add(builder_, x, sinusoidal_positions(builder_, tokens_.positions, config_.hidden_size));
    return named_dropout(builder_, x, dropout(config_.embedding_dropout), "dropout");
  }

  ValueId block(ValueId x, int64_t layer) {
    const std::string name = fmt::format("{}.{}", names_.layers, layer);
    const Builder::Scope scope(builder_, name);
    const Weights weights = weights_.under(name);
    const auto residual = [&](const std::string& norm_name, const std::string& post_norm, auto&& branch) {
      ValueId out = branch(config_.pre_norm ? normed(x, weights, norm_name) : x);
      if (!post_norm.empty()) out = normed(out, weights, post_norm);
      x = add(builder_, x, out);
      if (!config_.pre_norm) x = normed(x, weights, norm_name);
    };
    residual(names_.attention_norm, names_.attention_post_norm,
             [&](ValueId in) { return attention(in, weights.under(names_.attention), layer); });
    residual(names_.mlp_norm, names_.mlp_post_norm,
             [&](ValueId in) { return feed_forward(in, weights.under(names_.mlp)); });
    return x;
  }

  ValueId attention(ValueId x, const Weights& weights, int64_t layer) {
    const Builder::Scope scope(builder_, names_.attention);
    std::vector<ValueId> qkv = projections(x, weights);
    for (size_t i = 0; i < 3; ++i)
      qkv[i] = split_heads(builder_, qkv[i], i == 0 ? config_.num_attention_heads : config_.num_key_value_heads);
    for (size_t i = 0; i < 2; ++i) {  // queries and keys
      if (config_.qk_norm)
        qkv[i] = norm(builder_, qkv[i], weights, i == 0 ? "q_norm" : "k_norm", NormKind::rms_norm, config_.norm_eps);
      if (config_.positions == PositionKind::rotary)
        qkv[i] = rotate(builder_, qkv[i], tokens_.positions, config_.rotary);
    }
    const AttentionSettings settings{.scale = config_.attention_scale(layer),
                                     .softcap = config_.attention_softcap,
                                     .window = config_.window(layer),
                                     .dropout = dropout(config_.attention_dropout),
                                     .layer = layer};
    const ValueId out = merge_heads(builder_, attend(builder_, qkv[0], qkv[1], qkv[2], tokens_.attention, settings));
    return to_residual(out, weights, names_.attention_output);
  }

  // Queries [B,T,H·D], keys and values [B,T,Hkv·D].
  std::vector<ValueId> projections(ValueId x, const Weights& weights) {
    const auto project = [&](const std::string& name) {
      return linear(builder_, x, linear_weights(weights, name, names_.layout));
    };
    if (names_.qkv.empty()) return {project(names_.q), project(names_.k), project(names_.v)};
    const int64_t q = config_.num_attention_heads * config_.head_dim;
    const int64_t kv = config_.num_key_value_heads * config_.head_dim;
    return split(builder_, project(names_.qkv), -1, {q, kv, kv});
  }

  ValueId feed_forward(ValueId x, const Weights& weights) {
    const Builder::Scope scope(builder_, names_.mlp);
    const auto layer = [&](const std::string& name) { return linear_weights(weights, name, names_.layout); };
    const ValueId out = names_.gate.empty() ? mlp(builder_, x, layer(names_.up), layer(names_.down), config_.activation)
                                            : gated_mlp(builder_, x, layer(names_.gate), layer(names_.up),
                                                        layer(names_.down), config_.activation);
    return named_dropout(builder_, out, dropout(config_.residual_dropout), "dropout");
  }

  ValueId to_residual(ValueId x, const Weights& weights, const std::string& name) {
    const ValueId out = linear(builder_, x, linear_weights(weights, name, names_.layout));
    return named_dropout(builder_, out, dropout(config_.residual_dropout), "resid_dropout");
  }

  ValueId normed(ValueId x, const Weights& weights, const std::string& name) {
    return norm(builder_, x, weights, name, config_.norm, config_.norm_eps, config_.norm_adds_one);
  }
  double dropout(double p) const { return tokens_.dropout ? p : 0.0; }

  Builder& builder_;
  const ModelConfig& config_;
  const DecoderNames& names_;
  const Weights weights_;
  const TokenInputs& tokens_;
};

}  // namespace

std::vector<ParameterSpec> decoder_parameters(const ModelConfig& config, const DecoderNames& names) {
  Parameters out(config, names);
  const std::string root = names.root + ".";
  out.embedding(root + names.embedding, config.vocab_size);
  if (config.positions == PositionKind::learned) out.embedding(root + names.positions, config.max_position_embeddings);
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string inside = fmt::format("{}{}.{}.", root, names.layers, layer);
    out.norm(inside + names.attention_norm, config.hidden_size);
    attention_parameters(config, names, inside, out);
    if (!names.attention_post_norm.empty()) out.norm(inside + names.attention_post_norm, config.hidden_size);
    out.norm(inside + names.mlp_norm, config.hidden_size);
    mlp_parameters(config, names, inside, out);
    if (!names.mlp_post_norm.empty()) out.norm(inside + names.mlp_post_norm, config.hidden_size);
  }
  if (config.pre_norm) out.norm(root + names.final_norm, config.hidden_size);
  if (!config.tie_word_embeddings)
    out.add(names.head + ".weight", {config.vocab_size, config.hidden_size}, InitKind::normal, "head");
  return out.take();
}

ForwardValues build_decoder(Builder& builder, const ModelConfig& config, const DecoderNames& names,
                            const Weights& weights, const TokenInputs& tokens) {
  ForwardValues values = Decoder(builder, config, names, weights, tokens).build();
  values.head_weight = config.tie_word_embeddings ? weights.under(names.root)(names.embedding + ".weight")
                                                  : weights(names.head + ".weight");
  values.logit_softcap = config.final_softcap;
  return values;
}

Family decoder_family(std::string name, std::vector<std::string> architectures,
                      std::function<void(ConfigReader& in, ModelConfig& config)> read_config,
                      const DecoderNames& (*names)()) {
  Family family;
  family.name = std::move(name);
  family.architectures = std::move(architectures);
  family.read_config = std::move(read_config);
  family.parameters = [names](const ModelConfig& config) { return decoder_parameters(config, names()); };
  family.build = [names](Builder& builder, const ModelConfig& config, const Weights& weights,
                         const TokenInputs& tokens) {
    return build_decoder(builder, config, names(), weights, tokens);
  };
  return family;
}

}  // namespace ingot
