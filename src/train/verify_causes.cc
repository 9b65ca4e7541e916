#include "train/verify_causes.h"

#include <algorithm>
#include <cmath>

namespace ingot {
namespace {

constexpr std::string_view name_of_activation(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_new";
    case Activation::relu:
      return "relu";
    case Activation::silu:
      return "silu";
    default:
      return "";
  }
}

void add_epsilons(const ModelConfig& config, std::vector<Conjecture>& out) {
  for (const double eps : {1e-5, 1e-6, 1e-8, 1e-12})
    for (const char* key : {"layer_norm_epsilon", "rms_norm_eps"})  // a family has but one of them
      if (std::abs(eps - config.norm_eps) > eps * 1e-3)
        out.push_back({fmt::format("{} is {} (the configuration says {})", key, eps, config.norm_eps),
                       fmt::format(R"({{"{}": {}}})", key, eps)});
}

void add_activations(const ModelConfig& config, std::vector<Conjecture>& out) {
  const std::string_view own = name_of_activation(config.activation);
  for (const std::string_view other : {"gelu", "gelu_new", "relu", "silu"})
    for (const char* key : {"activation_function", "hidden_act", "hidden_activation"})
      if (other != own)
        out.push_back({fmt::format("{} is \"{}\" (the configuration says \"{}\")", key, other, own),
                       fmt::format(R"({{"{}": "{}"{}}})", key, other,
                                   key == std::string_view("hidden_activation") ? R"(, "hidden_act": null)" : "")});
}

// Rows of q and k as other implementations store them for rotary positions: dimension 2i beside 2i + 1, where Hugging
// Face's checkpoints pair i with i + D/2.
void pair_halves(float* rows, int64_t heads, int64_t head_dim, int64_t width) {
  const auto head_size = static_cast<size_t>(head_dim * width);
  std::vector<float> head(head_size);
  for (int64_t h = 0; h < heads; ++h) {
    float* at = rows + h * head_dim * width;
    std::copy_n(at, head_size, head.begin());
    for (int64_t d = 0; d < head_dim; ++d) {
      const int64_t from = 2 * (d % (head_dim / 2)) + d / (head_dim / 2);
      std::copy_n(head.begin() + from * width, width, at + d * width);
    }
  }
}

void pair_halves_of_all(const Model& model, const Arena& arena) {
  const int64_t head_dim = model.config().head_dim;
  for (const ParameterSpec& parameter : model.parameters()) {
    const bool is_query_or_key =
        parameter.name.find("q_proj.") != std::string::npos || parameter.name.find("k_proj.") != std::string::npos;
    if (!is_query_or_key || arena.variables().find(parameter.name) == nullptr) continue;
    const int64_t width = parameter.shape.rank() == 2 ? parameter.shape[1] : 1;
    pair_halves(arena.variable(parameter.name).as<float>(), parameter.shape[0] / head_dim, head_dim, width);
  }
}

void add_positions(const ModelConfig& config, std::vector<Conjecture>& out) {
  if (config.sliding_window > 0)
    out.push_back({fmt::format("sliding_window is off (the configuration says {})", config.sliding_window),
                   R"({"sliding_window": null})"});
  if (config.positions != PositionKind::rotary) return;
  for (const double theta : {1e4, 5e5, 1e6})
    if (theta != config.rotary.theta)
      out.push_back({fmt::format("rope_theta is {} (the configuration says {})", theta, config.rotary.theta),
                     fmt::format(R"({{"rope_theta": {}}})", theta)});
  if (config.rotary.scaling != RotaryScaling::none) out.push_back({"rope_scaling is off", R"({"rope_scaling": null})"});
  out.push_back(
      {"q and k are stored with neighbouring dimensions paired for rotary positions (Meta's layout): reorder "
       "the rows of each head of q_proj and k_proj to 0, 2, 4, …, 1, 3, 5, …",
       "{}", pair_halves_of_all});
}

// Gemma 2's, which fast attention kernels are known to leave out.
void add_scores(const ModelConfig& config, std::vector<Conjecture>& out) {
  if (config.attention_softcap > 0)
    out.push_back({fmt::format("attn_logit_softcapping is off (the configuration says {})", config.attention_softcap),
                   R"({"attn_logit_softcapping": null})"});
  if (config.query_pre_attn_scalar > 0)
    for (const int64_t divisor : {config.head_dim, config.hidden_size / config.num_attention_heads})
      if (static_cast<double>(divisor) != config.query_pre_attn_scalar)
        out.push_back({fmt::format("query_pre_attn_scalar is {} (the configuration says {})", divisor,
                                   config.query_pre_attn_scalar),
                       fmt::format(R"({{"query_pre_attn_scalar": {}}})", divisor)});
}

bool is_block(const std::string& name) {
  return name.starts_with("hidden_states.") && name != "hidden_states.0";
}

void add_activation_causes(const Model& model, const std::string& name, const TensorComparison& comparison,
                           std::vector<std::string>& out) {
  const ModelConfig& config = model.config();
  if (name == "hidden_states.0") {
    out.emplace_back("the embedding table (another vocabulary order, padding, or a scale after the look-up)");
    if (config.positions != PositionKind::rotary)
      out.emplace_back("the positions: an offset, or whether they restart at each document");
    return;
  }
  if (name == "final_norm") {
    out.push_back(
        fmt::format("the last norm: its weights, its epsilon ({}), or none in the reference", config.norm_eps));
    return;
  }
  if (name == "logits") {
    out.push_back(fmt::format("the head: tie_word_embeddings is {}, the reference may have it otherwise",
                              config.tie_word_embeddings));
    out.emplace_back("a scale or a bias on the logits");
    return;
  }
  if (comparison.first_position > 0)
    out.push_back(
        fmt::format("the first {} tokens of a document agree: look at the mask (causal, documents, window), the "
                    "positions (rotary pairing, theta, scaling, restart) and the scale of the scores",
                    comparison.first_position));
  else
    out.push_back(
        fmt::format("the first token of a document differs already, which sees itself alone: look at the "
                    "norm's epsilon ({}) and place (before or after), the activation, the order of q, k and v "
                    "and of the heads, transposed weights, biases",
                    config.norm_eps));
  if (config.num_key_value_heads != config.num_attention_heads)
    out.emplace_back("which key/value head a query head reads (grouped: head / group, not head % groups)");
}

}  // namespace

