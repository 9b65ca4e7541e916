#include "models/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/rng.h"
#include "graph/text.h"
#include "ops/interpret.h"
#include "ops/registry.h"

namespace ingot {
namespace {

using Tensors = std::map<std::string, RefTensor>;

constexpr const char* kSmallGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 29, "n_positions": 16, "n_embd": 12, "n_layer": 2, "n_head": 3})";
constexpr const char* kSmallLlama =
    R"({"model_type": "llama", "vocab_size": 29, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2,
        "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4})";

constexpr const char* kSmallGemma2 =
    R"({"model_type": "gemma2", "vocab_size": 29, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "query_pre_attn_scalar": 5,
        "sliding_window": 3, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0})";

Model model_of(std::string_view json) {
  auto model = Model::from_json(json, "test", {UnknownKeys::refuse, {}});
  if (!model.ok()) throw std::runtime_error(model.error().message);
  return *model;
}

Tensors initial_weights(const Model& model) {
  Tensors weights;
  for (const ParameterSpec& parameter : model.parameters()) {
    std::vector<float> values(static_cast<size_t>(parameter.shape.elements()));
    ParameterSpec large = parameter;
    large.std = 0.3;  // so that nothing is hidden by tiny activations
    initialize(large, 5, 0, parameter.shape.elements(), values.data());
    weights[parameter.name] = {parameter.shape, {values.begin(), values.end()}};
  }
  return weights;
}

RefTensor tokens(std::vector<double> values, int64_t batch) {
  const auto count = static_cast<int64_t>(values.size());
  return {{batch, count / batch}, std::move(values)};
}

// Ids that look random, positions 0, 1, …, everything before visible.
Tensors token_inputs(int64_t batch, int64_t length, int64_t vocabulary) {
  std::vector<double> ids, positions;
  for (int64_t i = 0; i < batch * length; ++i) {
    ids.push_back(static_cast<double>(bounded_at(3, static_cast<uint64_t>(i), static_cast<uint64_t>(vocabulary))));
    positions.push_back(static_cast<double>(i % length));
  }
  const RefTensor zeros = tokens(std::vector<double>(ids.size(), 0.0), batch);
  return {{"ids", tokens(ids, batch)}, {"positions", tokens(positions, batch)}, {"first_visible", zeros}};
}

RefTensor logits_of(const Model& model, Tensors sources, int64_t batch, int64_t length) {
  Graph graph;
  Builder builder(graph);
  builder.output("logits", model.build_logits(builder, model.build(builder, {batch, length, false})));
  return interpret_results(graph, sources).at("logits");
}

TEST(Presets, HaveTheParametersOfTheirModels) {
  const std::map<std::string_view, int64_t> expected{
      {"gpt2-124m", 124439808},  {"gpt2-350m", 354823168},    {"gpt2-774m", 774030080},  {"gpt2-1.5b", 1557611200},
      {"llama2-7b", 6738415616}, {"llama2-13b", 13015864320}, {"llama3-8b", 8030261248}, {"llama3.2-1b", 1235814400},
      {"llama-15m", 15191712},   {"gemma2-2.6b", 2614341888}};
  for (const auto& [name, count] : expected) {
    const auto model = Model::preset(name);
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(model->parameter_count(), count) << name;
  }
}

TEST(Presets, AllAreModelsOfAboutTheSizeInTheirName) {
  const std::map<char, double> units{{'m', 1e6}, {'b', 1e9}};
  for (const Preset& preset : list_presets()) {
    const auto model = Model::preset(preset.name);
    ASSERT_TRUE(model.ok()) << model.error().message;
    const auto size = std::string(preset.name.substr(preset.name.find('-') + 1));
    if (!std::isdigit(static_cast<unsigned char>(size[0]))) continue;
    const double named = std::stod(size) * units.at(size.back()), count = static_cast<double>(model->parameter_count());
    // "llama3.2-1b" has 1.24 billion.
    EXPECT_NEAR(count / named, 1, 0.25) << preset.name << " has " << count;
  }
}

TEST(Presets, TakeTheTokenizersSize) {
  const auto model = Model::preset("gpt2-nano", {UnknownKeys::warn, 512});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->config().vocab_size, 512);
  const auto unknown = Model::preset("gpt2-124M");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::usage);
  EXPECT_NE(unknown.error().message.find("nearest is \"gpt2-124m\""), std::string::npos) << unknown.error().message;
}

