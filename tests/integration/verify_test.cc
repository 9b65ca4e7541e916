// `ingot verify` as a user runs it: exit statuses, the JSON and the table.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "command_line.h"

namespace ingot::integration {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// On one thread: the models are tiny.
Outcome verify(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"verify", "--threads", "1"});
  return run_ingot(arguments);
}

fs::path stored(const std::string& name) {
  return fs::path(INGOT_SOURCE_DIR) / "tests" / "golden" / "references" / name;
}

std::string reference_of(const std::string& name) {
  return (stored(name) / "reference.safetensors").string();
}

// A directory of the test's own with the stored model in it, gone with the object.
class Copy {
 public:
  explicit Copy(const std::string& name) { fs::copy(stored(name), scratch_.path(), fs::copy_options::recursive); }
  fs::path operator/(const std::string& name) const { return scratch_.path() / name; }
  std::string text() const { return scratch_.path().string(); }

 private:
  ScratchDirectory scratch_;
};

// Adds `delta` to the float at `index` of a tensor of a safetensors file, in place.
void change(const fs::path& path, const std::string& tensor, size_t index, float delta) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  uint64_t header_bytes = 0;
  file.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
  std::string header(header_bytes, ' ');
  file.read(header.data(), static_cast<std::streamsize>(header_bytes));
  const auto begin = Json::parse(header).at(tensor).at("data_offsets").at(0).get<uint64_t>();
  const auto at = static_cast<std::streamoff>(sizeof header_bytes + header_bytes + begin + index * sizeof(float));
  float value = 0;
  file.seekg(at);
  file.read(reinterpret_cast<char*>(&value), sizeof value);
  value += delta;
  file.seekp(at);
  file.write(reinterpret_cast<const char*>(&value), sizeof value);
  ASSERT_TRUE(file.good());
}

TEST(VerifyVerb, AgreesWithTheReferenceInBothModes) {
  for (const std::string mode : {"graph", "eager"}) {
    const Outcome outcome =
        verify({stored("llama").string(), "--reference", reference_of("llama"), "--json", "--mode", mode});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_TRUE(json.at("ok").get<bool>());
    EXPECT_EQ(json.at("tolerance").get<double>(), 1e-4);
    EXPECT_TRUE(json.at("first_failure").is_null());
    std::vector<std::string> names;
    for (const Json& tensor : json.at("tensors")) {
      names.push_back(tensor.at("name"));
      EXPECT_TRUE(tensor.at("ok").get<bool>());
      EXPECT_TRUE(tensor.at("max_abs").is_number() && tensor.at("max_rel").is_number());
    }
    const std::vector<std::string> start{
        "hidden_states.0", "hidden_states.1", "hidden_states.2", "final_norm", "logits", "loss", "grad.lm_head.weight"};
    EXPECT_TRUE(std::equal(start.begin(), start.end(), names.begin()));
    for (const std::string name : {"train.losses", "train.grad_norms", "after.model.embed_tokens.weight"})
      EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(VerifyVerb, StopsAtTheFirstTensorThatDiffersWithStatusOne) {
  const Copy copy("gpt2");
  change(copy / "model.safetensors", "transformer.h.1.attn.c_proj.weight", 5, 0.5f);
  const std::vector<std::string> arguments{copy.text(), "--reference", reference_of("gpt2")};
  const Outcome table = verify(arguments);
  EXPECT_EQ(table.status, 1);
  EXPECT_NE(table.out.find("the first that differs: hidden_states.2"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("likely causes:"), std::string::npos);
  EXPECT_NE(table.err.find("hidden_states.2"), std::string::npos) << table.err;

  auto with_json = arguments;
  with_json.emplace_back("--json");
  const Outcome outcome = verify(with_json);
  EXPECT_EQ(outcome.status, 1);
  const Json json = Json::parse(outcome.out);
  EXPECT_FALSE(json.at("ok").get<bool>());
  EXPECT_EQ(json.at("first_failure"), "hidden_states.2");
  EXPECT_EQ(json.at("tensors").back().at("name"), "hidden_states.2");
  EXPECT_FALSE(json.at("tensors").back().at("ok").get<bool>());

  auto tolerant = with_json;
  tolerant.insert(tolerant.end(), {"--tolerance", "100"});
  EXPECT_EQ(verify(tolerant).status, 0);
}

TEST(VerifyVerb, SeesOneWrongGradientOfTheReference) {
  const Copy copy("llama-gqa-packed");
  const std::string tensor = "grad.model.layers.0.self_attn.k_proj.weight";
  change(copy / "reference.safetensors", tensor, 7, 0.01f);
  const std::vector<std::string> arguments{stored("llama-gqa-packed").string(), "--reference",
                                           (copy / "reference.safetensors").string(), "--json"};
  const Outcome outcome = verify(arguments);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(Json::parse(outcome.out).at("first_failure"), tensor);
  // The other layer is as it should be.
  auto other_layer = arguments;
  other_layer.insert(other_layer.end(), {"--layer", "1"});
  const Outcome one = verify(other_layer);
  EXPECT_EQ(one.status, 0) << one.err;
  for (const Json& entry : Json::parse(one.out).at("tensors")) {
    const std::string name = entry.at("name");
    EXPECT_TRUE(name == "hidden_states.2" || name.find("layers.1.") != std::string::npos) << name;
  }
  auto this_layer = arguments;
  this_layer.insert(this_layer.end(), {"--layer", "0"});
  EXPECT_EQ(verify(this_layer).status, 1);
}

TEST(VerifyVerb, RefusesWhatItCannotCompareWithStatusThree) {
  const std::string model = stored("gpt2").string();
  const auto message = [&](const std::string& directory, const std::string& reference, int status) {
    const Outcome outcome = verify({directory, "--reference", reference, "--json"});
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_NE(message(model, "/nowhere/reference.safetensors", 3).find("/nowhere/reference.safetensors"),
            std::string::npos);
  EXPECT_NE(message("/nowhere", reference_of("gpt2"), 3).find("/nowhere"), std::string::npos);
  message(model, (stored("gpt2") / "config.json").string(), 3);
  message(model, reference_of("llama"), 3);
  message(stored("llama").string(), reference_of("gpt2"), 3);

  const Copy cut("gpt2");
  fs::resize_file(cut / "reference.safetensors", fs::file_size(cut / "reference.safetensors") - 1);
  message(model, (cut / "reference.safetensors").string(), 3);
  const Copy empty("gpt2");
  fs::remove(empty / "model.safetensors");
  EXPECT_NE(message(empty.text(), reference_of("gpt2"), 3).find("no weights"), std::string::npos);
}

TEST(VerifyVerb, RefusesWrongUsageWithStatusTwo) {
  const std::string model = stored("gpt2").string(), reference = reference_of("gpt2");
  EXPECT_EQ(run_ingot({"verify", model}).status, 2);
  for (const auto& [flag, value] : {std::pair{"--mode", "fast"},
                                    {"--precision", "fp8"},
                                    {"--layer", "2"},
                                    {"--layer", "-1"},
                                    {"--tolerance", "-1"},
                                    {"--threads", "0"}})
    EXPECT_EQ(run_ingot({"verify", model, "--reference", reference, flag, value}).status, 2) << flag << " " << value;
}

TEST(VerifyVerb, HasTheSameFiguresOnAnyNumberOfThreads) {
  const auto on = [](const std::string& threads) {
    return run_ingot({"verify", stored("qwen3").string(), "--reference", reference_of("qwen3"), "--json", "--threads",
                      threads})
        .out;
  };
  EXPECT_EQ(on("1"), on("3"));
}

}  // namespace
}  // namespace ingot::integration
