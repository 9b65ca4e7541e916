#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "export/export.h"
#include "export/narrow.h"
#include "export/testing.h"

namespace ingot {
namespace {

using testing::GgufFile;
using Json = nlohmann::json;

constexpr const char* kLlama =
    R"({"model_type": "llama", "vocab_size": 272, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": false, "torch_dtype": "float32"})";
constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 260, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16,
    "n_inner": 96})";

Json changed(Json config, const Json& changes) {
  config.update(changes);
  return config;
}
Json changed(const char* config, const Json& changes) {
  return changed(Json::parse(config), changes);
}
Json gemma2_config() {
  return Json::parse(R"({"model_type": "gemma2", "vocab_size": 272, "hidden_size": 32, "intermediate_size": 40,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 10,
    "query_pre_attn_scalar": 10, "sliding_window": 24, "attn_logit_softcapping": 40.0, "max_position_embeddings": 64})");
}

class ExportGguf : public testing::ExportedModel {
 protected:
  fs::path out() const { return scratch_.path() / "out" / "model.gguf"; }

  Result<ExportReport> try_export(const fs::path& directory, const std::string& config,
                                  std::optional<GgufType> type = {}) {
    const Model model = model_of(config);
    auto tokenizer = Tokenizer::load(directory);
    if (!tokenizer.ok()) return tokenizer.error();
    return export_gguf({directory, model, &*tokenizer}, out(), type);
  }

  GgufFile exported(const std::string& config, const Json& tokenizer, std::optional<GgufType> type = {},
                    DType dtype = DType::f32) {
    const fs::path directory = write_directory(config, tokenizer.dump(), dtype);
    EXPECT_TRUE(write_file_atomic(directory / "tokenizer_config.json", tokenizer_config_).ok());
    const auto report = try_export(directory, config, type);
    EXPECT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->bytes, fs::file_size(out()));
    GgufFile file(testing::content_of(out()));
    EXPECT_EQ(report->tensors, file.order.size());
    return file;
  }

  void expect_refused(const std::string& config, const Json& tokenizer, const std::string& part) {
    const fs::path directory = write_directory(config, tokenizer.dump());
    EXPECT_TRUE(write_file_atomic(directory / "tokenizer_config.json", tokenizer_config_).ok());
    const auto report = try_export(directory, config);
    ASSERT_FALSE(report.ok()) << part;
    EXPECT_EQ(report.error().kind, ErrorKind::usage);
    EXPECT_NE(report.error().message.find(part), std::string::npos) << report.error().message;
    EXPECT_FALSE(fs::exists(out()));
  }

  // Row by row: how the rows of an exported tensor [rows, width] come from those of the parameter.
  void expect_rows(const GgufFile& file, const std::string& tensor, const std::string& parameter, uint64_t width,
                   const std::function<size_t(size_t)>& from) {
    const std::vector<float> given = f32_of(parameter), stored = file.values(tensor);
    ASSERT_EQ(stored.size(), given.size()) << tensor;
    EXPECT_EQ(file.tensors.at(tensor).dims.front(), file.tensors.at(tensor).dims.size() == 1 ? stored.size() : width);
    for (size_t i = 0; i < stored.size(); ++i)
      ASSERT_EQ(stored[i], given[from(i / width) * width + i % width]) << tensor << " " << i;
  }
  void expect_same(const GgufFile& file, const std::string& tensor, const std::string& parameter, uint64_t width) {
    expect_rows(file, tensor, parameter, width, [](size_t row) { return row; });
  }

  std::string tokenizer_config_ = R"({"bos_token": "<s>", "eos_token": "</s>"})";
};

// Heads of 8 rows: 0, 4, 1, 5, 2, 6, 3, 7.
size_t rotary_row(size_t row) {
  return row / 8 * 8 + row % 8 / 2 + row % 2 * 4;
}

