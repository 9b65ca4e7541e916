// ingot export, from outside.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/safetensors.h"
#include "checkpoint/writer.h"
#include "command_line.h"
#include "model_directory.h"

namespace ingot::integration {
namespace {

using Json = nlohmann::json;

class Export : public ::testing::Test {
 protected:
  void SetUp() override { write_small_model(scratch_.path() / "model", kByteModel); }
  std::string model() const { return scratch_ / "model"; }
  Json exported(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"export", "--json"});
    const Outcome outcome = run_ingot(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  Json greedy(const std::string& directory) {
    return json_of("generate",
                   {directory, "--prompt", "the cat", "--temperature", "0", "--max-tokens", "20"})["tokens"];
  }
  ScratchDirectory scratch_;
};

std::string bytes_of(const std::string& path) {
  return taken(read_file(path));
}

TEST_F(Export, AHuggingFaceDirectoryIsTheSameModel) {
  const Json report = exported({model(), "--format", "hf", "--out", scratch_ / "out"});
  EXPECT_EQ(report["format"], "hf");
  EXPECT_EQ(report["dtype"], "f32");
  EXPECT_EQ(report["files"], (Json{"config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
                                   "tokenizer_config.json"}));
  uint64_t bytes = 0;
  for (const std::string name : report["files"]) bytes += fs::file_size(scratch_.path() / "out" / name);
  EXPECT_EQ(report["bytes"], bytes);
  EXPECT_EQ(bytes_of(scratch_ / "out/model.safetensors"), bytes_of(scratch_ / "model/model.safetensors"));
  EXPECT_EQ(greedy(scratch_ / "out"), greedy(model()));
}

TEST_F(Export, ShardsOfAnotherDtypeLoad) {
  const Json report =
      exported({model(), "--format", "hf", "--dtype", "bf16", "--max-shard-size", "20000", "--out", scratch_ / "out"});
  EXPECT_EQ(report["dtype"], "bf16");
  EXPECT_TRUE(fs::exists(scratch_.path() / "out" / "model.safetensors.index.json"));
  EXPECT_EQ(Json::parse(bytes_of(scratch_ / "out/config.json"))["torch_dtype"], "bfloat16");
  EXPECT_EQ(greedy(scratch_ / "out").size(), 20u);
}

TEST_F(Export, AGgufFileIsWrittenWhole) {
  const Json report = exported({model(), "--format", "gguf", "--dtype", "f16", "--out", scratch_ / "new/model.gguf"});
  EXPECT_EQ(report["dtype"], "f16");
  EXPECT_EQ(report["tensors"], 4 + 2 * 12);
  EXPECT_EQ(report["bytes"], fs::file_size(scratch_ / "new/model.gguf"));
  EXPECT_EQ(bytes_of(scratch_ / "new/model.gguf").substr(0, 4), "GGUF");
  const Outcome plain = run_ingot({"export", model(), "--format", "gguf", "--out", scratch_ / "plain.gguf"});
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_NE(plain.out.find("28 tensors, mostly f32"), std::string::npos) << plain.out;
}

TEST_F(Export, AnOnnxGraphIsADirectory) {
  const Json report = exported({model(), "--format", "onnx", "--out", scratch_ / "out"});
  EXPECT_EQ(report["format"], "onnx");
  EXPECT_EQ(report["dtype"], "f32");
  EXPECT_EQ(report["tensors"], 4 + 2 * 12);
  EXPECT_EQ(report["files"], (Json{"config.json", "generation_config.json", "model.onnx", "model.onnx.data",
                                   "tokenizer.json", "tokenizer_config.json"}));
  const Json half = exported({model(), "--format", "onnx", "--dtype", "f16", "--out", scratch_ / "out"});
  EXPECT_EQ(half["dtype"], "f16");
  EXPECT_LT(half["bytes"], report["bytes"]);
}

TEST_F(Export, TakesACheckpoint) {
  const fs::path directory = scratch_.path() / "model";
  const auto weights = taken(SafetensorsModel::open(directory));
  Snapshot snapshot;
  snapshot.step = 12;
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"})
    snapshot.files.push_back({name, taken(read_file(directory / name))});
  for (const auto& tensor : weights.tensors()) {
    snapshot.pieces.push_back(whole_piece(tensor.info.name, "weight", SafetensorsModel::view(tensor)));
    snapshot.pieces.push_back(whole_piece(tensor.info.name, "adam_v", SafetensorsModel::view(tensor)));
  }
  auto writer = taken(CheckpointWriter::create({scratch_.path() / "checkpoints", 5, false, {}}));
  ASSERT_TRUE(writer->save(snapshot).ok());
  const std::string checkpoint = scratch_ / "checkpoints/step-00000012";
  exported({checkpoint, "--format", "hf", "--out", scratch_ / "out"});
  EXPECT_EQ(bytes_of(scratch_ / "out/model.safetensors"), bytes_of(scratch_ / "model/model.safetensors"));
  exported({checkpoint, "--format", "gguf", "--out", scratch_ / "a.gguf"});
  exported({model(), "--format", "gguf", "--out", scratch_ / "b.gguf"});
  EXPECT_EQ(bytes_of(scratch_ / "a.gguf"), bytes_of(scratch_ / "b.gguf"));
  exported({checkpoint, "--format", "onnx", "--out", scratch_ / "a"});
  exported({model(), "--format", "onnx", "--out", scratch_ / "b"});
  for (const std::string name : {"/model.onnx", "/model.onnx.data"})
    EXPECT_EQ(bytes_of(scratch_ / "a" + name), bytes_of(scratch_ / "b" + name));
}

// A model of 400 MB of zeros, which take no place on the disk, under a limit of memory of a tenth of that.
TEST_F(Export, AModelLargerThanMemoryGoesThrough) {
  const fs::path directory = scratch_.path() / "model";
  Json config = Json::parse(
      R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 64, "num_hidden_layers": 1,
      "num_attention_heads": 16, "vocab_size": 100000, "tie_word_embeddings": true})");
  const Model large = taken(Model::from_json(config.dump(), "test"));
  Json header = Json::object();
  uint64_t end = 0;
  for (const ParameterSpec& parameter : large.parameters()) {
    const uint64_t begin = end;
    end += static_cast<uint64_t>(parameter.shape.elements()) * 4;
    header[parameter.name] = {{"dtype", "F32"}, {"shape", parameter.shape.dims()}, {"data_offsets", {begin, end}}};
  }
  ASSERT_GT(end, 400'000'000u);
  ASSERT_TRUE(write_file_atomic(directory / "config.json", config.dump()).ok());
  const std::string text = header.dump();
  {
    std::ofstream file(directory / "model.safetensors", std::ios::binary);
    const uint64_t size = text.size();
    file.write(reinterpret_cast<const char*>(&size), 8) << text;
  }
  fs::resize_file(directory / "model.safetensors", 8 + text.size() + end);
  for (const std::string format : {"hf --dtype bf16", "gguf --dtype q8_0", "onnx --dtype f16"}) {
    const std::string command = "ulimit -d 40000; exec " INGOT_BINARY " export " + directory.string() + " --format " +
                                format + " --out " + (scratch_ / "large") + " >/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << format;
    fs::remove_all(scratch_.path() / "large");
  }
}

TEST_F(Export, WrongUsage) {
  const std::string out = scratch_ / "out";
  expect_error({"export", model(), "--format", "pickle", "--out", out}, 2, {"--format"});
  expect_error({"export", model(), "--out", out}, 2, {"--format"});
  expect_error({"export", model(), "--format", "hf"}, 2, {"--out"});
  expect_error({"export", model(), "--format", "hf", "--out", out, "--dtype", "q8_0"}, 2, {"q8_0"});
  expect_error({"export", model(), "--format", "hf", "--out", out, "--dtype", "int3"}, 2, {"--dtype"});
  expect_error({"export", model(), "--format", "hf", "--out", out, "--max-shard-size", "0"}, 2, {"--max-shard-size"});
  expect_error({"export", model(), "--format", "gguf", "--out", out, "--max-shard-size", "9"}, 2, {"--max-shard-size"});
  expect_error({"export", model(), "--format", "onnx", "--out", out, "--max-shard-size", "9"}, 2, {"--max-shard-size"});
  expect_error({"export", model(), "--format", "onnx", "--out", out, "--dtype", "q8_0"}, 2, {"q8_0"});
  for (const char* format : {"hf", "onnx"})
    expect_error({"export", model(), "--format", format, "--out", model()}, 2, {"the model itself"});
  expect_error({"export", model(), "--format", "gguf", "--out", model()}, 2, {"is a directory"});
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(Export, SaysWhatIsWrongWithTheModel) {
  const std::string out = scratch_ / "out";
  expect_error({"export", scratch_ / "nowhere", "--format", "hf", "--out", out}, 3, {"nowhere"});
  const std::string weights = bytes_of(scratch_ / "model/model.safetensors");
  ASSERT_TRUE(write_file_atomic(scratch_ / "model/model.safetensors", weights.substr(0, weights.size() - 1)).ok());
  for (const char* format : {"hf", "gguf", "onnx"})
    expect_error({"export", model(), "--format", format, "--out", out}, 3, {"model.safetensors"});
  fs::remove(scratch_ / "model/model.safetensors");
  expect_error({"export", model(), "--format", "hf", "--out", out}, 3, {"model.safetensors"});
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace ingot::integration
