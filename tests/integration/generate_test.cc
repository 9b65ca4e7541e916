// ingot generate, from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoint/writer.h"
#include "command_line.h"
#include "model_directory.h"
#include "text/utf8.h"

namespace ingot::integration {
namespace {

using Json = nlohmann::json;

Json generated(std::vector<std::string> arguments) {
  return json_of("generate", std::move(arguments));
}

class Generate : public ::testing::Test {
 protected:
  void SetUp() override { write_small_model(scratch_.path() / "model", kByteModel); }
  std::string model() const { return scratch_ / "model"; }
  ScratchDirectory scratch_;
};

TEST(GenerateStories, GreedyContinuationOfTheEmptyPromptIsTheGoldenOne) {
  if (!has_stories()) return;
  const Json golden = Json::parse(read_file(kStories / "golden.json").value());
  const auto ids = golden["greedy_ids"].get<std::vector<int32_t>>();
  const std::vector<int32_t> fresh(ids.begin() + 1, ids.end());
  const std::vector<std::string> flags{kStories.string(), "--prompt", "", "--temperature", "0", "--max-tokens"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    return generated(more);
  };
  const Json json = with({std::to_string(fresh.size())});
  EXPECT_EQ(json["prompt_ids"], std::vector<int32_t>{ids[0]});
  EXPECT_EQ(json["tokens"], fresh);
  EXPECT_EQ(json["text"], golden["greedy_text"]);
  EXPECT_GT(json["prefill_ms"], 0);
  EXPECT_GT(json["ms_per_token"], 0);
  EXPECT_EQ(with({"20", "--threads", "2"})["tokens"], (std::vector<int32_t>{fresh.begin(), fresh.begin() + 20}));
}

TEST(GenerateStories, PromptsGetThePostProcessorsSpecialsAndTextIsWhatIsNew) {
  if (!has_stories()) return;
  const Json golden = Json::parse(read_file(kStories / "golden.json").value());
  const std::string text = golden["greedy_text"], prompt = "Once upon a time, there was a little girl named";
  ASSERT_TRUE(text.starts_with(prompt));
  const Json json = generated({kStories.string(), "--prompt", prompt, "--temperature", "0", "--max-tokens", "30"});
  EXPECT_EQ(json["prompt_ids"][0], 1);
  EXPECT_NE(text.find(json["text"].get<std::string>()), std::string::npos) << json["text"];
  const Outcome plain = run_ingot({"generate", kStories.string(), "--prompt", prompt, "--temperature", "0",
                                   "--max-tokens", "30", "--threads", "1"});
  EXPECT_EQ(plain.out, json["text"].get<std::string>() + "\n");
}

TEST_F(Generate, TheSameSeedGivesTheSameTextOnAnyNumberOfThreads) {
  const auto text = [&](const char* seed, const char* threads) {
    return generated({model(), "--prompt", "the cat", "--seed", seed, "--threads", threads, "--max-tokens", "20",
                      "--top-p", "0.95", "--top-k", "100"})["tokens"];
  };
  const Json first = text("7", "1");
  EXPECT_EQ(first.size(), 20u);
  EXPECT_EQ(text("7", "2"), first);
  EXPECT_EQ(text("7", "3"), first);
  EXPECT_NE(text("8", "1"), first);
}

TEST_F(Generate, PromptsOfAFileAreContinuedAsEachAlone) {
  const std::vector<std::string> texts{"the cat", "a", "on a dark and stormy night there was a cat"};
  ASSERT_TRUE(write_file_atomic(scratch_ / "prompts.txt", texts[0] + "\n\n" + texts[1] + "\r\n" + texts[2]).ok());
  ASSERT_TRUE(write_file_atomic(scratch_ / "prompts.jsonl", Json(texts[0]).dump() + "\n" +
                                                                Json{{"prompt", texts[1]}}.dump() + "\n" +
                                                                Json(texts[2]).dump() + "\n")
                  .ok());
  for (const char* batch : {"1", "2", "8"})
    for (const char* file : {"prompts.txt", "prompts.jsonl"}) {
      const Outcome outcome = run_ingot({"generate", model(), "--prompts", scratch_ / file, "--batch-size", batch,
                                         "--seed", "3", "--max-tokens", "12", "--json"});
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      std::istringstream lines(outcome.out);
      std::string line;
      for (size_t i = 0; i < texts.size(); ++i) {
        ASSERT_TRUE(std::getline(lines, line)) << outcome.out;
        const Json alone =
            generated({model(), "--prompt", texts[i], "--seed", std::to_string(3 + i), "--max-tokens", "12"});
        EXPECT_EQ(Json::parse(line)["tokens"], alone["tokens"]) << i;
        EXPECT_EQ(Json::parse(line)["text"], alone["text"]) << i;
      }
    }
  const Outcome plain = run_ingot({"generate", model(), "--prompts", scratch_ / "prompts.txt", "--max-tokens", "3"});
  EXPECT_TRUE(plain.out.starts_with("[1] ")) << plain.out;
  EXPECT_NE(plain.out.find("\n[3] "), std::string::npos) << plain.out;
}

TEST_F(Generate, PromptFilesThatCannotBeAreRefused) {
  ASSERT_TRUE(write_file_atomic(scratch_ / "empty.txt", "\n \n").ok());
  ASSERT_TRUE(write_file_atomic(scratch_ / "bad.jsonl", "\"fine\"\n{\"prompt\": 3}\n").ok());
  for (const auto& [file, expected] : std::vector<std::pair<std::string, std::string>>{
           {"none.txt", "none.txt"}, {"empty.txt", "no prompt"}, {"bad.jsonl", "bad.jsonl:2"}}) {
    const Outcome outcome = run_ingot({"generate", model(), "--prompts", scratch_ / file});
    EXPECT_EQ(outcome.status, 3) << file;
    EXPECT_NE(outcome.err.find(expected), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run_ingot({"generate", model(), "--prompts", "x", "--prompt", "y"}).status, 2);
  EXPECT_EQ(run_ingot({"generate", model(), "--prompt", "y", "--batch-size", "2"}).status, 2);
}

TEST_F(Generate, Int8WeightsWriteNearlyTheSame) {
  if (!has_stories()) return;
  const auto ids = [&](const char* weights) {
    return generated({kStories.string(), "--prompt", "Once upon a time", "--temperature", "0", "--max-tokens", "40",
                      "--weights", weights})["tokens"];
  };
  const Json plain = ids("fp32"), rounded = ids("int8");
  ASSERT_EQ(rounded.size(), 40u);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(rounded[i], plain[i]) << i;
  EXPECT_EQ(run_ingot({"generate", model(), "--prompt", "x", "--weights", "int4"}).status, 2);
}

TEST_F(Generate, AnyOfTheListedEndsStopsIt) {
  const std::vector<std::string> flags{model(), "--prompt", "the cat", "--temperature", "0", "--max-tokens", "20"};
  const auto plain = generated(flags)["tokens"].get<std::vector<int32_t>>();
  ASSERT_EQ(plain.size(), 20u);
  const int32_t end = plain[3];
  const auto first = std::ranges::find(plain, end) - plain.begin();
  ASSERT_TRUE(
      write_file_atomic(fs::path(model()) / "generation_config.json", Json{{"eos_token_id", {0, end}}}.dump()).ok());
  const auto ended = generated(flags)["tokens"].get<std::vector<int32_t>>();
  EXPECT_EQ(ended, (std::vector<int32_t>{plain.begin(), plain.begin() + first + 1}));
}

TEST(GenerateStories, ASpaceBetweenPromptAndContinuationIsKept) {
  if (!has_stories()) return;
  const Json json = generated({kStories.string(), "--prompt", "Once", "--temperature", "0", "--max-tokens", "4"});
  EXPECT_TRUE(json["text"].get<std::string>().starts_with(" upon")) << json["text"];
}

TEST_F(Generate, NarrowChoicesAreGreedy) {
  const auto tokens = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {model(), "--prompt", "the cat", "--max-tokens", "40"});
    return generated(flags)["tokens"];
  };
  const Json greedy = tokens({"--temperature", "0"});
  EXPECT_EQ(tokens({"--top-k", "1", "--seed", "3"}), greedy);
  EXPECT_EQ(tokens({"--top-p", "1e-6", "--seed", "4"}), greedy);
  EXPECT_NE(tokens({"--seed", "5"}), greedy);
}

bool is_inside_a_character(const std::string& text, size_t place) {
  const auto* begin = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t start = place < 3 ? 0 : place - 3; start < place; ++start)
    if (start + decode_utf8(begin + start, begin + text.size()).size > place) return true;
  return false;
}

