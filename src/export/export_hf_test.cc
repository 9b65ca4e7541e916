#include <gtest/gtest.h>

#include "checkpoint/save_directory.h"
#include "export/export.h"
#include "export/testing.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr const char* kSmallLlama =
    R"({"model_type": "llama", "_name_or_path": "kept", "vocab_size": 30, "hidden_size": 16, "intermediate_size": 24,
    "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 8, "tie_word_embeddings": true,
    "torch_dtype": "float32"})";

class ExportHf : public testing::ExportedModel {
 protected:
  fs::path out() const { return scratch_.path() / "out"; }
  Result<ExportReport> run(const fs::path& directory, HfExportOptions options = {},
                           const std::string& config = kSmallLlama) {
    const Model model = model_of(config);
    return export_hf({directory, model, nullptr}, out(), options);
  }
  static HfExportOptions as(DType dtype) {
    HfExportOptions options;
    options.dtype = dtype;
    return options;
  }
  static Json json_in(const fs::path& path) { return Json::parse(testing::content_of(path)); }
  void expect_usage_error(const Result<ExportReport>& report, const std::string& part) {
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().kind, ErrorKind::usage);
    EXPECT_NE(report.error().message.find(part), std::string::npos) << report.error().message;
  }
};

// As a string each, by name.
std::map<std::string, std::string> tensors_in(const fs::path& directory) {
  const auto model = SafetensorsModel::open(directory);
  EXPECT_TRUE(model.ok());
  std::map<std::string, std::string> tensors;
  for (const SafetensorsModel::Tensor& tensor : model->tensors())
    tensors[tensor.info.name] = fmt::format("{} {} ", name_of(tensor.info.dtype), tensor.info.shape.to_string()) +
                                std::string(reinterpret_cast<const char*>(tensor.data), tensor.info.bytes);
  return tensors;
}

TEST_F(ExportHf, TensorsKeepEveryByteWhereTheDtypeStays) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const fs::path directory = write_directory(kSmallLlama, "", dtype);
    const auto report = run(directory);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(testing::content_of(out() / "model.safetensors"), testing::content_of(directory / "model.safetensors"));
    EXPECT_EQ(report->dtype, name_of(dtype));
    EXPECT_EQ(report->files, (std::vector<std::string>{"config.json", "model.safetensors"}));
  }
  EXPECT_EQ(json_in(out() / "config.json")["torch_dtype"], "float64");
  EXPECT_EQ(json_in(out() / "config.json")["_name_or_path"], "kept");
}

TEST_F(ExportHf, FloatsAreRoundedToNearestEvenAndIntegersStay) {
  const fs::path directory = write_directory(kSmallLlama);
  // A mask that old versions saved, and a tied head that is in the file all the same.
  std::vector<int64_t> mask{1, -5, 1ll << 40};
  const auto given = SafetensorsModel::open(directory);
  std::vector<NamedTensor> tensors;
  for (const auto& tensor : given->tensors()) tensors.push_back({tensor.info.name, SafetensorsModel::view(tensor)});
  tensors.push_back({"h.0.attn.bias", {reinterpret_cast<const std::byte*>(mask.data()), DType::i64, {3}}});
  tensors.push_back({"lm_head.weight", SafetensorsModel::view(*given->find("model.embed_tokens.weight"))});
  ASSERT_TRUE(write_model(directory, tensors).ok());

  ASSERT_TRUE(run(directory, as(DType::bf16)).ok());
  EXPECT_EQ(json_in(out() / "config.json")["torch_dtype"], "bfloat16");
  const auto written = SafetensorsModel::open(out());
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->tensors().size(), tensors.size());
  const auto* integers = written->find("h.0.attn.bias");
  ASSERT_NE(integers, nullptr);
  EXPECT_EQ(integers->info.dtype, DType::i64);
  EXPECT_EQ(std::memcmp(integers->data, mask.data(), 24), 0);
  ASSERT_NE(written->find("lm_head.weight"), nullptr);
  for (const auto& [name, values] : values_) {
    const auto* tensor = written->find(name);
    ASSERT_NE(tensor, nullptr) << name;
    ASSERT_EQ(tensor->info.dtype, DType::bf16);
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, tensor->data + 2 * i, 2);
      ASSERT_EQ(bits, bf16_from_float(values[i])) << name << " " << i;
    }
  }
}

