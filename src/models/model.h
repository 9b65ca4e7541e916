// Model: an immutable description of one model: its configuration, its parameters and the graphs that it is. It holds
// no weights. Copies are cheap; all const functions may be called from any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/family.h"

namespace ingot {

struct BuildOptions {
  int64_t batch = 1, tokens = 1;  // B and T
  bool dropout = false;           // with the configuration's probabilities
};

struct CachedBuildOptions {
  int64_t batch = 1, tokens = 1;  // new tokens a run
  int64_t capacity = 1;           // S: positions that the caches hold
  // Adds the input "last", i32 [B]: logits are those of row last[b] of the [B·T] new tokens (b·T + t), where the last
  // tokens of a batch are padding. Without it, of the T-th token of each sequence.
  bool last_input = false;
  // Logits [B·T,V] of every new token instead.
  bool all_logits = false;
};

struct ModelOptions {
  UnknownKeys unknown_keys = UnknownKeys::warn;
  std::optional<int64_t> vocab_size;  // where the configuration has none: the tokenizer's size
};

class Model {
 public:
  // From a config.json object. Errors: input for text that is no such object or holds a value of a wrong type, usage
  // for a value that is not supported and for an unknown model_type. `where` begins the message.
  static Result<Model> from_json(std::string_view config_json, const std::string& where, ModelOptions options = {});
  // list_presets() has the names. A tokenizer's size in options.vocab_size replaces the preset's.
  static Result<Model> preset(std::string_view name, ModelOptions options = {});

  // This model with some keys changed (a JSON object; unknown keys are errors); a model_type of another family starts
  // from that family's defaults.
  Result<Model> with_overrides(std::string_view config_json, const std::string& where) const;

  const ModelConfig& config() const { return config_; }
  // The resolved Hugging Face config.json: all keys, with what was left out at its default.
  const std::string& to_config_json() const { return json_; }
  // Keys of to_config_json() that are Ingot's own and at a value that Hugging Face's classes do not know: such a model
  // can be trained and resumed, but not be exported. Empty for others.
  std::vector<std::string> own_keys() const;

  // In the order in which they are used; a tied head is the embedding.
  std::span<const ParameterSpec> parameters() const& { return *parameters_; }
  std::span<const ParameterSpec> parameters() const&& = delete;  // they would be gone with the model
  int64_t parameter_count() const;
  // Of training, forward and backward: 6·N + 12·layers·hidden·T with N all parameters.
  double flops_per_token(int64_t tokens) const;

  // Whether rows of so many tokens are within max_position_embeddings, which evaluation and generation keep to as well.
  // `where` begins the message.
  Status check_length(int64_t tokens, const std::string& where) const;

  using Forward = ForwardValues;
  // The forward graph. Declares all parameters (f32), then the inputs "ids", "positions" and "first_visible", i32
  // [B,T]. first_visible is the first position in the row that a token sees.
  Forward build(Builder& builder, const BuildOptions& options) const;
  // [B,T,V].
  ValueId build_logits(Builder& builder, const Forward& forward) const;
  // The loss, f32 []: adds the inputs "targets", i32 [B,T] (the token that each one predicts, negative: does not
  // count), and "loss_scale", f32 [] (one over the number of tokens that count in the whole step).
  ValueId build_loss(Builder& builder, const Forward& forward) const;
  // The generation graph: inputs "ids" and "positions", i32 [B,T], and "start", i32 [B], the position in the cache of a
  // sequence's first new token (positions are start[b] + t unless a sequence is padded); states "cache.k.L" and
  // "cache.v.L" [B,Hkv,S,D] of each layer L from 0, which are written; output "logits" [B,V] ([B·T,V]: all_logits).
  void build_cached(Builder& builder, const CachedBuildOptions& options) const;

 private:
  Model() = default;
  static Result<Model> make(std::shared_ptr<const Family> family, std::string_view json, const std::string& where,
                            const ModelOptions& options);
  Weights declare_parameters(Builder& builder) const;

  ModelConfig config_;
  std::string json_;   // resolved
  std::string given_;  // the keys that were given, what overrides change
  std::shared_ptr<const Family> family_;
  std::shared_ptr<const std::vector<ParameterSpec>> parameters_;
};

// Initial values [begin, end) of a parameter, the same however it is cut: normal numbers of base/rng.h's stream
// (seed, name). Projections onto the residual stream have their deviation scaled by 1/sqrt(2·layers), as GPT-2
// describes it, in every family.
void initialize(const ParameterSpec& parameter, uint64_t seed, int64_t begin, int64_t end, float* out);

struct Preset {
  std::string_view name;
  std::string_view config;  // a config.json object
  std::string_view about;
};
std::span<const Preset> list_presets();

}  // namespace ingot