TEST_F(ExportGguf, TensorsLieAlignedOneAfterTheOther) {
  const GgufFile file = exported(kLlama, testing::piece_tokenizer());
  EXPECT_EQ(file.version, 3u);
  EXPECT_EQ(file.keys.at("general.alignment"), 32);
  uint64_t expected = 0;
  for (const std::string& name : file.order) {
    const GgufFile::Tensor& tensor = file.tensors.at(name);
    EXPECT_EQ(tensor.offset, expected) << name;
    expected = (tensor.offset + GgufFile::size_of(tensor) + 31) / 32 * 32;
  }
  EXPECT_EQ(file.data_begin() % 32, 0u);
  EXPECT_EQ(file.size(), file.data_begin() + expected);
}

TEST_F(ExportGguf, ALlamaHasTheKeysAndTensorsOfLlamaCpp) {
  const GgufFile file = exported(kLlama, testing::piece_tokenizer());
  const std::map<std::string, Json> keys{{"general.architecture", "llama"},
                                         {"general.type", "model"},
                                         {"general.file_type", 0},
                                         {"general.quantization_version", 2},
                                         {"llama.vocab_size", 272},
                                         {"llama.context_length", 64},
                                         {"llama.embedding_length", 32},
                                         {"llama.block_count", 2},
                                         {"llama.feed_forward_length", 40},
                                         {"llama.attention.head_count", 4},
                                         {"llama.attention.head_count_kv", 2},
                                         {"llama.attention.key_length", 8},
                                         {"llama.attention.value_length", 8},
                                         {"llama.rope.dimension_count", 8},
                                         {"llama.rope.freq_base", 10000.0f},
                                         {"llama.attention.layer_norm_rms_epsilon", 1e-5f}};
  for (const auto& [key, value] : keys) EXPECT_EQ(file.keys.at(key), value) << key;
  EXPECT_EQ(file.types.at("llama.block_count"), "u32");
  EXPECT_EQ(file.types.at("llama.rope.freq_base"), "f32");
  EXPECT_EQ(file.keys.count("llama.rope.scaling.type"), 0u);

  EXPECT_EQ(file.order.size(), 3u + 2 * 9u);
  EXPECT_EQ(file.tensors.at("token_embd.weight").dims, (std::vector<uint64_t>{32, 272}));
  EXPECT_EQ(file.tensors.at("blk.1.attn_k.weight").dims, (std::vector<uint64_t>{32, 16}));
  expect_same(file, "token_embd.weight", "model.embed_tokens.weight", 32);
  expect_same(file, "output_norm.weight", "model.norm.weight", 32);
  expect_same(file, "output.weight", "lm_head.weight", 32);
  for (const int layer : {0, 1}) {
    const std::string to = fmt::format("blk.{}.", layer), from = fmt::format("model.layers.{}.", layer);
    expect_rows(file, to + "attn_q.weight", from + "self_attn.q_proj.weight", 32, rotary_row);
    expect_rows(file, to + "attn_k.weight", from + "self_attn.k_proj.weight", 32, rotary_row);
    expect_same(file, to + "attn_v.weight", from + "self_attn.v_proj.weight", 32);
    expect_same(file, to + "attn_output.weight", from + "self_attn.o_proj.weight", 32);
    expect_same(file, to + "attn_norm.weight", from + "input_layernorm.weight", 32);
    expect_same(file, to + "ffn_norm.weight", from + "post_attention_layernorm.weight", 32);
    expect_same(file, to + "ffn_gate.weight", from + "mlp.gate_proj.weight", 32);
    expect_same(file, to + "ffn_up.weight", from + "mlp.up_proj.weight", 32);
    expect_same(file, to + "ffn_down.weight", from + "mlp.down_proj.weight", 40);
  }
}