TEST(Model, CountsFlopsOfTraining) {
  const Model model = *Model::preset("gpt2-124m");
  EXPECT_DOUBLE_EQ(model.flops_per_token(1024), 6.0 * 124439808 + 12.0 * 12 * 768 * 1024);
}

TEST(Model, ReadsTheDefaultsOfItsFamily) {
  const ModelConfig gpt2 = model_of(R"({"model_type": "gpt2"})").config();
  EXPECT_EQ(gpt2.intermediate_size, 3072);
  EXPECT_EQ(gpt2.activation, Activation::gelu_tanh);
  EXPECT_EQ(gpt2.norm_eps, 1e-5);
  EXPECT_TRUE(gpt2.tie_word_embeddings);
  EXPECT_EQ(gpt2.embedding_dropout + gpt2.attention_dropout + gpt2.residual_dropout, 0);
  const ModelConfig llama = model_of(R"({"architectures": ["LlamaForCausalLM"]})").config();
  EXPECT_EQ(llama.model_type, "llama");
  EXPECT_EQ(llama.num_key_value_heads, 32);
  EXPECT_EQ(llama.head_dim, 128);
  EXPECT_EQ(llama.norm_eps, 1e-6);
  EXPECT_FALSE(llama.tie_word_embeddings);
  EXPECT_EQ(model_of(R"({"model_type": "mistral"})").config().sliding_window, 4096);
  EXPECT_EQ(model_of(R"({"model_type": "mistral", "sliding_window": null})").config().sliding_window, 0);
  EXPECT_EQ(model_of(R"({"model_type": "qwen3"})").config().head_dim, 128);
}

TEST(Model, ReadsGemma2WithItsCapsScalesAndWindows) {
  const Model model = model_of(R"({"model_type": "gemma2", "hidden_act": "gelu_pytorch_tanh"})");
  const ModelConfig& config = model.config();
  EXPECT_EQ(model.parameter_count(), 2614341888) << "Gemma 2 2B";
  EXPECT_EQ(config.attention_softcap, 50);
  EXPECT_EQ(config.final_softcap, 30);
  EXPECT_EQ(config.embedding_scale, 48);
  EXPECT_EQ(config.attention_scale(7), 1.0 / 16);
  EXPECT_EQ(config.window(0), 4096);
  EXPECT_EQ(config.window(1), 0);
  EXPECT_TRUE(config.tie_word_embeddings);
  const ModelConfig large = model_of(R"({"model_type": "gemma2", "query_pre_attn_scalar": 144})").config();
  EXPECT_EQ(large.attention_scale(0), 1.0 / 12);
  const ModelConfig plain = model_of(R"({"model_type": "gemma2", "attn_logit_softcapping": null,
                                         "final_logit_softcapping": null, "sliding_window": null})")
                                .config();
  EXPECT_EQ(plain.attention_softcap + plain.final_softcap, 0);
  EXPECT_EQ(plain.window(0), 0);
}

TEST(Model, ANormThatAddsOneStartsFromZero) {
  const Model model = model_of(kSmallGemma2);
  for (const char* name : {"model.norm.weight", "model.layers.2.post_feedforward_layernorm.weight"}) {
    const auto norm = std::ranges::find(model.parameters(), name, &ParameterSpec::name);
    ASSERT_NE(norm, model.parameters().end()) << name;
    EXPECT_EQ(norm->init, InitKind::zeros);
  }
}

TEST(Model, TakesHeadDimAsItsOwnKey) {
  const Model model = model_of(R"({"model_type": "qwen3", "hidden_size": 2560, "num_attention_heads": 32,
                                   "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 1})");
  const auto q = std::ranges::find(model.parameters(), "model.layers.0.self_attn.q_proj.weight", &ParameterSpec::name);
  ASSERT_NE(q, model.parameters().end());
  EXPECT_EQ(q->shape, (Shape{4096, 2560}));
}

