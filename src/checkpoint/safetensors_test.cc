#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "checkpoint/convert.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/testing.h"

namespace ingot {
namespace {

using testing::TemporaryDirectory;

std::string file_bytes(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

Result<SafetensorsHeader> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "test.safetensors");
}

// The error of a file with this header and `data_bytes` bytes of data; empty where it is accepted.
std::string problem_of(const std::string& header, size_t data_bytes) {
  const auto parsed = parse(file_bytes(header, std::string(data_bytes, 'x')));
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.error().kind, ErrorKind::input);
  return parsed.error().message;
}

void expect_problem(const std::string& header, size_t data_bytes, const std::string& part) {
  const std::string problem = problem_of(header, data_bytes);
  EXPECT_NE(problem.find(part), std::string::npos) << header << "\n -> " << problem;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(SafetensorsHeader, GivesTensorsByNameWithOffsetsInTheFile) {
  const std::string header = "{" + entry("b", "F32", "[2]", "[0,8]") + "," + entry("a", "BF16", "[1,3]", "[8,14]") +
                             R"(,"__metadata__":{"format":"pt"}}   )";
  const auto parsed = parse(file_bytes(header, std::string(14, 'x')));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->tensors.size(), 2u);
  EXPECT_EQ(parsed->tensors[0].name, "a");
  EXPECT_EQ(parsed->tensors[0].dtype, DType::bf16);
  EXPECT_EQ(parsed->tensors[0].shape, Shape({1, 3}));
  EXPECT_EQ(parsed->tensors[0].offset, 8 + header.size() + 8);
  EXPECT_EQ(parsed->tensors[1].bytes, 8u);
  EXPECT_EQ(parsed->metadata.at("format"), "pt");
}

TEST(SafetensorsHeader, TakesScalarsEmptyTensorsAndFilesWithoutTensors) {
  EXPECT_EQ(problem_of("{}", 0), "");
  EXPECT_EQ(problem_of("{" + entry("scalar", "F64", "[]", "[0,8]") + "}", 8), "");
  EXPECT_EQ(problem_of("{" + entry("e", "F32", "[0,7]", "[0,0]") + "," + entry("t", "U8", "[3]", "[0,3]") + "}", 3),
            "");
  EXPECT_EQ(problem_of("{" + entry("mask", "BOOL", "[3]", "[0,3]") + "}", 3), "");
}

TEST(SafetensorsHeader, RefusesExtentsThatDoNotTileTheData) {
  expect_problem("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[4]", "[3,7]") + "}", 7, "overlap");
  expect_problem("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[4]", "[0,4]") + "}", 4, "overlap");
  expect_problem("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[2]", "[5,7]") + "}", 7, "hole");
  expect_problem("{" + entry("a", "U8", "[4]", "[1,5]") + "}", 5, "hole");
  expect_problem("{" + entry("a", "U8", "[4]", "[0,4]") + "}", 5, "1 bytes after the last tensor");
  expect_problem("{}", 1, "1 bytes after the last tensor");
  expect_problem("{" + entry("a", "U8", "[4]", "[0,4]") + "}", 3, "outside");
  expect_problem("{" + entry("a", "U8", "[4]", "[4,0]") + "}", 4, "outside");
  expect_problem("{" + entry("e", "U8", "[0]", "[2,2]") + "," + entry("t", "U8", "[3]", "[0,3]") + "}", 3, "overlap");
}

