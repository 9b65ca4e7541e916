// Family: what a kind of model (a Hugging Face model_type) is: its keys, its tensors and how it is built. The built-in
// ones stand in one explicit list (registry.cc); a program that uses the library may add its own with
// register_family().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "models/config.h"
#include "models/config_reader.h"
#include "nn/attention.h"
#include "nn/weights.h"

namespace ingot {

enum class InitKind { normal, zeros, ones };

struct ParameterSpec {
  std::string name;  // the Hugging Face tensor name
  Shape shape;
  InitKind init = InitKind::normal;
  double std = 0.02;      // of a normal one
  std::string component;  // "embedding", "attention", "mlp", "norm" or "head"

  bool operator==(const ParameterSpec&) const = default;
};

// The tokens of a graph: ids and positions, i32 [B,T], and what attention sees.
struct TokenInputs {
  ValueId ids = kNone, positions = kNone;
  AttentionContext attention;
  bool dropout = false;  // whether dropout is on
};

// The values of a forward graph that others ask for.
struct ForwardValues {
  ValueId final_norm = kNone;   // [B,T,C], what the head reads
  ValueId head_weight = kNone;  // [V,C] where head_transposed, else [C,V]
  bool head_transposed = true;
  double logit_softcap = 0;            // of the head's products (nn/softcap.h); 0: they are the logits
  std::vector<ValueId> hidden_states;  // [B,T,C]; 0: the embedding output, k: what block k hands on
};

struct Family {
  std::string name;                        // model_type
  std::vector<std::string> architectures;  // as config.json lists them; the first is written
  std::string owner = "ingot";             // who registered it
  std::vector<KeyAlias> key_aliases = {};  // other names of its keys
  std::function<void(ConfigReader& in, ModelConfig& config)> read_config;
  // In the order in which they are used.
  std::function<std::vector<ParameterSpec>(const ModelConfig& config)> parameters;
  // Builds on the parameters, which are declared already under their names.
  std::function<ForwardValues(Builder& builder, const ModelConfig& config, const Weights& weights,
                              const TokenInputs& tokens)>
      build;
};

enum class NameTaken { refuse, add_suffix };
// Adds a family; gives the name it got. A name or architecture that is taken is an error that names its owner, or,
// with add_suffix, the name gets "-2", "-3", … and loses the architectures that are taken. Not to be called while
// models are made on other threads.
Result<std::string> register_family(Family family, NameTaken taken = NameTaken::refuse);
// By model_type or architecture; nullptr where there is none.
std::shared_ptr<const Family> find_family(std::string_view name);
std::vector<std::string> family_names();

}  // namespace ingot