// Random tokens of a byte-level vocabulary: mostly bytes that are no characters, some that are.
TEST_F(Generate, TextComesInWholeCharacters) {
  for (const char* seed : {"1", "2", "3"}) {
    const Outcome outcome = run_ingot({"generate", model(), "--prompt", "\xe4\xbd\xa0\xe5", "--max-tokens", "55",
                                       "--temperature", "3", "--threads", "1", "--seed", seed});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    ASSERT_FALSE(outcome.fragments.empty());
    size_t end = 0;
    for (const std::string& fragment : outcome.fragments)
      EXPECT_FALSE(is_inside_a_character(outcome.out, end += fragment.size())) << ::testing::PrintToString(fragment);
    EXPECT_TRUE(outcome.out.ends_with("\n"));
  }
}

TEST_F(Generate, StopsWithAWarningWhereTheContextIsFull) {
  const Outcome outcome =
      run_ingot({"generate", model(), "--prompt", "the cat", "--max-tokens", "1000", "--json", "--threads", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["tokens"].size() + json["prompt_ids"].size(), 65u);
  EXPECT_NE(outcome.err.find("64 tokens is full"), std::string::npos) << outcome.err;
}

TEST_F(Generate, TheEmptyPromptStartsFromEosWhereThereIsNoBos) {
  EXPECT_EQ(generated({model(), "--prompt", "", "--max-tokens", "3"})["prompt_ids"], std::vector<int32_t>{0});
}

TEST_F(Generate, TakesACheckpointDirectory) {
  const fs::path directory = scratch_.path() / "model";
  const ThreadPool pool(1);
  const Json config = Json::parse(read_file(directory / "config.json").value());
  const Model parsed = taken(Model::from_json(config.dump(), "test"));
  VariableLayout variables;
  for (const ParameterSpec& parameter : parsed.parameters())
    variables.add(parameter.name, {DType::f32, parameter.shape});
  const Arena arena = taken(Arena::create(variables, pool));
  ASSERT_TRUE(load_weights(directory, parsed, arena).ok());
  Snapshot snapshot;
  snapshot.step = 12;
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"})
    snapshot.files.push_back({name, read_file(directory / name).value()});
  for (const ParameterSpec& parameter : parsed.parameters()) {
    snapshot.pieces.push_back(whole_piece(parameter.name, "weight", arena.variable(parameter.name)));
    snapshot.pieces.push_back(whole_piece(parameter.name, "adam_m", arena.variable(parameter.name)));
  }
  {
    auto writer = taken(CheckpointWriter::create({scratch_.path() / "checkpoints", 5, false, {}}));
    ASSERT_TRUE(writer->save(snapshot).ok());
  }
  const std::string checkpoint = scratch_ / "checkpoints/step-00000012";
  const auto tokens = [](const std::string& path) {
    return generated({path, "--prompt", "the cat", "--max-tokens", "20", "--temperature", "0"})["tokens"];
  };
  EXPECT_EQ(tokens(checkpoint), tokens(model()));

  std::string text = read_file(fs::path(checkpoint) / "tokenizer.json").value();
  text[text.find("<|endoftext|>") + 3] = 'X';
  ASSERT_TRUE(write_file_atomic(fs::path(checkpoint) / "tokenizer.json", text).ok());
  expect_error({"generate", checkpoint, "--prompt", "a"}, 3, {"tokenizer.json"});
}

TEST_F(Generate, SaysWhatIsWrongWithTheDirectory) {
  expect_error({"generate", scratch_ / "nowhere", "--prompt", "a"}, 3, {"nowhere"});
  fs::create_directories(scratch_ / "empty");
  expect_error({"generate", scratch_ / "empty", "--prompt", "a"}, 3, {"empty", "config.json"});
  fs::remove(scratch_.path() / "model" / "tokenizer.json");
  expect_error({"generate", model(), "--prompt", "a"}, 3, {"tokenizer.json"});
  for (const char* damage : {"", "{", "[]", R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})"}) {
    ASSERT_TRUE(write_file_atomic(scratch_.path() / "model" / "tokenizer.json", damage).ok());
    expect_error({"generate", model(), "--prompt", "a"}, 3, {"tokenizer.json"});
  }
}

