#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "export/onnx_file.h"
#include "export/onnx_testing.h"
#include "export/open_graph.h"
#include "export/testing.h"
#include "ops/add.h"
#include "ops/broadcast_to.h"
#include "ops/concat.h"
#include "ops/constant.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/sum.h"

namespace ingot {
namespace {

constexpr const char* kOnnxLlama =
    R"({"model_type": "llama", "vocab_size": 30, "hidden_size": 18, "intermediate_size": 22, "num_hidden_layers": 2,
    "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4, "max_position_embeddings": 8,
    "torch_dtype": "bfloat16"})";
constexpr const char* kOnnxGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 31, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 9})";

// "name f32[batch_size,sequence_length,30]"
std::string text_of(const onnx::ValueInfoProto& port) {
  const auto& tensor = port.type().tensor_type();
  std::string text = port.name() + (tensor.elem_type() == onnx::TensorProto::FLOAT   ? " f32["
                                    : tensor.elem_type() == onnx::TensorProto::INT64 ? " i64["
                                                                                     : " ?[");
  for (const auto& dim : tensor.shape().dim())
    text += (text.back() == '[' ? "" : ",") + (dim.has_dim_param() ? dim.dim_param() : std::to_string(dim.dim_value()));
  return text + "]";
}

template <class Ports>
std::vector<std::string> texts_of(const Ports& ports) {
  std::vector<std::string> texts;
  for (const auto& port : ports) texts.push_back(text_of(port));
  return texts;
}

class ExportOnnx : public testing::ExportedModel {
 protected:
  fs::path out() const { return scratch_.path() / "out"; }
  Result<ExportReport> run(const fs::path& directory, const std::string& config, DType dtype = DType::f32) {
    return export_onnx({directory, model_of(config), nullptr}, out(), dtype);
  }
  onnx::ModelProto exported(const std::string& config, DType dtype = DType::f32) {
    const auto report = run(write_directory(config), config, dtype);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return testing::read_onnx(out() / "model.onnx");
  }
  static std::map<std::string, onnx::TensorProto> weights_of(const onnx::ModelProto& model) {
    std::map<std::string, onnx::TensorProto> weights;
    for (const auto& tensor : model.graph().initializer()) {
      if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
      EXPECT_TRUE(weights.emplace(tensor.name(), tensor).second) << tensor.name();
    }
    return weights;
  }
  static std::map<std::string, int> ops_of(const onnx::ModelProto& model) {
    std::map<std::string, int> counts;
    for (const auto& node : model.graph().node()) ++counts[node.op_type()];
    return counts;
  }
  void expect_error(const Result<ExportReport>& report, ErrorKind kind, const std::vector<std::string>& parts) {
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().kind, kind) << report.error().message;
    for (const std::string& part : parts)
      EXPECT_NE(report.error().message.find(part), std::string::npos) << report.error().message;
  }
};

TEST_F(ExportOnnx, InputsAndOutputsHaveOptimumsNamesAndOpenExtents) {
  const onnx::ModelProto model = exported(kOnnxLlama);
  EXPECT_GE(model.opset_import(0).version(), 14);
  EXPECT_EQ(model.opset_import_size(), 1);
  const std::string past = " f32[batch_size,2,past_sequence_length,4]",
                    present = " f32[batch_size,2,past_sequence_length + sequence_length,4]";
  EXPECT_EQ(texts_of(model.graph().input()),
            (std::vector<std::string>{"input_ids i64[batch_size,sequence_length]",
                                      "attention_mask i64[batch_size,past_sequence_length + sequence_length]",
                                      "position_ids i64[batch_size,sequence_length]", "past_key_values.0.key" + past,
                                      "past_key_values.0.value" + past, "past_key_values.1.key" + past,
                                      "past_key_values.1.value" + past}));
  EXPECT_EQ(
      texts_of(model.graph().output()),
      (std::vector<std::string>{"logits f32[batch_size,sequence_length,30]", "present.0.key" + present,
                                "present.0.value" + present, "present.1.key" + present, "present.1.value" + present}));
}