TEST(SafetensorsHeader, RefusesShapesThatDisagreeWithTheExtentOrOverflow) {
  expect_problem("{" + entry("a", "F32", "[2]", "[0,4]") + "}", 4, "needs 8 bytes");
  expect_problem("{" + entry("a", "F32", "[-1]", "[0,4]") + "}", 4, "dimension -1");
  expect_problem("{" + entry("a", "F32", "[1.0]", "[0,4]") + "}", 4, "dimension 1.0");
  expect_problem("{" + entry("a", "F32", "[9223372036854775808]", "[0,4]") + "}", 4, "dimension 9223372036854775808");
  expect_problem("{" + entry("a", "F32", "[18446744073709551616]", "[0,4]") + "}", 4, "not an integer");
  expect_problem("{" + entry("a", "U8", "[9223372036854775807]", "[0,4]") + "}", 4, "needs 9223372036854775807 bytes");
  expect_problem("{" + entry("a", "F32", "[4611686018427387904]", "[0,0]") + "}", 0, "can be addressed");
  expect_problem("{" + entry("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}", 0, "can be addressed");
  expect_problem("{" + entry("a", "F32", "[4294967296,4294967296,0]", "[0,0]") + "}", 0, "can be addressed");
  expect_problem("{" + entry("a", "U8", "[1,1,1,1,1,1,1]", "[0,1]") + "}", 1, "at most 6");
  expect_problem("{" + entry("a", "U8", "[1]", "[0,18446744073709551615]") + "}", 1, "outside");
  expect_problem("{" + entry("a", "U8", "[1]", "[-1,0]") + "}", 1, "non-negative");
}

TEST(SafetensorsHeader, RefusesMalformedEntriesAndNamesTheTensor) {
  expect_problem(R"({"w":{"dtype":"F32","shape":[1]}})", 4, "tensor \"w\": its data_offsets");
  expect_problem(R"({"w":{"shape":[1],"data_offsets":[0,4]}})", 4, "tensor \"w\": it has no dtype");
  expect_problem(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4, "tensor \"w\": it has no shape");
  expect_problem(R"({"w":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1, "dtype F8_E4M3 is not supported");
  expect_problem(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1}})", 4, "unknown key \"extra\"");
  expect_problem(R"({"w":[1]})", 0, "not an object");
  expect_problem(R"({"__metadata__":{"a":1}})", 0, "not a string");
  expect_problem(R"({"__metadata__":7})", 0, "not an object");
  expect_problem(R"([1])", 0, "does not begin with");
  expect_problem(R"( {})", 0, "does not begin with");
  expect_problem("{\"w\"", 0, "malformed JSON at byte");
  expect_problem("{} x", 0, "malformed JSON at byte");
}

TEST(SafetensorsHeader, RefusesDuplicateKeysAndDeepNesting) {
  expect_problem("{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("a", "U8", "[1]", "[0,1]") + "}", 1,
                 "\"a\" occurs twice");
  expect_problem(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, "\"dtype\" occurs twice");
  expect_problem(R"({"__metadata__":{},"__metadata__":{}})", 0, "occurs twice");
  expect_problem("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", 0, "nested deeper than");
  expect_problem("{\"a\":" + std::string(100000, '['), 0, "nested deeper than");
}

TEST(SafetensorsHeader, RefusesHeaderLengthsBeyondTheFileOrTheLimit) {
  EXPECT_FALSE(parse("").ok());
  EXPECT_FALSE(parse("1234567").ok());
  EXPECT_FALSE(parse(std::string(8, '\0')).ok());
  for (uint64_t length : {uint64_t{3}, uint64_t{100'000'000}, uint64_t{100'000'001}, uint64_t{1} << 63, ~uint64_t{0}}) {
    std::string file = file_bytes("{}", "");
    std::memcpy(file.data(), &length, 8);
    EXPECT_FALSE(parse(file).ok()) << length;
  }
}

// A small valid file with tensors of several dtypes.
std::string sample_file() {
  return file_bytes("{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "BF16", "[1,3]", "[8,14]") + "," +
                        entry("c", "U8", "[]", "[14,15]") + "}",
                    "0123456789abcde");
}

TEST(SafetensorsHeader, RefusesTruncationAtEveryByte) {
  const std::string file = sample_file();
  ASSERT_TRUE(parse(file).ok());
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(parse(file.substr(0, size)).ok()) << size;
  EXPECT_FALSE(parse(file + "x").ok());
}

TEST(SafetensorsHeader, AnyChangedByteOfTheHeaderGivesAnErrorOrTensorsWithinTheFile) {
  const std::string file = sample_file();
  for (size_t at = 0; at < file.size() - 15; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(value);
      const auto parsed = parse(damaged);
      if (!parsed.ok()) continue;
      for (const TensorInfo& info : parsed->tensors) {
        ASSERT_LE(info.offset + info.bytes, damaged.size());
        ASSERT_EQ(info.bytes, static_cast<uint64_t>(info.shape.elements()) * size_of(info.dtype));
      }
    }
  }
}