TEST_F(Generate, DamagedOrMissingWeightsAreNamed) {
  const fs::path weights = scratch_.path() / "model" / "model.safetensors";
  const std::string whole = read_file(weights).value();
  ASSERT_TRUE(write_file_atomic(weights, whole.substr(0, whole.size() / 2)).ok());
  expect_error({"generate", model(), "--prompt", "a"}, 3, {"model.safetensors"});
  fs::remove(weights);
  expect_error({"generate", model(), "--prompt", "a"}, 3, {"model.safetensors"});
}

TEST_F(Generate, AnswersMessagesThroughTheModelsTemplate) {
  const auto write = [&](const std::string& name, const Json& json) {
    ASSERT_TRUE(write_file_atomic(scratch_.path() / name, json.dump()).ok());
  };
  Json config = Json::parse(read_file(scratch_.path() / "model" / "tokenizer_config.json").value());
  config["chat_template"] =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|endoftext|>{% "
      "endif "
      "%}";
  write("model/tokenizer_config.json", config);
  write("messages.json", Json::array({{{"role", "user"}, {"content", "hi"}}}));
  const std::vector<std::string> flags{"--max-tokens", "5", "--temperature", "0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), model());
    more.insert(more.end(), flags.begin(), flags.end());
    return generated(more);
  };
  const Json chat = with({"--chat", scratch_ / "messages.json"});
  const Json prompt = with({"--prompt", "<user>hi<|endoftext|>"});
  EXPECT_EQ(chat["prompt_ids"], prompt["prompt_ids"]);
  EXPECT_EQ(chat["tokens"], prompt["tokens"]);
  expect_error({"generate", model(), "--chat", scratch_ / "nowhere.json"}, 3, {"nowhere.json"});
  expect_error({"generate", model(), "--chat", "x", "--prompt", "y"}, 2, {"--chat"});
  write("messages.json", Json::array());
  expect_error({"generate", model(), "--chat", scratch_ / "messages.json"}, 3, {"messages.json", "a list of messages"});
  config["chat_template"] = "{% include 'other' %}";
  write("model/tokenizer_config.json", config);
  write("messages.json", Json::array({{{"role", "user"}, {"content", "hi"}}}));
  expect_error({"generate", model(), "--chat", scratch_ / "messages.json"}, 3,
               {"tokenizer_config.json", "line 1", "'include'"});
  config.erase("chat_template");
  write("model/tokenizer_config.json", config);
  expect_error({"generate", model(), "--chat", scratch_ / "messages.json"}, 3, {"no chat template"});
}

TEST_F(Generate, WrongUsage) {
  std::string long_prompt;
  for (int i = 0; i < 65; ++i) long_prompt += "# ";
  expect_error({"generate", model(), "--prompt", long_prompt}, 2, {"64", "shorter prompt"});
  const std::vector<std::vector<std::string>> wrong{
      {"--temperature", "-1"}, {"--temperature", "nan"}, {"--temperature", "warm"}, {"--top-p", "0"},
      {"--top-p", "1.5"},      {"--top-k", "-2"},        {"--max-tokens", "-1"},    {"--max-tokens", "many"},
      {"--threads", "0"},      {"--seed", "-1"},         {"--precision", "fp8"},    {"--precision", "fp64"},
      {"--temprature", "1"}};
  for (const auto& flags : wrong) {
    std::vector<std::string> arguments{"generate", model(), "--prompt", "a"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    expect_error(arguments, 2, {});
  }
  expect_error({"generate", model(), "--prompt", "a", "--precision", "fp8"}, 2, {"--precision", "bf16"});
  expect_error({"generate", model()}, 2, {"--prompt"});
  expect_error({"generate"}, 2, {"model"});
}

}  // namespace
}  // namespace ingot::integration
