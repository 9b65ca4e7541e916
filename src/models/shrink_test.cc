#include "models/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ingot {
namespace {

Model described(std::string_view json) {
  auto model = Model::from_json(json, "test");
  if (!model.ok()) throw std::runtime_error(model.error().message);
  return std::move(*model);
}

Model smaller(const Model& model, int64_t layers, int64_t width) {
  auto small = shrunk(model, layers, width);
  if (!small.ok()) throw std::runtime_error(small.error().message);
  return std::move(*small);
}

TEST(Shrunk, EveryPresetHasASmallModelOfItsKind) {
  for (const Preset& preset : list_presets()) {
    const Model large = *Model::preset(preset.name);
    const int64_t width = large.config().hidden_size / 2 * 2 < 64 ? large.config().hidden_size : 64;
    const auto model = shrunk(large, 2, width);
    if (!model.ok()) {  // 25 heads of GPT-2 XL and the like always divide something; what does not says what does
      ADD_FAILURE() << preset.name << ": " << model.error().message;
      continue;
    }
    const ModelConfig &before = large.config(), &after = model->config();
    EXPECT_EQ(after.num_hidden_layers, 2) << preset.name;
    EXPECT_EQ(after.hidden_size, width);
    EXPECT_EQ(after.vocab_size, before.vocab_size);
    EXPECT_EQ(after.max_position_embeddings, before.max_position_embeddings);
    EXPECT_EQ(after.num_attention_heads * before.num_key_value_heads,
              before.num_attention_heads * after.num_key_value_heads)
        << preset.name;
    EXPECT_EQ(after.num_key_value_heads > 1, before.num_key_value_heads > 1);
    EXPECT_NEAR(static_cast<double>(after.intermediate_size) / static_cast<double>(width),
                static_cast<double>(before.intermediate_size) / static_cast<double>(before.hidden_size), 0.01);
    EXPECT_EQ(after.norm, before.norm);
    EXPECT_EQ(after.rotary, before.rotary);
  }
}

TEST(Shrunk, KeepsGroupsWindowsAndScales) {
  const ModelConfig gemma = smaller(described(R"({"model_type": "gemma2"})"), 4, 96).config();
  EXPECT_EQ(gemma.num_attention_heads, 4);
  EXPECT_EQ(gemma.num_key_value_heads, 2);
  EXPECT_EQ(gemma.head_dim, 22) << "8 · 256 · 96 / 2304 over four heads, even";
  EXPECT_DOUBLE_EQ(gemma.query_pre_attn_scalar, 22);
  EXPECT_DOUBLE_EQ(gemma.embedding_scale, std::sqrt(96.0));
  EXPECT_EQ(gemma.intermediate_size, 384);
  EXPECT_EQ(gemma.window(2), kShrunkWindow);
  EXPECT_EQ(gemma.window(3), 0);
  EXPECT_EQ(gemma.attention_softcap, 50);

  const ModelConfig shared =
      smaller(described(R"({"model_type": "mistral", "num_key_value_heads": 1, "sliding_window": 7})"), 1, 64).config();
  EXPECT_EQ(shared.num_key_value_heads, 1);
  EXPECT_EQ(shared.num_attention_heads, 32);
  EXPECT_EQ(shared.sliding_window, 7) << "a window that is small already stays";

  const ModelConfig qwen = smaller(described(R"({"model_type": "qwen3", "hidden_size": 1024, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "num_hidden_layers": 28,
      "layer_types": ["full_attention"]})"),
                                   3, 64)
                               .config();
  EXPECT_EQ(qwen.num_attention_heads, 2 * qwen.num_key_value_heads);
  EXPECT_TRUE(qwen.qk_norm);
}

TEST(Shrunk, LeavesNoListOfTheLayersThatAreGone) {
  const Model model = described(R"({"model_type": "gemma2", "num_hidden_layers": 2,
                                   "layer_types": ["sliding_attention", "full_attention"]})");
  EXPECT_EQ(smaller(model, 1, 64).to_config_json().find("layer_types"), std::string::npos);
}

TEST(Shrunk, RefusesWhatItCannotMake) {
  const Model model = described(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8,
                                   "num_key_value_heads": 4, "num_hidden_layers": 6})");
  const auto message = [&](int64_t layers, int64_t width) {
    const auto small = shrunk(model, layers, width);
    EXPECT_FALSE(small.ok());
    if (small.ok()) return std::string();
    EXPECT_EQ(small.error().kind, ErrorKind::usage);
    return small.error().message;
  };
  EXPECT_NE(message(0, 64).find("expected 1 to 6"), std::string::npos);
  EXPECT_NE(message(7, 64).find("expected 1 to 6"), std::string::npos);
  EXPECT_NE(message(2, 513).find("expected 1 to 512"), std::string::npos);
  EXPECT_NE(message(2, 50).find("the next width that can is 56"), std::string::npos) << message(2, 50);
}

TEST(InitializeShrunk, LeavesNoZerosAndNoOnes) {
  const Model model = smaller(described(R"({"model_type": "qwen2"})"), 1, 64);
  for (const ParameterSpec& parameter : model.parameters()) {
    std::vector<float> values(static_cast<size_t>(parameter.shape.elements()));
    initialize_shrunk(model, parameter, 3, values.data());
    if (values.size() > 4096) values.resize(4096);
    double sum = 0, squares = 0;
    for (const float x : values) sum += x, squares += static_cast<double>(x) * x;
    const double n = static_cast<double>(values.size()), mean = sum / n;
    EXPECT_NEAR(mean, parameter.init == InitKind::ones ? 1 : 0, 0.06) << parameter.name;
    EXPECT_NEAR(std::sqrt(squares / n - mean * mean), parameter.init == InitKind::normal ? 0.125 : 0.1, 0.035)
        << parameter.name;
  }
}

}  // namespace
}  // namespace ingot