TEST_F(ExportGguf, BiasesOfQueriesAndKeysAreTurnedWithTheirRows) {
  const Json config = changed(kLlama, {{"attention_bias", true}, {"mlp_bias", true}, {"head_dim", 8}});
  const GgufFile file = exported(config.dump(), testing::piece_tokenizer());
  expect_rows(file, "blk.0.attn_q.bias", "model.layers.0.self_attn.q_proj.bias", 1, rotary_row);
  expect_rows(file, "blk.1.attn_k.bias", "model.layers.1.self_attn.k_proj.bias", 1, rotary_row);
  expect_same(file, "blk.1.attn_v.bias", "model.layers.1.self_attn.v_proj.bias", 1);
  expect_same(file, "blk.1.attn_output.bias", "model.layers.1.self_attn.o_proj.bias", 1);
  expect_same(file, "blk.1.ffn_down.bias", "model.layers.1.mlp.down_proj.bias", 1);
}

TEST_F(ExportGguf, AHeadDimOfItsOwnIsWritten) {
  const Json config = changed(kLlama, {{"head_dim", 24}});
  const GgufFile file = exported(config.dump(), testing::piece_tokenizer());
  EXPECT_EQ(file.keys.at("llama.attention.key_length"), 24);
  EXPECT_EQ(file.keys.at("llama.rope.dimension_count"), 24);
  EXPECT_EQ(file.tensors.at("blk.0.attn_q.weight").dims, (std::vector<uint64_t>{32, 96}));
  expect_rows(file, "blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight", 32,
              [](size_t row) { return row / 24 * 24 + row % 24 / 2 + row % 2 * 12; });
}

TEST_F(ExportGguf, AGpt2IsTransposed) {
  tokenizer_config_ = R"({"eos_token": "<|endoftext|>"})";
  const GgufFile file = exported(kGpt2, testing::byte_tokenizer());
  EXPECT_EQ(file.keys.at("general.architecture"), "gpt2");
  EXPECT_EQ(file.keys.at("gpt2.context_length"), 16);
  EXPECT_EQ(file.keys.at("gpt2.feed_forward_length"), 96);
  EXPECT_EQ(file.keys.at("gpt2.attention.layer_norm_epsilon"), 1e-5f);
  EXPECT_EQ(file.keys.count("gpt2.rope.freq_base"), 0u);
  EXPECT_EQ(file.tensors.count("output.weight"), 0u) << "the head is tied";
  expect_same(file, "position_embd.weight", "transformer.wpe.weight", 32);
  expect_same(file, "output_norm.bias", "transformer.ln_f.bias", 1);
  expect_same(file, "blk.1.attn_qkv.bias", "transformer.h.1.attn.c_attn.bias", 1);
  const std::map<std::string, std::string> transposed{
      {"blk.0.attn_qkv.weight", "transformer.h.0.attn.c_attn.weight"},
      {"blk.0.attn_output.weight", "transformer.h.0.attn.c_proj.weight"},
      {"blk.1.ffn_up.weight", "transformer.h.1.mlp.c_fc.weight"},
      {"blk.1.ffn_down.weight", "transformer.h.1.mlp.c_proj.weight"}};
  for (const auto& [name, parameter] : transposed) {
    const std::vector<float> given = f32_of(parameter), stored = file.values(name);
    const size_t in = file.tensors.at(name).dims[0], outs = file.tensors.at(name).dims[1];
    ASSERT_EQ(in * outs, given.size()) << name;
    for (size_t o = 0; o < outs; ++o)
      for (size_t i = 0; i < in; ++i) ASSERT_EQ(stored[o * in + i], given[i * outs + o]) << name;
  }
  EXPECT_EQ(file.tensors.at("blk.1.ffn_down.weight").dims, (std::vector<uint64_t>{96, 32}));
}