TEST_F(ExportOnnx, WritesADirectoryForOtherPrograms) {
  const fs::path directory = write_directory(kOnnxLlama, testing::byte_tokenizer().dump(), DType::bf16);
  const auto report = run(directory, kOnnxLlama);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->files,
            (std::vector<std::string>{"config.json", "model.onnx", "model.onnx.data", "tokenizer.json"}));
  EXPECT_EQ(report->dtype, "f32");
  EXPECT_EQ(report->tensors, 2 + 2 * 9 + 1u);
  uint64_t bytes = 0;
  for (const std::string& name : report->files) bytes += fs::file_size(out() / name);
  EXPECT_EQ(report->bytes, bytes);
  EXPECT_EQ(nlohmann::json::parse(testing::content_of(out() / "config.json"))["torch_dtype"], "float32");
}

// MatMul's second operand is [in, out].
TEST_F(ExportOnnx, WeightsLieAsTheProductsReadThem) {
  const onnx::ModelProto llama = exported(kOnnxLlama);
  const auto weights = weights_of(llama);
  const auto& projection = weights.at("model.layers.1.self_attn.q_proj.weight");
  ASSERT_EQ(projection.dims_size(), 2);
  EXPECT_EQ(projection.dims(0), 18);
  EXPECT_EQ(projection.dims(1), 24);
  const auto stored = testing::tensor_of(projection, out()).data;
  const std::vector<float> parameter = f32_of("model.layers.1.self_attn.q_proj.weight");
  for (size_t in = 0; in < 18; ++in)
    for (size_t to = 0; to < 24; ++to) ASSERT_EQ(stored[in * 24 + to], parameter[to * 18 + in]);
  EXPECT_EQ(ops_of(llama)["MatMul"], 2 * (4 + 3 + 2));
  EXPECT_EQ(ops_of(llama)["Gemm"], 1);  // the head

  const auto gpt2 = weights_of(exported(kOnnxGpt2));
  const auto plain = testing::tensor_of(gpt2.at("transformer.h.0.attn.c_attn.weight"), out()).data;
  const std::vector<float> same = f32_of("transformer.h.0.attn.c_attn.weight");
  EXPECT_TRUE(std::ranges::equal(plain, same));
}

TEST_F(ExportOnnx, ATiedTableIsStoredOnce) {
  const onnx::ModelProto model = exported(kOnnxGpt2);
  const auto weights = weights_of(model);
  EXPECT_EQ(weights.size(), 2 + 2 * 12 + 2u);
  EXPECT_FALSE(weights.contains("lm_head.weight"));
  int readers = 0;
  for (const auto& node : model.graph().node()) readers += std::ranges::count(node.input(), "transformer.wte.weight");
  EXPECT_EQ(readers, 2);
  uint64_t bytes = 0;
  for (const auto& [name, values] : values_) bytes += (values.size() * 4 + 4095) / 4096 * 4096;
  EXPECT_LE(fs::file_size(out() / "model.onnx.data"), bytes);
}

TEST_F(ExportOnnx, WeightsDoNotOverlapAndAreAligned) {
  std::vector<std::pair<uint64_t, uint64_t>> extents;
  for (const auto& [name, tensor] : weights_of(exported(kOnnxLlama))) {
    std::map<std::string, std::string> where;
    for (const auto& entry : tensor.external_data()) where[entry.key()] = entry.value();
    EXPECT_EQ(where["location"], "model.onnx.data");
    extents.emplace_back(std::stoull(where["offset"]), std::stoull(where["length"]));
    EXPECT_EQ(extents.back().first % 4096, 0u) << name;
  }
  std::ranges::sort(extents);
  uint64_t end = 0;
  for (const auto& [offset, length] : extents) {
    EXPECT_GE(offset, end);
    end = offset + length;
  }
  EXPECT_EQ(fs::file_size(out() / "model.onnx.data"), end);
}

TEST_F(ExportOnnx, WhatAllLayersShareIsComputedOnce) {
  std::map<std::string, int> llama = ops_of(exported(kOnnxLlama));
  EXPECT_EQ(llama["Cos"], 1);
  EXPECT_EQ(llama["Sin"], 1);
  EXPECT_EQ(llama["Range"], 2);
  EXPECT_EQ(llama["Where"], 1);
}

