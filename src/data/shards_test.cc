// Opening shards, and what a damaged directory says.
#include "data/shards.h"

#include <nlohmann/json.hpp>

#include "data/build.h"
#include "data/shard_names.h"
#include "data/testing.h"

namespace ingot {
namespace {

using namespace data_testing;  // NOLINT: helpers of this folder's tests

class Shards : public ::testing::Test {
 protected:
  void SetUp() override {
    SourceSpec spec;
    dir_.write("in/a.txt", "hello");
    dir_.write("in/b.txt", "you");
    spec.path = (dir_ / "in").string();
    ASSERT_TRUE(build_shards(std::span(&spec, 1), byte_encoder(), out_, ThreadPool(1)).ok());
  }
  void overwrite(std::string_view name, size_t at, std::string_view bytes) {
    std::string content = read_file(out_ / name).value();
    content.replace(at, bytes.size(), bytes);
    dir_.write((fs::path("out") / name).string(), content);
  }
  void edit_index(const std::function<void(nlohmann::json&)>& edit) {
    nlohmann::json json = nlohmann::json::parse(read_file(out_ / "index.json").value());
    edit(json);
    dir_.write("out/index.json", json.dump());
  }

  TestDirectory dir_;
  fs::path out_ = dir_ / "out";
};

TEST_F(Shards, TheIndexPrintsAndParsesToTheSame) {
  const std::string json = read_file(out_ / "index.json").value();
  ASSERT_VALUE(const ShardIndex index, ShardIndex::parse(json, "index.json"));
  EXPECT_EQ(index.to_json(), json);
  EXPECT_EQ(index.tokens, 10);
  EXPECT_EQ(index.documents, 2);
}

TEST_F(Shards, AMissingOrShortFileIsNamed) {
  fs::resize_file(out_ / "shard-00000.bin", 19);
  EXPECT_ERROR(ShardSet::open(out_), ErrorKind::input, "shard-00000.bin has 19 bytes, expected 20");
  fs::remove(out_ / "shard-00000.bin");
  EXPECT_ERROR(ShardSet::open(out_), ErrorKind::input, "shard-00000.bin");
  EXPECT_ERROR(ShardSet::open(dir_ / "nowhere"), ErrorKind::input, "index.json");
}

TEST_F(Shards, AFlippedByteIsFoundByVerify) {
  overwrite("shard-00000.bin", 4, "x");
  ASSERT_VALUE(const auto set, ShardSet::open(out_));
  EXPECT_ERROR(set->verify(), ErrorKind::input, "shard-00000.bin: checksum");
}

TEST_F(Shards, ATokenOutsideTheVocabularyIsAnErrorOfReading) {
  overwrite("shard-00000.bin", 6, "\xFF\xFF");
  ASSERT_VALUE(const auto set, ShardSet::open(out_));
  std::vector<int32_t> ids(3);
  EXPECT_TRUE(set->read(0, ids).ok());
  EXPECT_ERROR(set->read(1, ids), ErrorKind::input, "outside the vocabulary of 257");
}

TEST_F(Shards, DocumentEndsThatDoNotAscendAreDamage) {
  overwrite(shard_names::kDocumentEnds, 0, std::string_view("\x0A\0\0\0\0\0\0\0", 8));
  EXPECT_ERROR(ShardSet::open(out_), ErrorKind::input, "document 1 of 2 ends at 10");
  overwrite(shard_names::kDocumentEnds, 0, std::string_view("\x05\0\0\0\0\0\0\0\x09", 9));
  EXPECT_ERROR(ShardSet::open(out_), ErrorKind::input, "the documents end at token 9, expected 10");
}

TEST_F(Shards, AnIndexThatIsWrongSaysWhichKey) {
  const std::string whole = read_file(out_ / "index.json").value();
  const auto edited = [&](const std::function<void(nlohmann::json&)>& edit) {
    dir_.write("out/index.json", whole);
    edit_index(edit);
    return ShardSet::open(out_);
  };
  EXPECT_ERROR(edited([](auto& json) { json["files"][0]["name"] = "../secret"; }), ErrorKind::input, "../secret");
  EXPECT_ERROR(edited([](auto& json) { json["files"].erase(0); }), ErrorKind::input,
               "\"files\" lists 3 files, expected 4");
  EXPECT_ERROR(edited([](auto& json) { json["shard_tokens"] = 0; }), ErrorKind::input, "shard_tokens");
  EXPECT_ERROR(edited([](auto& json) { json["tokens"] = -1; }), ErrorKind::input, "\"tokens\" is missing or wrong");
  EXPECT_ERROR(edited([](auto& json) { json.erase("documents"); }), ErrorKind::input,
               "\"documents\" is missing or wrong");
  EXPECT_ERROR(edited([](auto& json) { json["version"] = 2; }), ErrorKind::input, "version 2, expected 1");
  EXPECT_ERROR(edited([](auto& json) { json["format"] = "other"; }), ErrorKind::input, "not the index of token shards");
  dir_.write("out/index.json", "{");
  EXPECT_ERROR(ShardSet::open(out_), ErrorKind::input, "not a JSON object");
}

TEST_F(Shards, MovedShardsAreTheSameData) {
  ASSERT_VALUE(const auto before, ShardSet::open(out_));
  edit_index([](auto& json) { json["source_key"] = "00000000000000ff"; });
  fs::rename(out_, dir_ / "moved");
  ASSERT_VALUE(const auto after, ShardSet::open(dir_ / "moved"));
  EXPECT_EQ(before->fingerprint(), after->fingerprint());
}

TEST(TokenStore, TheDocumentOfAPositionIsFound) {
  const auto store = fake_store({3, 1, 5});
  for (int64_t position = 0; position < 9; ++position)
    EXPECT_EQ(store->document_at(position), position < 3 ? 0 : position < 4 ? 1 : 2);
}

}  // namespace
}  // namespace ingot