TEST(Model, RefusesWhatItDoesNotHonour) {
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  const std::vector<std::tuple<std::string, ErrorKind, std::string>> cases{
      {R"({"model_type": "gpt3"})", ErrorKind::usage, "known are gpt2, llama"},
      {R"({"hidden_size": 4})", ErrorKind::usage, "no model_type"},
      {R"([1])", ErrorKind::input, "expected a JSON object"},
      {R"({"model_type": )", ErrorKind::input, "not JSON"},
      {R"({"model_type": "llama", "hidden_size": "big"})", ErrorKind::input, "hidden_size: expected an integer"},
      {R"({"model_type": "llama", "hidden_size": 12.5})", ErrorKind::input, "hidden_size"},
      {R"({"model_type": "llama", "hidden_size": -4})", ErrorKind::input, "hidden_size"},
      {R"({"model_type": "llama", "hidden_size": 18446744073709551615})", ErrorKind::input, "hidden_size"},
      {R"({"model_type": "llama", "hidden_size": 4095})", ErrorKind::usage, "does not divide"},
      {R"({"model_type": "llama", "num_key_value_heads": 5})", ErrorKind::usage, "num_key_value_heads"},
      {R"({"model_type": "llama", "head_dim": 5})", ErrorKind::usage, "even head dimension"},
      {R"({"model_type": "llama", "hidden_act": "mish"})", ErrorKind::usage, "hidden_act: \"mish\" is not supported"},
      {R"({"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": 4}})", ErrorKind::usage,
       "rope_scaling: rope_type: \"yarn\" is not supported"},
      {R"({"model_type": "llama", "rope_scaling": {"rope_type": "linear"}})", ErrorKind::usage,
       "factor: it is missing"},
      {R"({"model_type": "llama", "rope_scaling": 3})", ErrorKind::input, "expected an object"},
      {R"({"model_type": "llama", "quantization_config": {"bits": 4}})", ErrorKind::usage, "quantization_config"},
      {R"({"model_type": "gpt2", "add_cross_attention": true})", ErrorKind::usage, "add_cross_attention"},
      {R"({"model_type": "gpt2", "hidden_size": 12, "n_embd": 12})", ErrorKind::usage, "hidden_size and n_embd"},
      {R"({"model_type": "gpt2", "resid_pdrop": 1.0})", ErrorKind::input, "resid_pdrop"},
      {R"({"model_type": "qwen2", "use_sliding_window": true})", ErrorKind::usage, "use_sliding_window"},
      {R"({"model_type": "gemma2", "hidden_activation": "mi\"sh"})", ErrorKind::usage, "hidden_activation"},
      {R"({"model_type": "gemma2", "hidden_act": "silu"})", ErrorKind::usage, "hidden_activation, which counts"},
      {R"({"model_type": "gemma2", "num_hidden_layers": 2, "layer_types": ["full_attention", "full_attention"]})",
       ErrorKind::usage, "layer_types"},
      {R"({"model_type": "gemma2", "use_bidirectional_attention": true})", ErrorKind::usage,
       "use_bidirectional_attention"},
      {R"({"model_type": "gemma2", "attn_logit_softcapping": 0})", ErrorKind::input, "attn_logit_softcapping"},
      {R"({"model_type": "gemma2", "query_pre_attn_scalar": -1})", ErrorKind::input, "query_pre_attn_scalar"},
      {R"({"model_type": "llama", "vocab_size": 2000000000, "hidden_size": 2000000, "num_attention_heads": 2})",
       ErrorKind::usage, "at most"},
      {R"({"model_type": "gpt2", "task_specific_params": )" + deep + "}", ErrorKind::input, "deeper than 256 levels"},
      {R"({"model_type": "gpt2", "n_layer": )" + deep + "}", ErrorKind::input, "deeper than 256 levels"}};
  for (const auto& [json, kind, expected] : cases) {
    const auto model = Model::from_json(json, "DIR/config.json");
    ASSERT_FALSE(model.ok()) << json.substr(0, 200);
    EXPECT_EQ(model.error().kind, kind) << model.error().message;
    EXPECT_EQ(model.error().message.find("DIR/config.json: "), 0u) << model.error().message;
    EXPECT_NE(model.error().message.find(expected), std::string::npos) << model.error().message;
  }
}

TEST(Model, UnknownKeysAreWarnedOfInFilesAndRefusedFromUsers) {
  constexpr const char* kJson = R"({"model_type": "llama", "hiden_size": 64, "torch_dtype": "float16"})";
  EXPECT_TRUE(Model::from_json(kJson, "config.json").ok());
  const auto refused = Model::from_json(kJson, "model.config", {UnknownKeys::refuse, {}});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("\"hiden_size\"; the nearest is \"hidden_size\""), std::string::npos)
      << refused.error().message;
}

