// A program outside Ingot's tree: it adds a model family of its own (no attention: each token alone predicts the next,
// through gated MLPs), trains it on a text file, and watches every step through a callback.
//   example TEXT_FILE OUTPUT_DIR
#include <cstdio>

#include "models/family.h"
#include "nn/linear.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "ops/add.h"
#include "ops/embedding.h"
#include "train/trainer.h"

using namespace ingot;

Family bigram_family() {
  Family family;
  family.name = "bigram";
  family.architectures = {"BigramForCausalLM"};
  family.read_config = [](ConfigReader& in, ModelConfig& config) {
    in.integer("vocab_size", config.vocab_size);
    in.integer("hidden_size", config.hidden_size);
    in.integer("num_hidden_layers", config.num_hidden_layers);
    config.intermediate_size = 2 * config.hidden_size;
    config.max_position_embeddings = 1 << 20;
  };
  family.parameters = [](const ModelConfig& c) {
    std::vector<ParameterSpec> p{{"embed.weight", {c.vocab_size, c.hidden_size}, InitKind::normal, 0.02, "embedding"}};
    for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
      const std::string layer = "layers." + std::to_string(i) + ".";
      p.push_back({layer + "norm.weight", {c.hidden_size}, InitKind::ones, 0, "norm"});
      for (const char* name : {"gate", "up"})
        p.push_back({layer + name + ".weight", {c.intermediate_size, c.hidden_size}, InitKind::normal, 0.02, "mlp"});
      p.push_back({layer + "down.weight", {c.hidden_size, c.intermediate_size}, InitKind::normal, 0.02, "mlp"});
    }
    return p;
  };
  family.build = [](Builder& b, const ModelConfig& c, const Weights& weights, const TokenInputs& tokens) {
    ForwardValues out;
    ValueId x = embedding(b, weights("embed.weight"), tokens.ids);  // [B,T,C]
    out.hidden_states.push_back(x);
    for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
      const Weights layer = weights.under("layers." + std::to_string(i));
      const auto linear = [&](const char* name) { return linear_weights(layer, name, WeightLayout::out_in); };
      const ValueId y = norm(b, x, layer, "norm", NormKind::rms_norm, 1e-6);
      x = add(b, x, gated_mlp(b, y, linear("gate"), linear("up"), linear("down"), Activation::silu));
      out.hidden_states.push_back(x);
    }
    out.final_norm = x;
    out.head_weight = weights("embed.weight");
    return out;
  };
  return family;
}

int main(int argc, char** argv) {
  if (argc != 3 || !register_family(bigram_family()).ok()) return 2;
  RunConfig config;
  config.output_dir = argv[2];
  config.model.config = R"({"model_type": "bigram", "hidden_size": 32, "num_hidden_layers": 2})";
  config.tokenizer = {std::string(argv[2]) + "/tokenizer.json", 300};
  config.data.train = {{.path = argv[1]}};
  config.data.sequence_length = 32;
  config.training.steps = 20;
  config.optimizer.learning_rate = 1e-2;
  double first = 0, last = 0;
  TrainerHooks hooks;
  hooks.on_step_end.push_back([&](const StepView& step) -> Status {
    (step.step == 1 ? first : last) = step.loss;
    return {};
  });
  const auto result = train(config, hooks);
  if (!result.ok()) return std::fprintf(stderr, "%s\n", result.error().message.c_str()), 1;
  std::printf("loss %.4f -> %.4f\n", first, last);
  return last < first ? 0 : 1;
}
