// `ingot verify` as a user runs it: exit statuses, the JSON and the table.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "command_line.h"
#include "model_directory.h"

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

// Numbers that are not finite compare nothing, also where both sides have them.
TEST(VerifyVerb, DoesNotCallNanOnBothSidesAgreement) {
  const Copy model("gpt2");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Json config = Json::parse(read_file(model / "config.json").value());
  const auto width = config["n_embd"].get<size_t>();
  change(model / "model.safetensors", "transformer.ln_f.bias", 0, nan);
  const size_t rows = tensor_elements(model / "reference.safetensors", "final_norm") / width;
  for (size_t row = 0; row < rows; ++row) change(model / "reference.safetensors", "final_norm", row * width, nan);
  const Outcome outcome = verify({model.text(), "--reference", (model / "reference.safetensors").string()});
  EXPECT_EQ(outcome.status, 1) << outcome.out;
  EXPECT_NE((outcome.out + outcome.err).find("not finite"), std::string::npos) << outcome.out << outcome.err;
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

TEST(VerifyVerb, LooksAtOneBlockAlone) {
  const Copy copy("gemma2-packed");
  change(copy / "model.safetensors", "model.layers.0.mlp.up_proj.weight", 5, 0.5f);
  const auto of_layer = [&](const std::string& layer) {
    return verify({copy.text(), "--reference", reference_of("gemma2-packed"), "--layer", layer, "--json"});
  };
  const Outcome wrong = of_layer("0"), right = of_layer("1");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ(Json::parse(wrong.out).at("first_failure"), "hidden_states.1");
  EXPECT_EQ(right.status, 0) << right.err;
  const Json json = Json::parse(right.out);
  EXPECT_EQ(json.at("tensors").front().at("name"), "hidden_states.2");
  EXPECT_EQ(json.at("tensors").size(), 1u + 1u + 11u) << "its output, its input's gradient, eleven weights'";
}

TEST(VerifyVerb, TakesAToleranceForLongCurves) {
  const std::vector<std::string> arguments{stored("qwen2").string(), "--reference", reference_of("qwen2"), "--json",
                                           "--curve-tolerance",      "0.001"};
  const Outcome outcome = verify(arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json.at("tensors").back().at("name"), "train.losses");
  EXPECT_EQ(json.at("not_compared").front(), "train.grad_norms");
}

// ---- --shrink

TEST(VerifyShrink, MakesASmallModelOfTheSameKindWithTheSameTokenizer) {
  const ScratchDirectory scratch;
  const fs::path source = scratch.path() / "large", out = scratch.path() / "small";
  fs::create_directories(source);
  std::ofstream(source / "config.json") << R"({"model_type": "gemma2", "vocab_size": 300, "num_hidden_layers": 6,
    "hidden_size": 512, "intermediate_size": 2048, "head_dim": 128, "query_pre_attn_scalar": 128, "bos_token_id": 2})";
  std::ofstream(source / "tokenizer.json") << "{ \"as\": \"it is\" }";
  std::ofstream(source / "tokenizer_config.json") << "{}";
  const std::vector<std::string> arguments{source.string(), "--shrink", "2x32", "--out", out.string(), "--json"};
  const Outcome outcome = verify(arguments);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json report = Json::parse(outcome.out), config = Json::parse(*read_file(out / "config.json"));
  EXPECT_EQ(report.at("config").at("num_attention_heads"), config.at("num_attention_heads"));
  EXPECT_EQ(config.at("num_hidden_layers"), 2);
  EXPECT_EQ(config.at("hidden_size"), 32);
  EXPECT_EQ(config.at("intermediate_size"), 128);
  EXPECT_EQ(config.at("architectures"), Json{"Gemma2ForCausalLM"});
  EXPECT_EQ(config.at("bos_token_id"), 2);
  EXPECT_EQ(config.at("torch_dtype"), "float32");
  EXPECT_EQ(*read_file(out / "tokenizer.json"), "{ \"as\": \"it is\" }");
  EXPECT_TRUE(fs::exists(out / "tokenizer_config.json"));
  EXPECT_GT(fs::file_size(out / "model.safetensors"), report.at("parameters").get<uint64_t>() * 4);
  // Neither half-written nor overwritten, the same bytes from the same seed, and a model that the other verbs take.
  EXPECT_EQ(verify(arguments).status, 2) << "the place is taken";
  const std::string weights = *read_file(out / "model.safetensors");
  fs::remove_all(out);
  EXPECT_EQ(verify(arguments).status, 0);
  EXPECT_EQ(*read_file(out / "model.safetensors"), weights);
  fs::remove_all(out);
  auto seeded = arguments;
  seeded.insert(seeded.end(), {"--seed", "1"});
  EXPECT_EQ(verify(seeded).status, 0);
  EXPECT_NE(*read_file(out / "model.safetensors"), weights);
  EXPECT_EQ(verify({source.string(), "--shrink", "1x16", "--out", (scratch.path() / "tiny").string()}).status, 0);
  EXPECT_EQ(verify({(scratch.path() / "tiny").string(), "--shrink", "1x8", "--out", scratch / "tinier"}).status, 0);
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(scratch.path())) ++entries;
  EXPECT_EQ(entries, 4u) << "nothing under temporary names stays";
}

TEST(VerifyShrink, RefusesWrongUsageWithStatusTwoAndWritesNothing) {
  const ScratchDirectory scratch;
  const std::string model = stored("llama").string(), out = scratch / "small";
  for (const std::string wrong : {"", "2", "2x", "x4", "2x4x6", "2 x 4", "-1x4", "0x4", "2x0", "2x4.5", "3x4", "2x16",
                                  "99999999999999999999x4", "2x5"}) {
    const Outcome outcome = verify({model, "--shrink=" + wrong, "--out", out});
    EXPECT_EQ(outcome.status, 2) << wrong;
    EXPECT_NE(outcome.err, "") << wrong;
    EXPECT_FALSE(fs::exists(out)) << wrong;
  }
  EXPECT_NE(verify({model, "--shrink", "2x5", "--out", out}).err.find("the next width that can is"), std::string::npos);
  EXPECT_NE(verify({model, "--shrink", "2x6"}).err.find("--out"), std::string::npos);
  EXPECT_EQ(verify({model, "--shrink", "2x6", "--out", out, "--reference", reference_of("llama")}).status, 2);
  EXPECT_EQ(verify({model, "--reference", reference_of("llama"), "--out", out}).status, 2);
  EXPECT_EQ(verify({"/nowhere", "--shrink", "2x6", "--out", out}).status, 3);
  EXPECT_NE(verify({model, "--shrink", "2x6", "--out", "/proc/small"}).status, 0);
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
  const Outcome nothing = run_ingot({"verify", model});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_NE(nothing.err.find("--reference"), std::string::npos);
  EXPECT_EQ(verify({model, "--reference", reference, "--layer", "0", "--curve-tolerance", "0.1"}).status, 2);
  EXPECT_EQ(verify({model, "--reference", reference, "--layers", "0"}).status, 2);
  for (const auto& [flag, value] : {std::pair{"--mode", "fast"},
                                    {"--precision", "fp8"},
                                    {"--layer", "2"},
                                    {"--layer", "-1"},
                                    {"--tolerance", "-1"},
                                    {"--layer", "one"},
                                    {"--layer", "1.5"},
                                    {"--curve-tolerance", "-1"},
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
