#include "models/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "base/spelling.h"
#include "kernels/random/normal.h"
#include "nn/loss.h"
#include "ops/embedding.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace ingot {
namespace {

// Keys without effect here, and keys of encoders, of cross-attention and of quantization, which are refused where set.
void read_common_keys(ConfigReader& in) {
  in.informational({"model_type",
                    "architectures",
                    "_name_or_path",
                    "torch_dtype",
                    "dtype",
                    "transformers_version",
                    "use_cache",
                    "bos_token_id",
                    "eos_token_id",
                    "pad_token_id",
                    "sep_token_id",
                    "unk_token_id",
                    "decoder_start_token_id",
                    "task_specific_params",
                    "output_attentions",
                    "output_hidden_states",
                    "return_dict",
                    "id2label",
                    "label2id",
                    "num_labels",
                    "problem_type",
                    "finetuning_task",
                    "prefix",
                    "torchscript",
                    "gradient_checkpointing",
                    "attn_implementation",
                    "_attn_implementation",
                    "_attn_implementation_autoset",
                    "pretraining_tp",
                    "tokenizer_class",
                    "max_length",
                    "min_length",
                    "do_sample",
                    "temperature",
                    "top_k",
                    "top_p",
                    "num_beams",
                    "repetition_penalty",
                    "license"});
  for (const char* key : {"is_encoder_decoder", "is_decoder", "add_cross_attention", "tie_encoder_decoder"})
    in.only(key, "false");
  in.only("chunk_size_feed_forward", "0");
  in.only("pruned_heads", "{}");
  in.only("quantization_config", "null");
}

Error unknown_family(const std::string& where, const std::string& name) {
  const std::vector<std::string> known = family_names();
  if (name.empty()) return usage_error("{}: there is no model_type; known are {}", where, fmt::join(known, ", "));
  return usage_error("{}: the model_type \"{}\" is not known (the nearest is \"{}\"); known are {}", where, name,
                     nearest_name(name, known), fmt::join(known, ", "));
}

ValueId head_of(Builder& builder, ValueId rows, const ForwardValues& forward) {
  return head_logits(builder, rows, forward.head_weight, forward.head_transposed, forward.logit_softcap);
}

// Beyond any machine; what keeps arithmetic on sizes from overflowing.
constexpr double kMostParameters = 1e13;

}  // namespace

Result<Model> Model::make(std::shared_ptr<const Family> family, std::string_view json, const std::string& where,
                          const ModelOptions& options) {
  INGOT_ASSIGN(const std::string renamed, rename_keys(json, family->key_aliases, where));
  INGOT_ASSIGN(ConfigReader in, ConfigReader::parse(renamed, where, options.unknown_keys));
  if (options.vocab_size && !in.has("vocab_size")) {
    const std::string size = fmt::format("{{\"vocab_size\": {}}}", *options.vocab_size);
    INGOT_ASSIGN(const std::string with_size, merge_configs(renamed, size, where));
    INGOT_ASSIGN(in, ConfigReader::parse(with_size, where, options.unknown_keys));
  }
  Model model;
  model.config_.model_type = family->name;
  family->read_config(in, model.config_);
  read_common_keys(in);
  INGOT_TRY(in.finish());
  in.write("model_type", family->name);
  if (!family->architectures.empty()) in.write("architectures", std::vector{family->architectures.front()});
  model.json_ = in.resolved();
  model.given_ = in.given();
  model.parameters_ = std::make_shared<const std::vector<ParameterSpec>>(family->parameters(model.config_));
  model.family_ = std::move(family);
  double count = 0;
  for (const ParameterSpec& parameter : *model.parameters_) count += static_cast<double>(parameter.shape.elements());
  if (count > kMostParameters)
    return usage_error("{}: a model of {:.3g} parameters; at most {:.3g} are supported", where, count, kMostParameters);
  return model;
}

Result<Model> Model::from_json(std::string_view config_json, const std::string& where, ModelOptions options) {
  INGOT_TRY(ConfigReader::parse(config_json, where, options.unknown_keys));
  INGOT_ASSIGN(const std::string name, model_type_of(config_json, where));
  auto family = find_family(name);
  if (family == nullptr) return unknown_family(where, name);
  return make(std::move(family), config_json, where, options);
}

Result<Model> Model::preset(std::string_view name, ModelOptions options) {
  std::vector<std::string> names;
  for (const Preset& preset : list_presets()) {
    names.emplace_back(preset.name);
    if (preset.name != name) continue;
    const std::string where = fmt::format("the preset {}", name);
    if (!options.vocab_size) return from_json(preset.config, where, options);
    const std::string size = fmt::format("{{\"vocab_size\": {}}}", *options.vocab_size);
    INGOT_ASSIGN(const std::string config, merge_configs(preset.config, size, where));
    return from_json(config, where, options);
  }
  return usage_error("there is no model preset \"{}\" (the nearest is \"{}\"); there are {}", name,
                     nearest_name(name, names), fmt::join(names, ", "));
}