TEST_F(ExportOnnx, NarrowWeightsAreWidenedInTheGraph) {
  for (const auto& [dtype, type] :
       {std::pair(DType::f16, onnx::TensorProto::FLOAT16), std::pair(DType::bf16, onnx::TensorProto::BFLOAT16)}) {
    const onnx::ModelProto model = exported(kOnnxLlama, dtype);
    for (const auto& [name, tensor] : weights_of(model)) {
      EXPECT_EQ(tensor.data_type(), type) << name;
      EXPECT_EQ(testing::bytes_of(tensor, out()).size(), values_.at(name).size() * 2);
    }
    EXPECT_EQ(texts_of(model.graph().output())[0], "logits f32[batch_size,sequence_length,30]");
    const std::string bits = testing::bytes_of(weights_of(model).at("model.norm.weight"), out());
    const float first = values_.at("model.norm.weight")[0];
    uint16_t stored = 0;
    std::memcpy(&stored, bits.data(), 2);
    EXPECT_EQ(stored, dtype == DType::f16 ? f16_from_float(first) : bf16_from_float(first));
  }
}

TEST_F(ExportOnnx, ANumberThatTheDtypeCannotHoldIsRefusedAndNothingIsLeft) {
  const fs::path directory = write_directory(kOnnxGpt2);
  std::vector<float>& values = values_["transformer.h.1.mlp.c_fc.bias"];
  values[3] = 70000;
  std::vector<NamedTensor> tensors;
  const Model model = model_of(kOnnxGpt2);
  for (const ParameterSpec& parameter : model.parameters())
    tensors.push_back(
        {parameter.name,
         {reinterpret_cast<const std::byte*>(values_[parameter.name].data()), DType::f32, parameter.shape}});
  ASSERT_TRUE(write_model(directory, tensors).ok());
  expect_error(run(directory, kOnnxGpt2, DType::f16), ErrorKind::failed,
               {"transformer.h.1.mlp.c_fc.bias", "70000", "f16"});
  EXPECT_EQ(testing::names_in(scratch_.path()), (std::vector<std::string>{"model"}));
  EXPECT_TRUE(run(directory, kOnnxGpt2, DType::bf16).ok());
}

TEST_F(ExportOnnx, TheSameModelGivesTheSameBytes) {
  exported(kOnnxLlama);
  const std::string graph = testing::content_of(out() / "model.onnx"),
                    data = testing::content_of(out() / "model.onnx.data");
  exported(kOnnxLlama);  // in the place of the first
  EXPECT_EQ(testing::content_of(out() / "model.onnx"), graph);
  EXPECT_EQ(testing::content_of(out() / "model.onnx.data"), data);
}

TEST_F(ExportOnnx, OtherPeoplesFilesStay) {
  const fs::path directory = write_directory(kOnnxGpt2);
  ASSERT_TRUE(fs::create_directory(out()));
  ASSERT_TRUE(write_file_atomic(out() / "thesis.tex", "years").ok());
  expect_error(run(directory, kOnnxGpt2), ErrorKind::usage, {"thesis.tex"});
  EXPECT_EQ(testing::names_in(out()), (std::vector<std::string>{"thesis.tex"}));
  expect_error(export_onnx({directory, model_of(kOnnxGpt2), nullptr}, directory, DType::f32), ErrorKind::usage,
               {"the model itself"});
}

TEST_F(ExportOnnx, SaysWhatIsWrongWithTheWeights) {
  const fs::path directory = write_directory(kOnnxGpt2);
  const std::string other =
      R"({"model_type": "gpt2", "vocab_size": 31, "n_embd": 12, "n_layer": 3, "n_head": 3, "n_positions": 9})";
  expect_error(run(directory, other), ErrorKind::input, {"transformer.h.2.ln_1.weight"});
  fs::remove(directory / "model.safetensors");
  expect_error(run(directory, kOnnxGpt2), ErrorKind::input, {"model.safetensors"});
  EXPECT_FALSE(fs::exists(out()));
}

// ---- families that a program adds