TEST(SafetensorsWriter, WritesTheBytesTheFormatAsksFor) {
  TemporaryDirectory directory;
  const fs::path path = directory.path() / "x.safetensors";
  auto writer =
      SafetensorsWriter::create(path, {{"w", DType::f32, {2}}, {"m", DType::u8, {3}}, {"b", DType::f32, {1}}});
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  ASSERT_EQ(writer->order().size(), 3u);
  EXPECT_EQ(writer->order()[0].name, "b");
  EXPECT_EQ(writer->order()[1].name, "w");
  EXPECT_EQ(writer->order()[2].name, "m");  // narrow elements last, so that wide ones are aligned
  const std::string data = "bbbbwwwwwwwwmmm";
  const auto bytes = std::as_bytes(std::span(data));
  ASSERT_TRUE(writer->write("b", bytes.subspan(0, 4)).ok());
  ASSERT_TRUE(writer->write("w", bytes.subspan(4, 3)).ok());
  ASSERT_TRUE(writer->write("w", bytes.subspan(7, 5)).ok());
  ASSERT_TRUE(writer->write("m", bytes.subspan(12)).ok());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(writer->finish().ok());
  const std::string header = R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("w":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                             R"("m":{"dtype":"U8","shape":[3],"data_offsets":[12,15]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string content = testing::content_of(path);
  EXPECT_EQ(content, file_bytes(padded, data));
  EXPECT_EQ(writer->size(), content.size());
  EXPECT_EQ(writer->digest(), hash_bytes(content));
}

TEST(SafetensorsWriter, LeavesNothingBehindWhenItIsNotFinished) {
  TemporaryDirectory directory;
  {
    auto writer = SafetensorsWriter::create(directory.path() / "x.safetensors", {{"w", DType::f32, {2}}});
    ASSERT_TRUE(writer.ok());
  }
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(SafetensorsWriter, RefusesNamesThatAreTakenReservedOrNotUtf8) {
  TemporaryDirectory directory;
  const fs::path path = directory.path() / "x.safetensors";
  EXPECT_FALSE(SafetensorsWriter::create(path, {{"w", DType::f32, {2}}, {"w", DType::f32, {2}}}).ok());
  EXPECT_FALSE(SafetensorsWriter::create(path, {{"__metadata__", DType::f32, {2}}}).ok());
  EXPECT_FALSE(SafetensorsWriter::create(path, {{"\xff", DType::f32, {2}}}).ok());
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(SafetensorsWriter, WhatItWritesTheReaderReadsForEveryDType) {
  TemporaryDirectory directory;
  const fs::path path = directory.path() / "x.safetensors";
  std::vector<TensorInfo> infos{
      {"empty", DType::f32, {0, 3}}, {"scalar", DType::f64, {}}, {"näme \"quoted\"\n", DType::i32, {5}}};
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::i8, DType::u8})
    infos.push_back({"t." + std::string(name_of(dtype)), dtype, {3, 1, 5}});
  auto writer = SafetensorsWriter::create(path, infos, {{"format", "pt"}, {"key", "värde"}});
  ASSERT_TRUE(writer.ok());
  for (const TensorInfo& info : writer->order()) {
    const std::vector<std::byte> data = testing::pattern(info.bytes, hash_bytes(info.name));
    ASSERT_TRUE(writer->write(info.name, data).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  auto opened = SafetensorsFile::open(path);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const SafetensorsFile file = std::move(opened).value();
  EXPECT_EQ(file.metadata().at("key"), "värde");
  ASSERT_EQ(file.tensors().size(), infos.size());
  for (const TensorInfo& expected : infos) {
    const TensorInfo* info = file.find(expected.name);
    ASSERT_NE(info, nullptr) << expected.name;
    EXPECT_EQ(info->dtype, expected.dtype);
    EXPECT_EQ(info->shape, expected.shape);
    EXPECT_EQ(info->offset % size_of(info->dtype), 0u) << expected.name;
    const std::vector<std::byte> data = testing::pattern(info->bytes, hash_bytes(info->name));
    EXPECT_EQ(std::memcmp(file.view(*info).data, data.data(), data.size()), 0);
  }
  EXPECT_EQ(file.find("missing"), nullptr);
}

TEST(ConvertElements, WidensAndNarrowsOnBytesOfAnyAlignment) {
  const std::vector<float> values{1.0f, -2.5f, 0.333251953125f, 65504.0f, 0.0f};
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    std::vector<std::byte> stored(values.size() * size_of(dtype) + 1), back(values.size() * 4);
    convert_elements(DType::f32, reinterpret_cast<const std::byte*>(values.data()), dtype, stored.data() + 1,
                     values.size());
    convert_elements(dtype, stored.data() + 1, DType::f32, back.data(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      float value = 0;
      std::memcpy(&value, back.data() + 4 * i, 4);
      const float expected = dtype == DType::bf16 ? float_from_bf16(bf16_from_float(values[i])) : values[i];
      EXPECT_EQ(value, expected) << name_of(dtype);
    }
  }
}

TEST(ConvertElements, GoesThroughMoreThanOneChunkBetweenNarrowTypes) {
  const size_t count = 5000;
  std::vector<uint16_t> half(count), brain(count);
  for (size_t i = 0; i < count; ++i) half[i] = f16_from_float(static_cast<float>(i % 256));
  convert_elements(DType::f16, reinterpret_cast<const std::byte*>(half.data()), DType::bf16,
                   reinterpret_cast<std::byte*>(brain.data()), count);
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(float_from_bf16(brain[i]), static_cast<float>(i % 256));
}

TEST(ConvertElements, NeverTouchesIntegers) {
  EXPECT_FALSE(is_convertible(DType::i32, DType::f32));
  EXPECT_FALSE(is_convertible(DType::f32, DType::u8));
  EXPECT_FALSE(is_convertible(DType::i32, DType::i64));
  EXPECT_TRUE(is_convertible(DType::i64, DType::i64));
}

class ModelFiles : public ::testing::Test {
 protected:
  void write(uint64_t max_shard_bytes, float first = 0) {
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = first + static_cast<float>(i);
    std::vector<NamedTensor> tensors;
    for (int i = 0; i < 4; ++i)
      tensors.push_back({"layer." + std::to_string(3 - i),
                         {reinterpret_cast<const std::byte*>(weights_.data() + 4 * (3 - i)), DType::f32, {2, 2}}});
    tensors.push_back({"ids", {reinterpret_cast<const std::byte*>(ids_.data()), DType::i64, {2}}});
    ModelWriteOptions options;
    options.max_shard_bytes = max_shard_bytes;
    options.float_dtype = float_dtype_;
    const Status written = write_model(directory_.path(), std::move(tensors), options);
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  void expect_model(float first = 0) {
    const auto model = SafetensorsModel::open(directory_.path());
    ASSERT_TRUE(model.ok()) << model.error().message;
    ASSERT_EQ(model->tensors().size(), 5u);
    for (int i = 0; i < 4; ++i) {
      const auto* tensor = model->find("layer." + std::to_string(i));
      ASSERT_NE(tensor, nullptr);
      std::vector<float> values(4);
      convert_to_f32(SafetensorsModel::view(*tensor), values);
      for (int j = 0; j < 4; ++j) EXPECT_EQ(values[static_cast<size_t>(j)], first + static_cast<float>(4 * i + j));
    }
    const auto* ids = model->find("ids");
    ASSERT_NE(ids, nullptr);
    EXPECT_EQ(ids->info.dtype, DType::i64);
    EXPECT_EQ(SafetensorsModel::view(*ids).span<int64_t>()[1], ids_[1]);
  }
  std::string open_problem(const fs::path& path) {
    const auto model = SafetensorsModel::open(path);
    return model.ok() ? "" : model.error().message;
  }

  TemporaryDirectory directory_;
  std::vector<float> weights_ = std::vector<float>(16);
  std::vector<int64_t> ids_{7, int64_t{1} << 40};
  std::optional<DType> float_dtype_;
};

TEST_F(ModelFiles, OneFileWhereItFits) {
  write(1 << 20);
  EXPECT_EQ(testing::names_in(directory_.path()), std::vector<std::string>{"model.safetensors"});
  expect_model();
}

TEST_F(ModelFiles, ShardsWithAnIndexWhereItDoesNot) {
  write(32);
  EXPECT_EQ(testing::names_in(directory_.path()),
            (std::vector<std::string>{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                      "model-00003-of-00003.safetensors", "model.safetensors.index.json"}));
  expect_model();
}

TEST_F(ModelFiles, ATensorLargerThanAShardHasOneOfItsOwn) {
  write(1);
  EXPECT_EQ(testing::names_in(directory_.path()).size(), 6u);
  expect_model();
}

TEST_F(ModelFiles, RewritingReplacesWhatWasThereInAnyForm) {
  write(32);
  write(1 << 20, 100);
  EXPECT_EQ(testing::names_in(directory_.path()).size(), 1u);
  expect_model(100);
  write(1, 200);
  expect_model(200);
  write(32, 300);
  EXPECT_EQ(testing::names_in(directory_.path()).size(), 4u);
  expect_model(300);
}

TEST_F(ModelFiles, TheSameTensorsGiveTheSameBytes) {
  write(32);
  const std::string shard = testing::content_of(directory_.path() / "model-00002-of-00003.safetensors");
  const std::string index = testing::content_of(directory_.path() / "model.safetensors.index.json");
  write(32);
  EXPECT_EQ(testing::content_of(directory_.path() / "model-00002-of-00003.safetensors"), shard);
  EXPECT_EQ(testing::content_of(directory_.path() / "model.safetensors.index.json"), index);
}

TEST_F(ModelFiles, ConvertsFloatsAndNeverIntegers) {
  float_dtype_ = DType::bf16;
  write(1 << 20);
  const auto model = SafetensorsModel::open(directory_.path());
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->find("layer.0")->info.dtype, DType::bf16);
  expect_model();
}

TEST_F(ModelFiles, AMissingShardIsAnErrorThatNamesIt) {
  write(32);
  fs::remove(directory_.path() / "model-00002-of-00003.safetensors");
  const std::string problem = open_problem(directory_.path());
  EXPECT_NE(problem.find("model-00002-of-00003.safetensors"), std::string::npos) << problem;
  EXPECT_NE(problem.find("missing"), std::string::npos) << problem;
}

TEST_F(ModelFiles, FilesBesideTheIndexThatItDoesNotNameAreNotRead) {
  write(32);
  testing::write_content(directory_.path() / "model-00009-of-00009.safetensors", "not a safetensors file");
  testing::write_content(directory_.path() / "consolidated.safetensors", "neither");
  expect_model();
}

TEST_F(ModelFiles, ATensorThatItsShardLacksIsAnErrorThatNamesBoth) {
  write(32);
  const fs::path index = directory_.path() / "model.safetensors.index.json";
  testing::write_content(index, R"({"weight_map":{"head":"model-00001-of-00003.safetensors"}})");
  const std::string problem = open_problem(index);
  EXPECT_NE(problem.find("\"head\" is not in the shard model-00001-of-00003.safetensors"), std::string::npos)
      << problem;
}

TEST_F(ModelFiles, AnIndexMayNotLeadOutOfItsDirectoryOrNameATensorTwice) {
  const fs::path index = directory_.path() / "model.safetensors.index.json";
  for (const char* shard : {"../x.safetensors", "/etc/passwd", "", ".."}) {
    testing::write_content(index, fmt::format(R"({{"weight_map":{{"w":"{}"}}}})", shard));
    EXPECT_NE(open_problem(index).find("not the name of a file"), std::string::npos) << shard;
  }
  testing::write_content(index, R"({"weight_map":{"w":"a","w":"b"}})");
  EXPECT_NE(open_problem(index).find("occurs twice"), std::string::npos);
  testing::write_content(index, R"({"weight_map":[]})");
  EXPECT_NE(open_problem(index).find("no weight_map"), std::string::npos);
}

TEST_F(ModelFiles, ADirectoryWithoutAModelIsAnErrorThatSaysWhatIsExpected) {
  EXPECT_NE(open_problem(directory_.path()).find("neither model.safetensors nor"), std::string::npos);
  testing::write_content(directory_.path() / "pytorch_model.bin", "");
  EXPECT_NE(open_problem(directory_.path()).find("must be converted"), std::string::npos);
  EXPECT_NE(open_problem(directory_.path() / "nowhere").find("does not exist"), std::string::npos);
}

TEST_F(ModelFiles, ReadsARealCheckpoint) {
  const fs::path path = fs::path(INGOT_SOURCE_DIR) / "../shared/data/stories260k";
  if (!fs::exists(path / "model.safetensors")) {
    fprintf(stderr, "not run: %s is absent\n", path.c_str());
    return;
  }
  const auto model = SafetensorsModel::open(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_GT(model->tensors().size(), 40u);
  EXPECT_NE(model->find("model.embed_tokens.weight"), nullptr);
}

}  // namespace
}  // namespace ingot