Result<Model> Model::with_overrides(std::string_view config_json, const std::string& where) const {
  const ModelOptions options{UnknownKeys::refuse, {}};
  INGOT_ASSIGN(const std::string name, model_type_of(config_json, where));
  if (!name.empty()) {
    const auto family = find_family(name);
    if (family == nullptr) return unknown_family(where, name);
    if (family != family_) return make(family, config_json, where, options);
  }
  INGOT_ASSIGN(const std::string changes, rename_keys(config_json, family_->key_aliases, where));
  INGOT_ASSIGN(const std::string merged, merge_configs(given_, changes, where));
  return make(family_, merged, where, options);
}

std::vector<std::string> Model::own_keys() const {
  ModelConfig defaults;
  ConfigReader nothing = ConfigReader::parse("{}", "defaults", UnknownKeys::refuse).value();
  family_->read_config(nothing, defaults);
  std::vector<std::string> keys;
  if (config_.positions != defaults.positions) keys.emplace_back("position_embedding_type");
  if (config_.norm != defaults.norm) keys.emplace_back("norm_type");
  if (config_.pre_norm != defaults.pre_norm) keys.emplace_back("do_layer_norm_before");
  return keys;
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const ParameterSpec& parameter : *parameters_) count += parameter.shape.elements();
  return count;
}

double Model::flops_per_token(int64_t tokens) const {
  return 6.0 * static_cast<double>(parameter_count()) + 12.0 * static_cast<double>(config_.num_hidden_layers) *
                                                            static_cast<double>(config_.hidden_size) *
                                                            static_cast<double>(tokens);
}

Status Model::check_length(int64_t tokens, const std::string& where) const {
  if (tokens <= config_.max_position_embeddings) return {};
  if (config_.positions == PositionKind::learned)
    return usage_error(
        "{}: {} tokens, but the model has learned positions for {} (max_position_embeddings, n_positions)", where,
        tokens, config_.max_position_embeddings);
  return usage_error(
      "{}: {} tokens, but the model is made for {}: take shorter sequences, or raise max_position_embeddings, which "
      "this model's positions allow",
      where, tokens, config_.max_position_embeddings);
}

Weights Model::declare_parameters(Builder& builder) const {
  for (const ParameterSpec& parameter : *parameters_) builder.parameter(parameter.name, {DType::f32, parameter.shape});
  return Weights(builder.graph());
}

Model::Forward Model::build(Builder& builder, const BuildOptions& options) const {
  const Weights weights = declare_parameters(builder);
  const Type tokens{DType::i32, {options.batch, options.tokens}};
  TokenInputs inputs;
  inputs.ids = builder.input("ids", tokens);
  inputs.positions = builder.input("positions", tokens);
  inputs.attention.first_visible = builder.input("first_visible", tokens);
  inputs.dropout = options.dropout;
  return family_->build(builder, config_, weights, inputs);
}

ValueId Model::build_logits(Builder& builder, const Forward& forward) const {
  const Builder::Scope scope(builder, "lm_head");
  const Shape shape = builder.shape(forward.final_norm);
  const ValueId logits = head_of(builder, forward.final_norm, forward);
  return reshape(builder, logits, {shape[0], shape[1], builder.shape(logits)[1]});
}

ValueId Model::build_loss(Builder& builder, const Forward& forward) const {
  const Shape shape = builder.shape(forward.final_norm);
  const ValueId targets = builder.input("targets", {DType::i32, {shape[0], shape[1]}});
  const ValueId scale = builder.input("loss_scale", {DType::f32, {}});
  const auto logits = [&] {
    const Builder::Scope scope(builder, "lm_head");
    return head_of(builder, forward.final_norm, forward);
  }();
  const Builder::Scope scope(builder, "loss");
  return token_loss(builder, logits, targets, scale);
}

void Model::build_cached(Builder& builder, const CachedBuildOptions& options) const {
  const Weights weights = declare_parameters(builder);
  const Type tokens{DType::i32, {options.batch, options.tokens}}, sequences{DType::i32, {options.batch}};
  TokenInputs inputs;
  inputs.ids = builder.input("ids", tokens);
  inputs.positions = builder.input("positions", tokens);
  inputs.attention.start = builder.input("start", sequences);
  inputs.attention.cache_capacity = options.capacity;
  const ValueId last = options.last_input ? builder.input("last", sequences) : kNone;
  const Forward forward = family_->build(builder, config_, weights, inputs);

  const Builder::Scope scope(builder, "lm_head");
  const int64_t width = builder.shape(forward.final_norm)[-1];
  ValueId rows = forward.final_norm;  // [B,T,C], else [B,1,C]
  if (options.all_logits) {
    INGOT_CHECK(!options.last_input, "the logits of the last token and those of all are wanted");
  } else if (options.last_input) {
    const ValueId flat = reshape(builder, forward.final_norm, {options.batch * options.tokens, width});
    rows = reshape(builder, embedding(builder, flat, last), {options.batch, 1, width});
  } else {
    rows = slice(builder, forward.final_norm, 1, options.tokens - 1, options.tokens);
  }
  builder.output("logits", head_of(builder, rows, forward));
}

void initialize(const ParameterSpec& parameter, uint64_t seed, int64_t begin, int64_t end, float* out) {
  if (parameter.init != InitKind::normal) {
    std::fill(out, out + (end - begin), parameter.init == InitKind::ones ? 1.0f : 0.0f);
    return;
  }
  kernels::fill_normal(stream_key(seed, parameter.name), begin, end, static_cast<float>(parameter.std), out);
}

}  // namespace ingot