using Change = std::function<ValueId(Builder&, const Weights&, const TokenInputs&, ValueId x)>;

// A GPT-2 whose last hidden state goes through `change`.
Model changed_model(const std::string& name, Change change) {
  Family family = *find_family("gpt2");
  family.name = name;
  family.architectures = {};
  family.build = [build = family.build, change](Builder& builder, const ModelConfig& config, const Weights& weights,
                                                const TokenInputs& tokens) {
    ForwardValues values = build(builder, config, weights, tokens);
    const Builder::Scope scope(builder, "extra");
    values.final_norm = change(builder, weights, tokens, values.final_norm);
    return values;
  };
  EXPECT_TRUE(register_family(std::move(family), NameTaken::add_suffix).ok());
  nlohmann::json config = nlohmann::json::parse(kOnnxGpt2);
  config["model_type"] = name;
  return Model::from_json(config.dump(), "test").value();
}

TEST_F(ExportOnnx, AFamilyOfPlainOpsNeedsNothingMore) {
  const Model model = changed_model("doubled", [](Builder& builder, const Weights&, const TokenInputs&, ValueId x) {
    const ValueId first = slice(builder, x, 2, 0, 5), rest = slice(builder, x, 2, 5, 12);
    return add(builder, x, concat(builder, {rest, first}, 2));
  });
  const auto report = export_onnx({write_directory(kOnnxGpt2), model, nullptr}, out(), DType::f32);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(ops_of(testing::read_onnx(out() / "model.onnx"))["Slice"], 2);
}

TEST_F(ExportOnnx, AFamilyWithoutAttentionHasNoPast) {
  Family family;
  family.name = "bigram";
  family.read_config = [](ConfigReader& in, ModelConfig& config) {
    in.integer("vocab_size", config.vocab_size);
    in.integer("hidden_size", config.hidden_size);
  };
  family.parameters = [](const ModelConfig& c) {
    return std::vector<ParameterSpec>{{"logits", {c.vocab_size, c.hidden_size}, InitKind::normal, 0.02, "embedding"}};
  };
  family.build = [](Builder& builder, const ModelConfig&, const Weights& weights, const TokenInputs& tokens) {
    ForwardValues values;
    values.head_weight = weights("logits");
    values.final_norm = embedding(builder, values.head_weight, tokens.ids);
    return values;
  };
  ASSERT_TRUE(register_family(std::move(family)).ok());
  const onnx::ModelProto model = exported(R"({"model_type": "bigram", "vocab_size": 7, "hidden_size": 5})");
  EXPECT_EQ(model.graph().input_size(), 3);
  EXPECT_EQ(texts_of(model.graph().output()), (std::vector<std::string>{"logits f32[batch_size,sequence_length,7]"}));
  // The parameter of that name gives way.
  EXPECT_EQ(model.graph().node(model.graph().node_size() - 1).output(0), "logits");
  EXPECT_TRUE(weights_of(model).contains("logits_1"));
}