TEST(Model, TheResolvedConfigurationReadsBackToTheSameModel) {
  for (const char* json : {kSmallGpt2, kSmallLlama, R"({"model_type": "qwen3"})",
                           R"({"model_type": "llama", "rope_scaling": {"type": "llama3", "factor": 8,
                               "original_max_position_embeddings": 64}, "bos_token_id": 1})",
                           R"({"model_type": "llama", "rope_parameters": {"rope_type": "default", "rope_theta": 7.5}})",
                           R"({"model_type": "mistral", "sliding_window": null})", kSmallGemma2,
                           R"({"model_type": "gemma2", "num_hidden_layers": 2, "attn_logit_softcapping": null,
                               "hidden_act": "gelu_pytorch_tanh", "layer_types": ["sliding_attention", "full_attention"], "sliding_window": null})",
                           R"({"model_type": "gpt2", "norm_type": "rms_norm", "do_layer_norm_before": false})"}) {
    const Model model = model_of(json);
    const Model again = model_of(model.to_config_json());
    EXPECT_EQ(again.config(), model.config()) << json;
    EXPECT_EQ(again.to_config_json(), model.to_config_json());
    EXPECT_TRUE(std::ranges::equal(again.parameters(), model.parameters()));
  }
  EXPECT_EQ(model_of(R"({"model_type": "llama", "rope_parameters": {"rope_theta": 7.5}})").config().rotary.theta, 7.5);
}

TEST(Model, OverridesChangeWhatWasGivenNotWhatFollowedFromIt) {
  const Model model = model_of(kSmallGpt2);
  const auto wider = model.with_overrides(R"({"hidden_size": 24})", "model.config");
  ASSERT_TRUE(wider.ok()) << wider.error().message;
  EXPECT_EQ(wider->config().intermediate_size, 96);
  EXPECT_EQ(wider->config().vocab_size, 29);
  const auto unlimited = model_of(R"({"model_type": "mistral"})").with_overrides(R"({"sliding_window": null})", "test");
  ASSERT_TRUE(unlimited.ok());
  EXPECT_EQ(unlimited->config().sliding_window, 0) << "null is a value where the family says so";
  const auto other = model.with_overrides(R"({"model_type": "llama", "vocab_size": 7})", "model.config");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->config().hidden_size, 4096);
  const auto wrong = model.with_overrides(R"({"n_embed": 24})", "model.config");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().kind, ErrorKind::usage);
  EXPECT_NE(wrong.error().message.find("nearest is \"n_embd\""), std::string::npos) << wrong.error().message;
}

TEST(Model, VocabSizeDefaultsToTheTokenizers) {
  const auto open = Model::from_json(R"({"model_type": "gpt2"})", "test", {UnknownKeys::warn, 777});
  EXPECT_EQ(open->config().vocab_size, 777);
  const auto given = Model::from_json(R"({"model_type": "gpt2", "vocab_size": 5})", "test", {UnknownKeys::warn, 777});
  EXPECT_EQ(given->config().vocab_size, 5);
}

TEST(Model, SaysWhichKeysOthersDoNotKnow) {
  EXPECT_TRUE(model_of(kSmallGpt2).own_keys().empty());
  const Model model = model_of(R"({"model_type": "gpt2", "position_embedding_type": "sinusoidal",
                                   "norm_type": "layer_norm", "do_layer_norm_before": false})");
  EXPECT_EQ(model.own_keys(), (std::vector<std::string>{"position_embedding_type", "do_layer_norm_before"}));
}

TEST(Model, RefusesRowsBeyondItsPositions) {
  EXPECT_TRUE(model_of(kSmallGpt2).check_length(16, "test").ok());
  EXPECT_FALSE(model_of(kSmallGpt2).check_length(17, "test").ok());
  const int64_t most = model_of(kSmallLlama).config().max_position_embeddings;
  EXPECT_TRUE(model_of(kSmallLlama).check_length(most, "test").ok());
  EXPECT_FALSE(model_of(kSmallLlama).check_length(most + 1, "test").ok());
}

TEST(Initialize, DrawsTheSameHoweverATensorIsCut) {
  const Model model = model_of(kSmallGpt2);
  const auto proj = std::ranges::find(model.parameters(), "transformer.h.0.attn.c_proj.weight", &ParameterSpec::name);
  ASSERT_NE(proj, model.parameters().end());
  EXPECT_DOUBLE_EQ(proj->std, 0.02 / 2);  // two layers: 1/sqrt(4)
  std::vector<float> whole(144), parts(144);
  initialize(*proj, 9, 0, 144, whole.data());
  initialize(*proj, 9, 0, 13, parts.data());
  initialize(*proj, 9, 13, 144, parts.data() + 13);
  EXPECT_EQ(whole, parts);
  double squares = 0;
  for (float x : whole) squares += static_cast<double>(x) * x;
  EXPECT_NEAR(std::sqrt(squares / 144), 0.01, 0.002);
  EXPECT_NEAR(whole[5], 0.01 * normal_at(stream_key(9, proj->name), 5), 1e-8);
}