TEST_F(ExportGguf, QwensKeepTheirRows) {
  const Json qwen2 = changed(kLlama, {{"model_type", "qwen2"}}),
             qwen3 = changed(kLlama, {{"model_type", "qwen3"}, {"head_dim", 16}});
  const GgufFile two = exported(qwen2.dump(), testing::piece_tokenizer());
  EXPECT_EQ(two.keys.at("general.architecture"), "qwen2");
  EXPECT_EQ(two.keys.at("qwen2.attention.head_count_kv"), 2);
  expect_same(two, "blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight", 32);
  expect_same(two, "blk.0.attn_k.bias", "model.layers.0.self_attn.k_proj.bias", 1);
  const GgufFile three = exported(qwen3.dump(), testing::piece_tokenizer());
  EXPECT_EQ(three.keys.at("qwen3.attention.key_length"), 16);
  expect_same(three, "blk.0.attn_k.weight", "model.layers.0.self_attn.k_proj.weight", 32);
  expect_same(three, "blk.0.attn_q_norm.weight", "model.layers.0.self_attn.q_norm.weight", 1);
  expect_same(three, "blk.0.attn_k_norm.weight", "model.layers.0.self_attn.k_norm.weight", 1);
}

TEST_F(ExportGguf, AGemma2HasItsNormsWithTheOneAddedAndItsCaps) {
  const Json config = gemma2_config();
  const GgufFile file = exported(config.dump(), testing::piece_tokenizer(), GgufType::f16);
  const std::map<std::string, Json> keys{
      {"general.architecture", "gemma2"},       {"gemma2.context_length", 64},
      {"gemma2.attention.key_length", 10},      {"gemma2.attention.sliding_window", 24},
      {"gemma2.attn_logit_softcapping", 40.0f}, {"gemma2.final_logit_softcapping", 30.0f}};
  for (const auto& [key, value] : keys) EXPECT_EQ(file.keys.at(key), value) << key;
  EXPECT_EQ(file.order.size(), 2u + 2 * 11u) << "the head is tied";
  const std::map<std::string, std::string> norms{
      {"output_norm.weight", "model.norm.weight"},
      {"blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
      {"blk.1.post_attention_norm.weight", "model.layers.1.post_attention_layernorm.weight"},
      {"blk.0.ffn_norm.weight", "model.layers.0.pre_feedforward_layernorm.weight"},
      {"blk.1.post_ffw_norm.weight", "model.layers.1.post_feedforward_layernorm.weight"}};
  for (const auto& [name, parameter] : norms) {
    EXPECT_EQ(file.tensors.at(name).type, 0u) << name;
    const std::vector<float> given = f32_of(parameter), stored = file.values(name);
    ASSERT_EQ(stored.size(), given.size()) << name;
    for (size_t i = 0; i < given.size(); ++i) ASSERT_EQ(stored[i], given[i] + 1.0f) << name;
  }
  const GgufFile whole = exported(config.dump(), testing::piece_tokenizer());
  expect_same(whole, "blk.1.attn_q.weight", "model.layers.1.self_attn.q_proj.weight", 32);
  expect_same(whole, "blk.0.ffn_gate.weight", "model.layers.0.mlp.gate_proj.weight", 32);
  const Json unlimited = changed(config, {{"sliding_window", nullptr}});
  EXPECT_EQ(exported(unlimited.dump(), testing::piece_tokenizer()).keys.at("gemma2.attention.sliding_window"), 64);
}

TEST_F(ExportGguf, WhatLlamaCppsGemma2LacksIsRefusedByName) {
  for (const auto& [changes, part] :
       std::vector<std::pair<Json, std::string>>{{{{"hidden_activation", "silu"}}, "hidden_activation"},
                                                 {{{"attention_bias", true}}, "attention_bias"},
                                                 {{{"tie_word_embeddings", false}}, "tie_word_embeddings"},
                                                 {{{"attn_logit_softcapping", nullptr}}, "attn_logit_softcapping"},
                                                 {{{"final_logit_softcapping", nullptr}}, "final_logit_softcapping"},
                                                 {{{"query_pre_attn_scalar", 8}}, "query_pre_attn_scalar: 8"}})
    expect_refused(changed(gemma2_config(), changes).dump(), testing::piece_tokenizer(), part);
}

TEST_F(ExportGguf, AWindowShortensTheContext) {
  const Json config = changed(kLlama, {{"model_type", "mistral"}, {"sliding_window", 24}});
  EXPECT_EQ(exported(config.dump(), testing::piece_tokenizer()).keys.at("llama.context_length"), 24);
}

TEST_F(ExportGguf, RotaryScalingIsAKeyOrATensor) {
  const Json linear = changed(kLlama, {{"rope_scaling", {{"type", "linear"}, {"factor", 4.0}}}});
  const GgufFile scaled = exported(linear.dump(), testing::piece_tokenizer());
  EXPECT_EQ(scaled.keys.at("llama.rope.scaling.type"), "linear");
  EXPECT_EQ(scaled.keys.at("llama.rope.scaling.factor"), 4.0f);
  EXPECT_EQ(scaled.tensors.count("rope_freqs.weight"), 0u);

  const Json llama3 = changed(kLlama, {{"head_dim", 64},
                                       {"rope_scaling",
                                        {{"rope_type", "llama3"},
                                         {"factor", 8.0},
                                         {"low_freq_factor", 1.0},
                                         {"high_freq_factor", 4.0},
                                         {"original_max_position_embeddings", 8192}}}});
  const GgufFile file = exported(llama3.dump(), testing::piece_tokenizer());
  const std::vector<float> factors = file.values("rope_freqs.weight");
  ASSERT_EQ(factors.size(), 32u);
  for (size_t i = 0; i < factors.size(); ++i) {
    const double wavelength = 2 * M_PI * std::pow(10000.0, static_cast<double>(i) / 32);
    if (wavelength < 8192.0 / 4) {
      EXPECT_EQ(factors[i], 1.0f) << i;
    } else {  // all others lie between 8192/4 and 8192 · 8
      const double smooth = std::clamp((8192.0 / wavelength - 1) / 3, 0.0, 1.0);
      EXPECT_NEAR(factors[i], 1 / ((1 - smooth) / 8 + smooth), 1e-4) << i;
    }
  }
  EXPECT_GT(factors.back(), 1.5f);
}

// ---- types

TEST_F(ExportGguf, WeightsAreRoundedToTheTypeAskedForAndNormsStayF32) {
  struct Case {
    GgufType type;
    uint32_t stored, file_type;
    std::function<float(float)> rounded;
  };
  const std::vector<Case> cases{{GgufType::f32, 0, 0, [](float x) { return x; }},
                                {GgufType::f16, 1, 1, [](float x) { return float_from_f16(f16_from_float(x)); }},
                                {GgufType::bf16, 30, 32, [](float x) { return float_from_bf16(bf16_from_float(x)); }}};
  for (const Case& one : cases) {
    const GgufFile file = exported(kLlama, testing::piece_tokenizer(), one.type);
    EXPECT_EQ(file.keys.at("general.file_type"), one.file_type);
    EXPECT_EQ(file.tensors.at("blk.0.attn_norm.weight").type, 0u);
    EXPECT_EQ(file.tensors.at("blk.0.ffn_up.weight").type, one.stored);
    const std::vector<float> given = f32_of("model.layers.0.mlp.up_proj.weight"),
                             stored = file.values("blk.0.ffn_up.weight");
    for (size_t i = 0; i < given.size(); ++i) ASSERT_EQ(stored[i], one.rounded(given[i])) << i;
  }
}

TEST_F(ExportGguf, WithoutATypeWeightsStayAsTheyAre) {
  for (const auto& [dtype, type] : {std::pair{DType::f16, 1u}, {DType::bf16, 30u}, {DType::f64, 0u}}) {
    const GgufFile file = exported(kLlama, testing::piece_tokenizer(), {}, dtype);
    EXPECT_EQ(file.tensors.at("blk.0.ffn_up.weight").type, type);
    EXPECT_EQ(file.tensors.at("output_norm.weight").type, 0u);
  }
}

TEST_F(ExportGguf, Q8IsBlocksOfARowAndRowsOfOtherLengthsAreF16) {
  const GgufFile file = exported(kLlama, testing::piece_tokenizer(), GgufType::q8_0);
  EXPECT_EQ(file.keys.at("general.file_type"), 7);
  EXPECT_EQ(file.tensors.at("blk.0.attn_q.weight").type, 8u);
  EXPECT_EQ(file.tensors.at("blk.0.ffn_down.weight").type, 1u) << "rows of 40";
  EXPECT_EQ(file.tensors.at("blk.0.attn_norm.weight").type, 0u);
  const std::vector<float> given = f32_of("model.layers.0.self_attn.q_proj.weight"),
                           stored = file.values("blk.0.attn_q.weight");
  for (size_t row = 0; row < 32; ++row) {
    float largest = 0;
    for (size_t i = 0; i < 32; ++i) largest = std::max(largest, given[rotary_row(row) * 32 + i]);
    for (size_t i = 0; i < 32; ++i)  // half a step, and the scale's own rounding
      ASSERT_NEAR(stored[row * 32 + i], given[rotary_row(row) * 32 + i], largest / 127 * 0.5 + largest * 0.0006);
  }
}

TEST_F(ExportGguf, ATypeThatCannotHoldANumberIsRefusedAndNothingIsLeft) {
  const fs::path directory = write_directory(kLlama, testing::piece_tokenizer().dump());
  std::vector<float> large(16 * 32, 1.0f);
  large[100] = 70000.0f;
  const auto weights = SafetensorsModel::open(directory);
  std::vector<NamedTensor> tensors;
  for (const auto& tensor : weights->tensors()) tensors.push_back({tensor.info.name, SafetensorsModel::view(tensor)});
  for (NamedTensor& tensor : tensors)
    if (tensor.name == "model.layers.1.self_attn.v_proj.weight")
      tensor.view.data = reinterpret_cast<const std::byte*>(large.data());
  ASSERT_TRUE(write_model(directory, tensors).ok());
  const auto refused = try_export(directory, kLlama, GgufType::f16);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::failed);
  for (const char* part : {"model.layers.1.self_attn.v_proj.weight", "70000", "f16"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  EXPECT_TRUE(testing::names_in(out().parent_path()).empty());
  EXPECT_TRUE(try_export(directory, kLlama, GgufType::bf16).ok());
  large[100] = std::nanf("");
  ASSERT_TRUE(write_model(directory, tensors).ok());
  EXPECT_FALSE(try_export(directory, kLlama, GgufType::q8_0).ok());
  EXPECT_TRUE(try_export(directory, kLlama, GgufType::f16).ok()) << "f16 has NaN";
}

TEST(Q8, BlocksHoldScaleAndRoundedNumbers) {
  std::vector<float> values(64, 0.0f);
  values[0] = 127.0f;
  values[1] = -63.5f;  // halves away from zero
  values[2] = 0.4f;
  values[40] = 1e-30f;  // a scale that f16 has no place for
  std::vector<std::byte> out(68);
  ASSERT_TRUE(quantize_q8_0(values, out.data()));
  const auto at = [&](size_t i) { return static_cast<int>(static_cast<int8_t>(out[i])); };
  EXPECT_EQ(out[0], std::byte{0x00});
  EXPECT_EQ(out[1], std::byte{0x3c});
  EXPECT_EQ(at(2), 127);
  EXPECT_EQ(at(3), -64);
  EXPECT_EQ(at(4), 0);
  EXPECT_EQ(out[34], std::byte{0});
  EXPECT_EQ(out[35], std::byte{0});
  values[5] = 1e7f;
  EXPECT_FALSE(quantize_q8_0(values, out.data()));
  values[5] = INFINITY;
  EXPECT_FALSE(quantize_q8_0(values, out.data()));
}

// ---- tokenizers

TEST_F(ExportGguf, PiecesHaveScoresThatSayTheMergesOrder) {
  const GgufFile file = exported(kLlama, testing::piece_tokenizer());
  const std::map<std::string, Json> keys{
      {"tokenizer.ggml.model", "llama"},        {"tokenizer.ggml.bos_token_id", 1},
      {"tokenizer.ggml.eos_token_id", 2},       {"tokenizer.ggml.unknown_token_id", 0},
      {"tokenizer.ggml.add_bos_token", true},   {"tokenizer.ggml.add_eos_token", false},
      {"tokenizer.ggml.add_space_prefix", true}};
  for (const auto& [key, value] : keys) EXPECT_EQ(file.keys.at(key), value) << key;
  EXPECT_EQ(file.types.at("tokenizer.ggml.scores"), "[f32]");
}

TEST_F(ExportGguf, TokensHaveTypesAndEveryRowHasAToken) {
  const GgufFile file = exported(kLlama, testing::piece_tokenizer());
  const Json tokens = file.keys.at("tokenizer.ggml.tokens"), types = file.keys.at("tokenizer.ggml.token_type"),
             scores = file.keys.at("tokenizer.ggml.scores");
  ASSERT_EQ(tokens.size(), 272u);
  ASSERT_EQ(types.size(), 272u);
  ASSERT_EQ(scores.size(), 272u);
  EXPECT_EQ(tokens[3 + 0x41], "<0x41>");
  EXPECT_EQ(types[0], 2);
  EXPECT_EQ(types[1], 3);
  EXPECT_EQ(types[3 + 0x41], 6);
  EXPECT_EQ(tokens[261], "\u2581the");
  EXPECT_EQ(types[261], 1);
  EXPECT_EQ(tokens[271], "[PAD271]");
  EXPECT_EQ(types[271], 5);
  // he, ▁t, ▁the, th, ▁th, the by their merges' order; then what is never merged to.
  for (size_t id = 259; id < 268; ++id) EXPECT_GT(scores[id].get<float>(), scores[id + 1].get<float>()) << id;
}

TEST_F(ExportGguf, BytesHaveMergesAndAPreTokenizer) {
  tokenizer_config_ = R"({"eos_token": "<|endoftext|>", "chat_template": "{{ messages }}"})";
  const GgufFile file = exported(kGpt2, testing::byte_tokenizer());
  EXPECT_EQ(file.keys.at("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(file.keys.at("tokenizer.ggml.pre"), "gpt-2");
  EXPECT_EQ(file.keys.at("tokenizer.ggml.merges"), (Json{"t h", "th e"}));
  EXPECT_EQ(file.keys.at("tokenizer.ggml.eos_token_id"), 0);
  EXPECT_EQ(file.keys.at("tokenizer.ggml.bos_token_id"), 0);
  EXPECT_EQ(file.keys.at("tokenizer.ggml.add_bos_token"), false);
  EXPECT_EQ(file.keys.at("tokenizer.chat_template"), "{{ messages }}");
  EXPECT_EQ(file.keys.at("tokenizer.ggml.tokens")[1 + 'A'], "A");
  EXPECT_EQ(file.keys.at("tokenizer.ggml.token_type")[0], 3);
}

Json split_by(const std::string& regex) {
  Json json = testing::byte_tokenizer();
  json["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})");
  json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = regex;
  return json;
}

TEST_F(ExportGguf, PreTokenizersAreKnownByTheirRegex) {
  tokenizer_config_ = R"({"eos_token": "<|endoftext|>"})";
  const std::string head = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)",
                    tail = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  Json llama3 = split_by(head + R"(\p{N}{1,3})" + tail);
  const Json qwen2 = split_by(head + R"(\p{N})" + tail);
  EXPECT_EQ(exported(kGpt2, qwen2).keys.at("tokenizer.ggml.pre"), "qwen2");
  EXPECT_EQ(exported(kGpt2, llama3).keys.at("tokenizer.ggml.pre"), "smaug-bpe");
  llama3["model"]["ignore_merges"] = true;
  EXPECT_EQ(exported(kGpt2, llama3).keys.at("tokenizer.ggml.pre"), "llama-bpe");
}

TEST_F(ExportGguf, TokenizersThatLlamaCppDoesNotFollowAreRefusedByName) {
  tokenizer_config_ = R"({"eos_token": "<|endoftext|>"})";
  const std::string gpt2 = kGpt2;
  expect_refused(gpt2, split_by(R"(\p{N}{1,2}|\P{N}+)"), R"(\p{N}{1,2})");
  Json bytes = testing::byte_tokenizer();
  bytes["pre_tokenizer"]["add_prefix_space"] = true;
  expect_refused(gpt2, bytes, "add_prefix_space");
  bytes = testing::byte_tokenizer();
  bytes["normalizer"] = Json::parse(R"({"type": "NFKC"})");
  expect_refused(gpt2, bytes, "NFKC");
  expect_refused(changed(kGpt2, {{"vocab_size", 100}}).dump(), testing::byte_tokenizer(), "259 tokens");
  tokenizer_config_ = R"({"eos_token": null})";
  bytes = testing::byte_tokenizer();
  bytes["added_tokens"][0]["content"] = "<x>";
  bytes["model"]["vocab"].erase("<|endoftext|>");
  bytes["model"]["vocab"]["<x>"] = 0;
  expect_refused(gpt2, bytes, "EOS");

  tokenizer_config_ = R"({"bos_token": "<s>", "eos_token": "</s>"})";
  Json pieces = testing::piece_tokenizer();
  pieces["model"]["merges"].erase(4);  // ▁th e
  expect_refused(kLlama, pieces, "no merge joins them");
  pieces = testing::piece_tokenizer();
  std::swap(pieces["model"]["merges"][4], pieces["model"]["merges"][5]);
  expect_refused(kLlama, pieces, "stand together");
  pieces = testing::piece_tokenizer();
  pieces["normalizer"] = Json::parse(R"({"type": "NFC"})");
  expect_refused(kLlama, pieces, "NFC");
}

TEST_F(ExportGguf, ModelsThatLlamaCppDoesNotHaveAreRefusedByName) {
  tokenizer_config_ = R"({"eos_token": "<|endoftext|>"})";
  for (const auto& [changes, part] : std::vector<std::pair<Json, std::string>>{
           {{{"activation_function", "relu"}}, "activation_function"},
           {{{"scale_attn_weights", false}}, "scale_attn_weights"},
           {{{"scale_attn_by_inverse_layer_idx", true}}, "scale_attn_by_inverse_layer_idx"},
           {{{"norm_type", "rms_norm"}}, "norm_type"}})
    expect_refused(changed(kGpt2, changes).dump(), testing::byte_tokenizer(), part);
  tokenizer_config_ = R"({"bos_token": "<s>", "eos_token": "</s>"})";
  expect_refused(changed(kLlama, {{"hidden_act", "gelu"}}).dump(), testing::piece_tokenizer(), "hidden_act");
  expect_refused(changed(kLlama, {{"model_type", "qwen3"}, {"attention_bias", true}}).dump(),
                 testing::piece_tokenizer(), "attention_bias");
}

TEST_F(ExportGguf, AModelWithoutATokenizerIsRefused) {
  const fs::path directory = write_directory(kLlama);
  const Model model = model_of(kLlama);
  const auto report = export_gguf({directory, model, nullptr}, out(), {});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::input);
  EXPECT_NE(report.error().message.find("tokenizer"), std::string::npos);
}

TEST_F(ExportGguf, TheSameModelGivesTheSameBytes) {
  exported(kLlama, testing::piece_tokenizer());
  const std::string first = testing::content_of(out());
  exported(kLlama, testing::piece_tokenizer());
  EXPECT_EQ(testing::content_of(out()), first);
}

}  // namespace
}  // namespace ingot