TEST_F(ExportHf, ALargeModelIsCutIntoShardsWithAnIndex) {
  const fs::path directory = write_directory(kSmallLlama);
  HfExportOptions options;
  options.max_shard_bytes = 4000;
  const auto report = run(directory, options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(fs::exists(out() / "model.safetensors.index.json"));
  EXPECT_FALSE(fs::exists(out() / "model.safetensors"));
  EXPECT_GT(report->files.size(), 3u);
  EXPECT_EQ(tensors_in(out()), tensors_in(directory));
  // Back again, from shards to one file, in the place of what is there.
  const fs::path sharded = scratch_.path() / "sharded";
  fs::rename(out(), sharded);
  ASSERT_TRUE(run(sharded).ok());
  EXPECT_EQ(testing::content_of(out() / "model.safetensors"), testing::content_of(directory / "model.safetensors"));
}

TEST_F(ExportHf, TheTokenizersFilesGoAlongAndNothingElse) {
  const fs::path directory = write_directory(kSmallLlama, testing::byte_tokenizer().dump());
  for (const char* name : {"tokenizer_config.json", "chat_template.jinja", "tokenizer.model", "optimizer.pt"})
    ASSERT_TRUE(write_file_atomic(directory / name, std::string("of ") + name).ok());
  ASSERT_TRUE(run(directory).ok());
  EXPECT_EQ(testing::names_in(out()),
            (std::vector<std::string>{"chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json",
                                      "tokenizer.model", "tokenizer_config.json"}));
  EXPECT_EQ(testing::content_of(out() / "tokenizer.model"), "of tokenizer.model");
}

TEST_F(ExportHf, ACheckpointWhoseTensorsAreCutIsPutTogether) {
  const Model model = model_of(kSmallLlama);
  const fs::path directory = write_directory(kSmallLlama);
  Snapshot snapshot;
  snapshot.step = 5;
  snapshot.files = {{"config.json", kSmallLlama}, {"tokenizer.json", "{}"}};
  for (const ParameterSpec& parameter : model.parameters()) {
    const auto* data = reinterpret_cast<const std::byte*>(values_.at(parameter.name).data());
    const Shape& shape = parameter.shape;
    const int64_t half = shape[0] / 2, width = shape.elements() / shape[0];
    Box upper = Box::whole(shape), lower = upper;
    upper.stop[0] = lower.start[0] = half;
    snapshot.pieces.push_back({parameter.name, "weight", shape, upper, {data, DType::f32, upper.shape()}});
    snapshot.pieces.push_back(
        {parameter.name, "weight", shape, lower, {data + half * width * 4, DType::f32, lower.shape()}});
    snapshot.pieces.push_back(whole_piece(parameter.name, "adam_m", {data, DType::f32, shape}));
  }
  ASSERT_TRUE(save_directory(scratch_.path() / "checkpoints", snapshot).ok());
  const fs::path checkpoint = scratch_.path() / "checkpoints" / "step-00000005";
  const auto report = run(checkpoint);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(tensors_in(out()), tensors_in(directory));
  EXPECT_EQ(testing::names_in(out()), (std::vector<std::string>{"config.json", "model.safetensors", "tokenizer.json"}));

  std::string bytes = testing::content_of(checkpoint / "weight-00000.safetensors");
  bytes.back() ^= 1;
  testing::write_content(checkpoint / "weight-00000.safetensors", bytes);
  const auto damaged = run(checkpoint);
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().kind, ErrorKind::input);
}

TEST_F(ExportHf, ANumberBeyondF16IsRefusedAndTheOldDirectoryStays) {
  const fs::path directory = write_directory(kSmallLlama);
  ASSERT_TRUE(run(directory).ok());
  values_["model.norm.weight"][3] = -1e6f;
  std::vector<NamedTensor> tensors;
  const Model model = model_of(kSmallLlama);
  for (const ParameterSpec& parameter : model.parameters())
    tensors.push_back(
        {parameter.name,
         {reinterpret_cast<const std::byte*>(values_.at(parameter.name).data()), DType::f32, parameter.shape}});
  ASSERT_TRUE(write_model(directory, tensors).ok());
  const auto before = tensors_in(out());
  const auto report = run(directory, as(DType::f16));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::failed);
  for (const char* part : {"model.norm.weight", "-1e+06", "f16"})
    EXPECT_NE(report.error().message.find(part), std::string::npos) << report.error().message;
  EXPECT_EQ(tensors_in(out()), before);
  EXPECT_EQ(testing::names_in(scratch_.path()), (std::vector<std::string>{"model", "out"}));
}

TEST_F(ExportHf, WhatIsNotAnExportIsNotReplaced) {
  const fs::path directory = write_directory(kSmallLlama);
  fs::create_directories(out());
  testing::write_content(out() / "thesis.txt", "years of work");
  expect_usage_error(run(directory), "thesis.txt");
  EXPECT_EQ(testing::content_of(out() / "thesis.txt"), "years of work");
  fs::remove_all(out());
  testing::write_content(out(), "a file");
  expect_usage_error(run(directory), "is a file");
  fs::remove(out());
  fs::create_directory_symlink(directory, out());
  expect_usage_error(run(directory), "is the model itself");
}

TEST_F(ExportHf, WhatStandsBesideThePlaceStays) {
  const fs::path directory = write_directory(kSmallLlama);
  for (const char* name : {"out.old", "out.tmp"}) fs::create_directories(scratch_.path() / name / "thesis");
  for (int i = 0; i < 2; ++i) {
    const Model model = model_of(kSmallLlama);
    const auto report = export_hf({directory, model, nullptr}, out() / "", {});  // "out/"
    ASSERT_TRUE(report.ok()) << report.error().message;
  }
  EXPECT_EQ(testing::names_in(scratch_.path()), (std::vector<std::string>{"model", "out", "out.old", "out.tmp"}));
  EXPECT_TRUE(fs::exists(scratch_.path() / "out.old" / "thesis"));
}

TEST_F(ExportHf, AModelThatHuggingFaceDoesNotHaveIsRefused) {
  Json config = Json::parse(kSmallLlama);
  config["norm_type"] = "layer_norm";
  expect_usage_error(run(write_directory(config.dump()), {}, config.dump()), "norm_type");
}

}  // namespace
}  // namespace ingot