TEST(Initialize, NormsAreOneAndBiasesZero) {
  const Model model = model_of(kSmallGpt2);
  for (const ParameterSpec& parameter : model.parameters()) {
    std::vector<float> values(static_cast<size_t>(parameter.shape.elements()));
    initialize(parameter, 1, 0, parameter.shape.elements(), values.data());
    if (parameter.name.ends_with(".bias")) {
      EXPECT_TRUE(std::ranges::all_of(values, [](float x) { return x == 0; })) << parameter.name;
    } else if (parameter.component == "norm") {
      EXPECT_TRUE(std::ranges::all_of(values, [](float x) { return x == 1; })) << parameter.name;
    } else {
      EXPECT_NE(values[0], values[1]) << parameter.name;
    }
  }
}

TEST(Graphs, UseEveryParameterAndNoDropoutStreamTwice) {
  for (const char* json :
       {R"({"model_type": "gpt2", "vocab_size": 29, "n_positions": 16, "n_embd": 12, "n_layer": 2, "n_head": 3,
            "embd_pdrop": 0.1, "attn_pdrop": 0.1, "resid_pdrop": 0.1})",
        kSmallLlama, kSmallGemma2}) {
    const Model model = model_of(json);
    Graph graph;
    Builder builder(graph);
    builder.output("loss", model.build_loss(builder, model.build(builder, {2, 5, true})));
    EXPECT_TRUE(verify_graph(graph).ok());
    const auto readers = graph.readers();
    for (const Source& source : graph.sources)
      EXPECT_FALSE(readers[static_cast<size_t>(source.value)].empty()) << source.name;
    std::multiset<std::string> streams;
    for (NodeId id : graph.schedule())
      if (graph.node(id).op->traits.random) streams.insert(graph.node(id).attributes.to_string());
    EXPECT_EQ(streams.size(), model.config().embedding_dropout > 0 ? 7u : 0u);
    for (const std::string& stream : streams) EXPECT_EQ(streams.count(stream), 1u) << stream;
  }
}

TEST(Graphs, NothingThatCountsGivesLossZero) {
  const Model model = model_of(kSmallGpt2);
  Graph graph;
  Builder builder(graph);
  builder.output("loss", model.build_loss(builder, model.build(builder, {2, 5, false})));
  Tensors sources = initial_weights(model);
  sources.merge(token_inputs(2, 5, 29));
  sources["targets"] = tokens(std::vector<double>(10, -100.0), 2);
  sources["loss_scale"] = {{}, {0}};
  EXPECT_EQ(interpret_results(graph, sources).at("loss").data[0], 0);
}

