// What the tests of this folder share: a reader of GGUF files of its own, which shares nothing with the writer, and
// model directories with weights that tell each element from all others.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "checkpoint/safetensors_writer.h"
#include "checkpoint/testing.h"
#include "export/export.h"

namespace ingot::testing {

// ---- reading GGUF by the specification

class GgufFile {
 public:
  struct Tensor {
    std::vector<uint64_t> dims;  // as the file lists them: the fastest first
    uint32_t type = 0;
    uint64_t offset = 0;  // from the start of the data
  };

  explicit GgufFile(std::string bytes) : bytes_(std::move(bytes)) {
    if (bytes_.substr(0, 4) != "GGUF") throw std::runtime_error("no GGUF file");
    at_ = 4;
    version = number<uint32_t>();
    const auto tensors_count = number<uint64_t>(), keys_count = number<uint64_t>();
    for (uint64_t i = 0; i < keys_count; ++i) {
      const std::string key = string();
      if (keys.contains(key)) throw std::runtime_error("the key " + key + " twice");
      keys[key] = value(number<uint32_t>(), key);
    }
    for (uint64_t i = 0; i < tensors_count; ++i) {
      const std::string name = string();
      Tensor tensor;
      const auto rank = number<uint32_t>();
      for (uint32_t d = 0; d < rank; ++d) tensor.dims.push_back(number<uint64_t>());
      tensor.type = number<uint32_t>();
      tensor.offset = number<uint64_t>();
      if (!tensors.emplace(name, tensor).second) throw std::runtime_error("the tensor " + name + " twice");
      order.push_back(name);
    }
    data_ = (at_ + 31) / 32 * 32;
  }

  uint32_t version = 0;
  std::map<std::string, nlohmann::json> keys;
  std::map<std::string, std::string> types;  // of keys: "u32", "f32", "bool", "string", "[string]", …
  std::map<std::string, Tensor> tensors;
  std::vector<std::string> order;  // of tensors

  static uint64_t size_of(const Tensor& tensor) {
    uint64_t n = 1;
    for (const uint64_t dim : tensor.dims) n *= dim;
    switch (tensor.type) {
      case 0:
        return 4 * n;
      case 1:
      case 30:
        return 2 * n;
      case 8:
        return n / 32 * 34;
      default:
        throw std::runtime_error("type " + std::to_string(tensor.type));
    }
  }
  std::string_view data(const std::string& name) const {
    const Tensor& tensor = tensors.at(name);
    return std::string_view(bytes_).substr(data_ + tensor.offset, size_of(tensor));
  }
  uint64_t size() const { return bytes_.size(); }
  uint64_t data_begin() const { return data_; }

  // A tensor's elements, whatever its type.
  std::vector<float> values(const std::string& name) const {
    const std::string_view raw = data(name);
    std::vector<float> out;
    switch (tensors.at(name).type) {
      case 0:
        for (size_t i = 0; i < raw.size(); i += 4) out.push_back(read<float>(raw, i));
        return out;
      case 1:
        for (size_t i = 0; i < raw.size(); i += 2) out.push_back(half(read<uint16_t>(raw, i)));
        return out;
      case 30:
        for (size_t i = 0; i < raw.size(); i += 2)
          out.push_back(std::bit_cast<float>(uint32_t{read<uint16_t>(raw, i)} << 16));
        return out;
      default:
        for (size_t block = 0; block < raw.size(); block += 34)
          for (size_t i = 0; i < 32; ++i)
            out.push_back(half(read<uint16_t>(raw, block)) * static_cast<float>(read<int8_t>(raw, block + 2 + i)));
        return out;
    }
  }