std::vector<Conjecture> conjectures(const Model& model, const std::string& differs) {
  const ModelConfig& config = model.config();
  std::vector<Conjecture> out;
  if (differs != "hidden_states.0" && differs != "logits") add_epsilons(config, out);
  if (is_block(differs)) {
    add_activations(config, out);
    add_positions(config, out);
    add_scores(config, out);
    out.push_back({config.pre_norm ? "norms come after the residual sums" : "norms come before attention and MLP",
                   config.pre_norm ? R"({"do_layer_norm_before": false})" : R"({"do_layer_norm_before": true})"});
    if (config.scale_attention) out.push_back({"scores are not scaled", R"({"scale_attn_weights": false})"});
  }
  if (differs == "logits" && config.final_softcap > 0)
    out.push_back({fmt::format("final_logit_softcapping is off (the configuration says {})", config.final_softcap),
                   R"({"final_logit_softcapping": null})"});
  if (differs == "logits")
    out.push_back(
        {config.tie_word_embeddings ? "the head has weights of its own" : "the head is tied to the embedding",
         config.tie_word_embeddings ? R"({"tie_word_embeddings": false})" : R"({"tie_word_embeddings": true})"});
  return out;
}

std::vector<std::string> likely_causes(const Model& model, const ReferenceTensor& tensor,
                                       const TensorComparison& comparison) {
  std::vector<std::string> out;
  if (std::isnan(comparison.max_abs))
    out.emplace_back(
        "NaN, or infinite on one side alone: look at the weights and at the reference for numbers that are not finite");
  switch (tensor.stage) {
    case ReferenceStage::activation:
      add_activation_causes(model, tensor.source, comparison, out);
      break;
    case ReferenceStage::loss:
      out.emplace_back("the labels: they are unshifted here (token t predicts label t + 1), -100 is ignored");
      out.emplace_back("the divisor: the mean over the labels that count");
      break;
    case ReferenceStage::state_gradient:
    case ReferenceStage::gradient:
      out.emplace_back("dropout in the reference, or gradients that were clipped, scaled or accumulated");
      if (model.config().tie_word_embeddings && tensor.source.find("embed") != std::string::npos)
        out.emplace_back("a tied head: the embedding's gradient is the sum of both uses");
      out.emplace_back("the reference's own backward pass (the forward pass agrees)");
      break;
    case ReferenceStage::step_losses:
    case ReferenceStage::step_norms:
    case ReferenceStage::parameter_after:
      out.emplace_back(
          "the optimizer's settings: learning rate (constant here), betas, eps (outside the root), bias "
          "correction, decoupled weight decay");
      out.emplace_back("weight decay falls on tensors of two or more dimensions alone");
      out.emplace_back("clipping: one norm over all parameters, each counted once, before the update");
      break;
  }
  return out;
}

}  // namespace ingot