// Prompts of 4 and 3 tokens (the second one padded), then one token at a time: the logits of the whole row.
TEST(Graphs, GenerationWithACacheGivesTheLogitsOfTheWholeRow) {
  for (const char* json : {kSmallGpt2, kSmallLlama, kSmallGemma2,
                           R"({"model_type": "mistral", "vocab_size": 29, "hidden_size": 12, "intermediate_size": 20,
            "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "sliding_window": 3})"}) {
    const Model model = model_of(json);
    const Tensors weights = initial_weights(model);
    Tensors row = token_inputs(2, 7, 29);
    Tensors whole = weights;
    whole.merge(Tensors(row));
    const RefTensor expected = logits_of(model, whole, 2, 7);
    const auto expect_logits = [&](const RefTensor& logits, size_t sequence, size_t t) {
      for (size_t i = 0; i < 29; ++i)
        EXPECT_NEAR(logits.data[sequence * 29 + i], expected.data[(sequence * 7 + t) * 29 + i], 1e-12) << json;
    };
    const auto& ids = row.at("ids").data;

    Tensors state = weights;
    Graph prefill, step;
    Builder prefill_builder(prefill), step_builder(step);
    model.build_cached(prefill_builder, {2, 4, 9, true});
    model.build_cached(step_builder, {2, 1, 9, false});
    for (const Source& source : prefill.sources)
      if (source.kind == SourceKind::state)
        state[source.name] = {prefill.shape(source.value),
                              std::vector<double>(static_cast<size_t>(prefill.shape(source.value).elements()), 0.0)};
    EXPECT_TRUE(state.contains("cache.k.1") && state.contains("cache.v.0"));

    state["ids"] = tokens({ids[0], ids[1], ids[2], ids[3], ids[7], ids[8], ids[9], 0}, 2);
    state["positions"] = tokens({0, 1, 2, 3, 0, 1, 2, 3}, 2);
    state["start"] = {{2}, {0, 0}};
    state["last"] = {{2}, {3, 6}};
    Tensors results = interpret_results(prefill, state);
    expect_logits(results.at("logits"), 0, 3);
    expect_logits(results.at("logits"), 1, 2);
    for (size_t t = 4; t < 7; ++t) {
      for (const auto& [name, tensor] : results)
        if (name.starts_with("cache.")) state[name] = tensor;
      const auto first = static_cast<double>(t), second = first - 1;
      state["ids"] = tokens({ids[t], ids[7 + t - 1]}, 2);
      state["positions"] = tokens({first, second}, 2);
      state["start"] = {{2}, {first, second}};
      results = interpret_results(step, state);
      expect_logits(results.at("logits"), 0, t);
      expect_logits(results.at("logits"), 1, t - 1);
    }
  }
}

TEST(Graphs, PostNormEndsInANormalizedStream) {
  const Model model = model_of(R"({"model_type": "gpt2", "vocab_size": 29, "n_embd": 12, "n_layer": 2, "n_head": 3,
                                   "do_layer_norm_before": false, "position_embedding_type": "sinusoidal"})");
  EXPECT_EQ(std::ranges::count(model.parameters(), "transformer.ln_f.weight", &ParameterSpec::name), 0);
  EXPECT_EQ(std::ranges::count(model.parameters(), "transformer.wpe.weight", &ParameterSpec::name), 0);
  Graph graph;
  Builder builder(graph);
  const Model::Forward forward = model.build(builder, {1, 5, false});
  EXPECT_EQ(forward.final_norm, forward.hidden_states.back());
  builder.output("x", forward.final_norm);
  Tensors sources = initial_weights(model);
  sources.merge(token_inputs(1, 5, 29));
  const RefTensor x = interpret_results(graph, sources).at("x");
  for (size_t t = 0; t < 5; ++t) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < 12; ++i) sum += x.data[t * 12 + i], squares += x.data[t * 12 + i] * x.data[t * 12 + i];
    EXPECT_NEAR(sum, 0, 1e-9);
    EXPECT_NEAR(squares, 12, 1e-2);
  }
}

TEST(Graphs, PositionsMatterWhateverTheirKind) {
  for (const char* kind : {"learned", "sinusoidal", "rotary"}) {
    for (const char* json : {kSmallGpt2, kSmallLlama}) {
      const auto model = model_of(json).with_overrides(
          fmt::format(
              R"({{"position_embedding_type": "{}", "norm_type": "layer_norm", "max_position_embeddings": 16}})", kind),
          "test");
      ASSERT_TRUE(model.ok()) << model.error().message;
      Tensors sources = initial_weights(*model);
      sources.merge(token_inputs(1, 4, 29));
      const RefTensor before = logits_of(*model, sources, 1, 4);
      sources["positions"].data = {0, 2, 1, 9};
      EXPECT_NE(logits_of(*model, sources, 1, 4).data, before.data) << kind;
    }
  }
}

TEST(Families, ATakenNameNamesItsOwnerOrGetsASuffix) {
  Family mine = *find_family("llama");
  mine.owner = "my program";
  const auto refused = register_family(mine);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("llama is taken by the family llama of ingot"), std::string::npos)
      << refused.error().message;
  const auto added = register_family(mine, NameTaken::add_suffix);
  ASSERT_TRUE(added.ok());
  EXPECT_EQ(*added, "llama-2");
  EXPECT_EQ(find_family("LlamaForCausalLM")->owner, "ingot");
  EXPECT_EQ(find_family("llama-2")->owner, "my program");
  EXPECT_EQ(model_of(R"({"model_type": "llama-2", "hidden_size": 64})").config().hidden_size, 64);
  const auto names = family_names();
  EXPECT_NE(std::ranges::find(names, "llama-2"), names.end());
}

}  // namespace
}  // namespace ingot