 private:
  static float half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return static_cast<float>((bits & 0x8000) != 0 ? -magnitude : magnitude);
  }
  template <class T>
  static T read(std::string_view raw, size_t at) {
    T value;
    std::memcpy(&value, raw.substr(at, sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <class T>
  T number() {
    if (at_ + sizeof(T) > bytes_.size()) throw std::runtime_error("the file ends too early");
    const T value = read<T>(bytes_, at_);
    at_ += sizeof(T);
    return value;
  }
  std::string string() {
    const auto size = number<uint64_t>();
    if (at_ + size > bytes_.size()) throw std::runtime_error("a string beyond the file's end");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  nlohmann::json value(uint32_t type, const std::string& key) {
    switch (type) {
      case 4:
        types[key] = "u32";
        return number<uint32_t>();
      case 5:
        types[key] = "i32";
        return number<int32_t>();
      case 6:
        types[key] = "f32";
        return number<float>();
      case 7:
        types[key] = "bool";
        return number<uint8_t>() != 0;
      case 8:
        types[key] = "string";
        return string();
      case 9: {
        const auto of = number<uint32_t>();
        const auto count = number<uint64_t>();
        nlohmann::json array = nlohmann::json::array();
        for (uint64_t i = 0; i < count; ++i) array.push_back(value(of, key));
        types[key] = "[" + types[key] + "]";
        return array;
      }
      default:
        throw std::runtime_error("a value of type " + std::to_string(type));
    }
  }

  std::string bytes_;
  size_t at_ = 0;
  uint64_t data_ = 0;
};

// ---- models

// A value for each element of each parameter that f16 and bf16 round, and that no other has in a small model.
inline float element_value(size_t parameter, size_t element) {
  return (static_cast<float>(parameter) + 1) * 0.01f + static_cast<float>(element) * 1.0e-5f;
}

class ExportedModel : public ::testing::Test {
 protected:
  static Model model_of(const std::string& config) {
    auto model = Model::from_json(config, "test");
    if (!model.ok()) throw std::runtime_error(model.error().message);
    return std::move(model).value();
  }

  // The directory "model": config.json, weights, a tokenizer where given.
  fs::path write_directory(const std::string& config, const std::string& tokenizer_json = "",
                           DType dtype = DType::f32) {
    const Model model = model_of(config);
    const fs::path directory = scratch_.path() / "model";
    std::vector<NamedTensor> tensors;
    values_.clear();
    for (const ParameterSpec& parameter : model.parameters()) {
      std::vector<float>& values = values_[parameter.name];
      values.resize(static_cast<size_t>(parameter.shape.elements()));
      for (size_t i = 0; i < values.size(); ++i) values[i] = element_value(values_.size(), i);
      tensors.push_back(
          {parameter.name, {reinterpret_cast<const std::byte*>(values.data()), DType::f32, parameter.shape}});
    }
    ModelWriteOptions options;
    options.float_dtype = dtype;
    EXPECT_TRUE(write_model(directory, tensors, options).ok());
    EXPECT_TRUE(write_file_atomic(directory / "config.json", config).ok());
    if (tokenizer_json.empty()) return directory;
    EXPECT_TRUE(write_file_atomic(directory / "tokenizer.json", tokenizer_json).ok());
    return directory;
  }

  std::vector<float> f32_of(const std::string& parameter) const { return values_.at(parameter); }

  TemporaryDirectory scratch_;
  std::map<std::string, std::vector<float>> values_;  // of the parameters, f32
};

// A tokenizer.json of byte-level BPE: the end of text, the 256 bytes, two merges.
inline nlohmann::json byte_tokenizer() {
  nlohmann::json json = nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 0, "content": "<|endoftext|>", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
              "vocab": {"<|endoftext|>": 0}, "merges": ["t h", "th e"]}})");
  nlohmann::json& vocab = json["model"]["vocab"];
  int id = 1, shifted = 0;
  for (int byte = 0; byte < 256; ++byte) {  // GPT-2's alphabet: printable bytes are themselves, others U+0100 and on
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int code = printable ? byte : 256 + shifted++;
    std::string text(1, static_cast<char>(code));
    if (code >= 128) text = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    vocab[text] = id++;
  }
  vocab["th"] = id++;
  vocab["the"] = id++;
  return json;
}

// A tokenizer.json as converters make it of SentencePiece BPE: <unk>, <s>, </s>, the bytes, pieces with all ways to
// merge them.
inline nlohmann::json piece_tokenizer() {
  nlohmann::json json = nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "\u2581"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "pre_tokenizer": null,
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
    "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
              "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2},
              "merges": ["h e", "\u2581 t", "\u2581t he", "\u2581 the", "\u2581th e", "t h", "\u2581t h", "\u2581 th",
                         "t he", "th e"]}})");
  int id = 0;
  for (const char* text : {"<unk>", "<s>", "</s>"})
    json["added_tokens"].push_back({{"id", id++},
                                    {"content", text},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", true}});
  nlohmann::json& vocab = json["model"]["vocab"];
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = id++;
  for (const char* piece : {"he", "\u2581t", "\u2581the", "th", "\u2581th", "the", "\u2581", "t", "h", "e"})
    vocab[piece] = id++;
  return json;
}

}  // namespace ingot::testing
