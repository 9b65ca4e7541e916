// Models of random weights, exported and continued as tests/oracles/gguf.sh does it, against the ids that llama.cpp
// gave for them. The same file and the same ids: the file gives them in llama.cpp.
#include <gtest/gtest.h>

#include "../oracles/random_model.h"
#include "base/hash.h"
#include "command_line.h"

namespace ingot::integration {
namespace {

using Json = nlohmann::json;

const fs::path kStored = fs::path(INGOT_SOURCE_DIR) / "tests/golden/llama_cpp";

Json stored(const char* name) {
  const auto text = read_file(kStored / name);
  if (!text.ok()) throw std::runtime_error(text.error().message);
  return Json::parse(*text);
}

class LlamaCpp : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Json config = stored("models.json").at(GetParam());
    const auto seed = result_.at("seed").get<uint64_t>();
    const Status written = write_random_model(model_, config.dump(), seed);
    ASSERT_TRUE(written.ok()) << written.error().message;
    fs::copy_file(kStored / "tokenizer.json", model_ / "tokenizer.json");
  }

  ScratchDirectory scratch_;
  const fs::path model_ = scratch_.path() / "model";
  const Json result_ = stored("results.json").at(GetParam());
};

TEST_P(LlamaCpp, ReadTheFileThatIsExported) {
  const std::string file = scratch_ / "model.gguf";
  const Outcome run = run_ingot({"export", model_.string(), "--format", "gguf", "--dtype", "f32", "--out", file});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto bytes = read_file(file);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  EXPECT_EQ(crc32c(std::as_bytes(std::span(*bytes))), result_.at("gguf_crc32c").get<uint32_t>())
      << "the exported file has changed: tests/oracles/gguf.sh --store asks llama.cpp again";
}

TEST_P(LlamaCpp, GaveTheGreedyIdsThatWeGive) {
  const Json& prompts = result_.at("prompts");
  ASSERT_EQ(prompts.size(), 4u);
  for (const Json& one : prompts) {
    const auto prompt = one.at("prompt").get<std::string>();
    const auto ids = one.at("ids").get<std::vector<int32_t>>();
    ASSERT_EQ(ids.size(), 100u);
    const Json ours =
        json_of("generate", {model_.string(), "--prompt", prompt, "--temperature", "0", "--max-tokens", "100"});
    EXPECT_EQ(ours.at("prompt_ids"), one.at("prompt_ids")) << prompt;
    EXPECT_EQ(ours.at("tokens").get<std::vector<int32_t>>(), ids) << prompt;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  const Json models = stored("models.json");
  for (const auto& [name, config] : models.items()) all.push_back(name);
  return all;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Architectures, LlamaCpp, ::testing::ValuesIn(names()), test_name);

}  // namespace
}  // namespace ingot::integration
