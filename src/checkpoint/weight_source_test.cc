#include "checkpoint/weight_source.h"

#include <gtest/gtest.h>

#include "checkpoint/model_weights.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/save_directory.h"
#include "checkpoint/testing.h"

namespace ingot {
namespace {

using testing::TemporaryDirectory;

class WeightSources : public ::testing::Test {
 protected:
  WeightSources() {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(i) + 0.5f;
  }
  ConstTensorView whole() const { return {reinterpret_cast<const std::byte*>(values_.data()), DType::f32, {6, 4}}; }

  // A checkpoint of "cut", in two pieces, and "whole".
  fs::path save() {
    Snapshot snapshot;
    snapshot.step = 3;
    snapshot.files = {{"config.json", "{}"}};
    snapshot.pieces.push_back({"cut", "weight", {6, 4}, {{0, 0}, {2, 4}}, {whole().data, DType::f32, {2, 4}}});
    snapshot.pieces.push_back(
        {"cut", "weight", {6, 4}, {{2, 0}, {6, 4}}, {whole().data + 8 * sizeof(float), DType::f32, {4, 4}}});
    snapshot.pieces.push_back(whole_piece("whole", "weight", whole()));
    snapshot.pieces.push_back(whole_piece("whole", "adam_m", whole()));
    EXPECT_TRUE(save_directory(directory_.path(), snapshot).ok());
    return directory_.path() / checkpoint_name(3);
  }

  TemporaryDirectory directory_;
  std::vector<float> values_ = std::vector<float>(24);
};

TEST_F(WeightSources, GiveBoxesOfCutAndOfWholeTensors) {
  const auto source = WeightSource::open(save());
  ASSERT_TRUE(source.ok()) << source.error().message;
  ASSERT_EQ(source->weights().tensors().size(), 2u);
  for (const char* name : {"cut", "whole"}) {
    const SafetensorsModel::Tensor* tensor = source->weights().find(name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->data == nullptr, std::string_view(name) == "cut") << name;
    const Box box{{1, 1}, {4, 3}};
    std::vector<float> part(6);
    ASSERT_TRUE(source->read(*tensor, box, {reinterpret_cast<std::byte*>(part.data()), DType::f32, {3, 2}}).ok());
    EXPECT_EQ(part, (std::vector<float>{5.5, 6.5, 9.5, 10.5, 13.5, 14.5})) << name;
  }
  EXPECT_EQ(source->read_file("config.json").value(), "{}");
  EXPECT_FALSE(source->read_file("tokenizer.json").value().has_value());
}

TEST_F(WeightSources, RefuseACheckpointWithADamagedByte) {
  const fs::path path = save(), file = path / "weight-00000.safetensors";
  std::string bytes = testing::content_of(file);
  bytes.back() ^= 1;
  testing::write_content(file, bytes);
  const auto source = WeightSource::open(path);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().kind, ErrorKind::input);
  EXPECT_NE(source.error().message.find("weight-00000.safetensors"), std::string::npos) << source.error().message;
}

// Written from parts that are read one after the other: the same bytes as from memory, in one file or in shards.
TEST_F(WeightSources, TensorsThatAreReadInPartsAreWrittenAsThoseInMemory) {
  std::vector<float> large(700'000);
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i) * 0.37f;
  const ConstTensorView view(reinterpret_cast<const std::byte*>(large.data()), DType::f32, {700, 1000});
  const std::vector<NamedTensor> in_memory{{"a", view}, {"b", whole()}, {"scalar", {whole().data, DType::f32, {}}}};
  std::vector<NamedTensor> in_parts = in_memory;
  for (NamedTensor& tensor : in_parts) {
    tensor.read = [source = tensor.view](const Box& box, const TensorView& out) {
      copy_box(box, source, Box::whole(source.shape), out, box);
      return Status();
    };
    tensor.view.data = nullptr;
  }
  ModelWriteOptions narrow, shards;
  narrow.float_dtype = DType::bf16;
  shards.max_shard_bytes = 1000;
  for (const ModelWriteOptions& options : {ModelWriteOptions(), narrow, shards}) {
    ASSERT_TRUE(write_model(directory_.path() / "a", in_memory, options).ok());
    ASSERT_TRUE(write_model(directory_.path() / "b", in_parts, options).ok());
    const auto names = testing::names_in(directory_.path() / "a");
    ASSERT_EQ(testing::names_in(directory_.path() / "b"), names);
    for (const std::string& name : names)
      EXPECT_EQ(testing::content_of(directory_.path() / "a" / name),
                testing::content_of(directory_.path() / "b" / name));
  }
}

// ---- which tensor is which parameter

constexpr const char* kTinyGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 5, "n_embd": 4, "n_layer": 1, "n_head": 2, "n_positions": 3,
    "tie_word_embeddings": false})";

class MatchedWeights : public ::testing::Test {
 protected:
  // The parameters under names that `rename` makes of theirs; an empty one is left out.
  Status match(const std::function<std::string(const std::string&)>& rename, const std::vector<NamedTensor>& more = {},
               DType dtype = DType::f32) {
    const auto parsed = Model::from_json(kTinyGpt2, "test");
    std::vector<NamedTensor> tensors = more;
    for (const ParameterSpec& parameter : parsed->parameters()) {
      const std::string name = rename(parameter.name);
      if (!name.empty()) tensors.push_back({name, {zeros_.data(), dtype, parameter.shape}});
    }
    EXPECT_TRUE(write_model(directory_.path(), tensors).ok());
    const auto weights = SafetensorsModel::open(directory_.path());
    const auto matched = match_weights(*weights, *parsed, "here");
    if (!matched.ok()) return matched.error();
    EXPECT_EQ(matched->size(), parsed->parameters().size());
    for (size_t i = 0; i < matched->size(); ++i)
      EXPECT_EQ((*matched)[i]->info.name, rename(parsed->parameters()[i].name));
    return {};
  }
  static std::string same(const std::string& name) { return name; }
  static std::string bare(const std::string& name) { return name.starts_with("transformer.") ? name.substr(12) : name; }

  TemporaryDirectory directory_;
  std::vector<std::byte> zeros_ = std::vector<std::byte>(4096);
};

TEST_F(MatchedWeights, AreFoundWithAndWithoutThePrefix) {
  for (const auto& rename : {&same, &bare}) {
    const Status matched = match(rename);
    EXPECT_TRUE(matched.ok()) << matched.error().message;
  }
}

TEST_F(MatchedWeights, SavedMasksArePassedOverWhateverTheyHold) {
  const Status matched = match(&bare, {{"h.0.attn.bias", {zeros_.data(), DType::u8, {1, 1, 3, 3}}}});
  EXPECT_TRUE(matched.ok()) << matched.error().message;
}

TEST_F(MatchedWeights, WhatDoesNotFitIsNamed) {
  const auto without = [](const std::string& name) { return name == "lm_head.weight" ? "" : name; };
  for (const auto& [status, name] : std::vector<std::pair<Status, std::string>>{
           {match(without), "lm_head.weight"},
           {match(&same, {{"transformer.h.1.ln_1.weight", {zeros_.data(), DType::f32, {4}}}}), "h.1.ln_1.weight"},
           {match(without, {{"lm_head.weight", {zeros_.data(), DType::f32, {4, 5}}}}), "[5,4]"},
           {match(&same, {}, DType::i32), "i32"}}) {
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().kind, ErrorKind::input);
    EXPECT_NE(status.error().message.find(name), std::string::npos) << status.error().message;
  }
}

}  // namespace
}  // namespace ingot