TEST_F(ExportOnnx, WhatHasNoCounterpartIsRefusedByName) {
  const fs::path directory = write_directory(kOnnxGpt2);
  const std::vector<std::tuple<std::string, std::vector<std::string>, Change>> cases{
      {"without a mapping",
       {"dropout", "extra", "no counterpart"},
       [](Builder& builder, const Weights&, const TokenInputs&, ValueId x) {
         return dropout(builder, x, 0.5, "extra");
       }},
      {"with attributes that follow the length",
       {"slice", "extra", "depend"},
       [](Builder& builder, const Weights&, const TokenInputs&, ValueId x) {
         const int64_t tokens = builder.shape(x)[1];
         return add(builder, x, slice(builder, x, 1, tokens - 1, tokens));
       }},
      {"with a number that follows the length",
       {"constant", "extra", "depend"},
       [](Builder& builder, const Weights&, const TokenInputs&, ValueId x) {
         return add(builder, x, constant(builder, 1.0 / static_cast<double>(builder.shape(x)[1]), {}));
       }},
      {"with an extent that is no product",
       {"concat", "extra", "[3,8,12]"},
       [](Builder& builder, const Weights&, const TokenInputs&, ValueId x) {
         const int64_t tokens = builder.shape(x)[1];
         return slice(builder, concat(builder, {x, slice(builder, x, 1, 0, 1)}, 1), 1, 0, tokens);
       }},
      {"reading the place in the cache",
       {"embedding", "extra", "caches"},
       [](Builder& builder, const Weights& weights, const TokenInputs& tokens, ValueId x) {
         const ValueId rows = embedding(builder, weights("transformer.wpe.weight"), tokens.attention.start);
         return add(builder, x, reshape(builder, rows, {builder.shape(x)[0], 1, builder.shape(x)[2]}));
       }},
      {"with the room in the caches",
       {"broadcast_to", "extra", "caches"},
       [](Builder& builder, const Weights&, const TokenInputs& tokens, ValueId x) {
         const ValueId one = constant(builder, 1.0, {1});
         return add(builder, x, sum(builder, broadcast_to(builder, one, {tokens.attention.cache_capacity}), {0}));
       }},
      {"with more state",
       {"memory", "counterpart"},
       [](Builder& builder, const Weights&, const TokenInputs&, ValueId x) {
         return add(builder, x, builder.state("memory", {DType::f32, {12}}));
       }}};
  for (const auto& [name, parts, change] : cases) {
    const Model model = changed_model(name, change);
    expect_error(export_onnx({directory, model, nullptr}, out(), DType::f32), ErrorKind::usage, parts);
    EXPECT_EQ(testing::names_in(scratch_.path()), (std::vector<std::string>{"model"}));
  }
}

// ---- what stands under it

TEST(OpenGraph, TellsWhatAnExtentFollows) {
  const auto open = OpenGraph::make([](const GraphSizes& sizes) {
    Graph graph;
    Builder builder(graph);
    const ValueId x = builder.input("x", {DType::f32, {sizes.batch, sizes.tokens, 7}});
    builder.output("y", reshape(builder, x, {sizes.batch * sizes.tokens * 7}));
    builder.state("cache", {DType::f32, {sizes.capacity, 3}});
    return graph;
  });
  ASSERT_TRUE(open.ok()) << open.error().message;
  EXPECT_EQ(open->extents(0), (Extents{{1, true}, {1, false, true}, {7}}));
  EXPECT_EQ(open->extents(1), (Extents{{7, true, true}}));
  EXPECT_EQ(open->extents(2), (Extents{{1, false, false, true}, {3}}));
  EXPECT_TRUE(open->attributes_vary(0));
}

TEST(OpenGraph, AGraphThatChangesWithTheSizesIsRefused) {
  const auto open = OpenGraph::make([](const GraphSizes& sizes) {
    Graph graph;
    Builder builder(graph);
    ValueId x = builder.input("x", {DType::f32, {2}});
    for (int64_t b = 0; b < sizes.batch; ++b) x = add(builder, x, x);
    builder.output("y", x);
    return graph;
  });
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().kind, ErrorKind::usage);
}

TEST(OnnxFile, WhatOnnxsCheckerRefusesIsAnError) {
  const testing::TemporaryDirectory scratch;
  OnnxGraph graph;
  graph.name = "small";
  graph.inputs = {{"x", DType::f32, {"n", 3}}};
  graph.outputs = {{"y", DType::f32, {"n", 3}}};
  graph.nodes = {{"Neg", "neg", {"x"}, {"y"}, {}}};
  EXPECT_TRUE(write_onnx(graph, scratch.path()).ok());
  OnnxGraph other = graph;
  other.nodes[0].inputs = {"z"};  // which nothing makes
  OnnxGraph shape = graph;
  shape.outputs[0].shape[1] = 4;
  OnnxGraph data = graph;  // the data file is not there
  data.weights = {{"w", "w", false, DType::f32, {1}, 0, 4}};
  for (const OnnxGraph& wrong : {other, shape, data}) {
    const Status status = write_onnx(wrong, scratch.path());
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::failed);
    EXPECT_NE(status.error().message.find("model.onnx"), std::string::npos);
  }
}

}  // namespace
}  // namespace ingot
