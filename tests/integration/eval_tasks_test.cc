// ingot eval --choices, --generate and --compare, from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "infer/generator.h"
#include "model_directory.h"

namespace ingot::integration {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr const char* kLongerModel =
    R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 640, "initializer_range": 0.3})";

class EvalTasks : public ::testing::Test {
 protected:
  void SetUp() override { write_small_model(scratch_.path() / "model", kLongerModel); }
  std::string model() const { return scratch_ / "model"; }
  std::string file(const std::string& name, const std::string& text) const {
    const fs::path path = scratch_.path() / name;
    EXPECT_TRUE(ingot::create_directories(path.parent_path()).ok());
    EXPECT_TRUE(write_file_atomic(path, text).ok());
    return path.string();
  }
  // The whole result: what --out keeps.
  Json result_of(Words arguments) const {
    arguments.insert(arguments.end(), {"--out", scratch_ / "out.json"});
    const Json printed = json_of("eval", std::move(arguments));
    Json kept = Json::parse(read_file(scratch_ / "out.json").value());
    Json without = kept;
    without.erase("documents");
    EXPECT_EQ(printed, without);
    return kept;
  }
  ScratchDirectory scratch_;
};

// Of ids[first…] given those before them: one token at a time, nothing shared, in a generator of its own.
double plain_log_likelihood(const LoadedModel& model, const std::vector<int32_t>& ids, size_t first) {
  const ThreadPool pool(1);
  auto generator = taken(Generator::create(model.model, {.tokens = static_cast<int64_t>(ids.size())}, pool));
  EXPECT_TRUE(load_weights(model.directory, model.model, generator->arena()).ok());
  double sum = 0;
  for (size_t t = 0; t + 1 < ids.size(); ++t) {
    const auto logits = taken(generator->feed(Tokens(&ids[t], 1)));
    if (t + 1 < first) continue;
    double total = 0;
    for (const float x : logits) total += std::exp(static_cast<double>(x));
    sum += static_cast<double>(logits[static_cast<size_t>(ids[t + 1])]) - std::log(total);
  }
  return sum;
}

double plain_choice(const LoadedModel& model, const std::string& context, const std::string& continuation) {
  const auto ids = model.tokenizer->encode(context + continuation, {.add_special = true});
  return plain_log_likelihood(model, ids, model.tokenizer->encode(context, {.add_special = true}).size());
}

const std::string kTest =
                      "the cat?,sat,ran,the mat,a rat,A\nthe rat?,on,the cat sat,\"a, b\",c,C\nand?,the,end,of,it,B\n",
                  kDev = "one?,1,2,3,4,B\ntwo?,5,6,7,8,D\nthree?,5,6,7,8,D\n",
                  kDescription = "The following are multiple choice questions (with answers) about cat lore.\n\n";

TEST_F(EvalTasks, LogLikelihoodsAreThoseOfScoringOneByOne) {
  file("data/dev/cat_lore_dev.csv", kDev);
  const std::string path = file("data/test/cat_lore_test.csv", kTest);
  const Json json = result_of({model(), "--choices", path, "--shots", "2"});
  const std::string shots = kDescription +
                            "one?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer: B\n\n"
                            "two?\nA. 5\nB. 6\nC. 7\nD. 8\nAnswer: D\n\n";
  const Words questions{
      "the cat?\nA. sat\nB. ran\nC. the mat\nD. a rat\nAnswer:",
      "the rat?\nA. on\nB. the cat sat\nC. a, b\nD. c\nAnswer:", "and?\nA. the\nB. end\nC. of\nD. it\nAnswer:"};
  const std::array<size_t, 3> gold{0, 2, 1};
  const LoadedModel loaded = taken(open_model(model()));
  double correct = 0;
  ASSERT_EQ(json["documents"].size(), 3u);
  for (size_t q = 0; q < 3; ++q) {
    std::vector<double> expected;
    for (const char* letter : {" A", " B", " C", " D"})
      expected.push_back(plain_choice(loaded, shots + questions[q], letter));
    const Json& document = json["documents"][q];
    for (size_t c = 0; c < 4; ++c) EXPECT_NEAR(document["log_likelihoods"][c].get<double>(), expected[c], 1e-3);
    const auto chosen = static_cast<size_t>(std::ranges::max_element(expected) - expected.begin());
    EXPECT_EQ(document["chosen"], chosen);
    EXPECT_EQ(document["gold"], gold[q]);
    correct += chosen == gold[q] ? 1 : 0;
  }
  EXPECT_NEAR(json["accuracy"].get<double>(), correct / 3, 1e-12);
  EXPECT_EQ(json["accuracy_normalized"], json["accuracy"]) << "letters have one byte each";
  EXPECT_EQ(json["n"], 3);
  EXPECT_EQ(json["per_subject"]["cat_lore"]["n"], 3);
  EXPECT_EQ(json["settings"]["shots"], 2);
  EXPECT_EQ(json["settings"]["template"]["name"], "mmlu");
  EXPECT_EQ(json["settings"]["window"], 640);
  EXPECT_EQ(json["model"]["fingerprint"].get<std::string>().size(), 16u);
  EXPECT_EQ(json["version"], "0.1.0");
  EXPECT_EQ(json["truncation"]["examples_dropped"], 0);
}

std::string some_tasks() {
  std::string text;
  for (int i = 0; i < 11; ++i) {
    Json task{
        {"context", "the cat " + std::to_string(i * 7919 % 97) + std::string(static_cast<size_t>(i * i), 't')},
        {"choices", Json::array({"sat on the mat", std::to_string(i), "and the rat sat, and sat, and sat again"})},
        {"gold", i % 3}};
    if (i % 4 == 1) task["subject"] = "rats";
    text += task.dump() + "\n";
  }
  return text;
}

TEST_F(EvalTasks, NeitherBatchesNorThreadsChangeMoreThanRounding) {
  const std::string path = file("tasks.jsonl", some_tasks());
  const Json one = result_of({model(), "--choices", path, "--batch-size", "1"});
  EXPECT_EQ(one["n"], 11);
  EXPECT_EQ(one["per_subject"].size(), 2u);
  EXPECT_EQ(one["settings"]["template"]["name"], "plain");
  for (const char* batch : {"2", "4", "64"}) {
    Json other = result_of({model(), "--choices", path, "--batch-size", batch});
    for (size_t q = 0; q < 11; ++q)
      for (size_t c = 0; c < 3; ++c) {
        const double expected = one["documents"][q]["log_likelihoods"][c];
        EXPECT_NEAR(other["documents"][q]["log_likelihoods"][c].get<double>(), expected, 1e-5 * std::abs(expected));
      }
    other["documents"] = one["documents"];
    EXPECT_EQ(other, one) << batch;
  }
  EXPECT_EQ(result_of({model(), "--choices", path, "--batch-size", "1", "--threads", "2"}), one);
}

TEST_F(EvalTasks, EveryChoiceOfATaskIsScoredAsItStands) {
  const std::string path = file("tasks.jsonl", some_tasks());
  const Json json = result_of({model(), "--choices", path});
  const LoadedModel loaded = taken(open_model(model()));
  for (size_t q = 0; q < 11; q += 5) {
    const std::string context = "the cat " + std::to_string(q * 7919 % 97) + std::string(q * q, 't');
    const Words choices{"sat on the mat", std::to_string(q), "and the rat sat, and sat, and sat again"};
    for (size_t c = 0; c < 3; ++c) {
      const double expected = plain_choice(loaded, context, " " + choices[c]);
      EXPECT_NEAR(json["documents"][q]["log_likelihoods"][c].get<double>(), expected, 1e-4 * std::abs(expected));
    }
  }
}

TEST_F(EvalTasks, WhatTheWindowDoesNotHoldIsCountedAndReported) {
  file("data/dev/cat_lore.csv", kDev);
  const std::string path = file("data/test/cat_lore.csv", kTest);
  const Json cut = result_of({model(), "--choices", path, "--shots", "3", "--window", "40"});
  EXPECT_EQ(cut["truncation"]["questions_with_fewer_examples"], 3);
  EXPECT_EQ(cut["truncation"]["examples_dropped"], 9);
  EXPECT_EQ(cut["truncation"]["contexts_cut"], 3);
  const LoadedModel loaded = taken(open_model(model()));
  // The last 40 tokens before the answer's.
  std::vector<int32_t> ids =
      loaded.tokenizer->encode(kDescription + "and?\nA. the\nB. end\nC. of\nD. it\nAnswer: A", {.add_special = true});
  const size_t first = loaded.tokenizer->encode(kDescription + "and?\nA. the\nB. end\nC. of\nD. it\nAnswer:").size();
  const size_t cut_tokens = ids.size() - 41;
  EXPECT_EQ(cut["documents"][2]["tokens_cut"], cut_tokens);
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut_tokens));
  EXPECT_NEAR(cut["documents"][2]["log_likelihoods"][0].get<double>(),
              plain_log_likelihood(loaded, ids, first - cut_tokens), 1e-3);
}

TEST_F(EvalTasks, TheStoriesModelPrefersItsOwnStories) {
  if (!has_stories()) return;
  std::string tasks;
  const std::vector<std::pair<std::string, Words>> cases{
      {"Once upon a time, there was a little girl named", {"Lily.", "table.", "quickly the"}},
      {"Lily went to the", {"park.", "of.", "said."}},
      {"The dog was very", {"happy.", "Lily.", "the."}}};
  for (const auto& [context, choices] : cases)
    tasks += Json{{"query", context}, {"choices", choices}, {"gold", 0}}.dump() + "\n";
  const Json json = result_of({kStories.string(), "--choices", file("stories.jsonl", tasks), "--batch-size", "2"});
  EXPECT_EQ(json["accuracy"], 1);
  EXPECT_EQ(json["accuracy_normalized"], 1);
  const LoadedModel loaded = taken(open_model(kStories));
  for (size_t q = 0; q < cases.size(); ++q)
    for (size_t c = 0; c < 3; ++c) {
      const double expected = plain_choice(loaded, cases[q].first, " " + cases[q].second[c]);
      EXPECT_NEAR(json["documents"][q]["log_likelihoods"][c].get<double>(), expected, 1e-3);
    }
}

TEST_F(EvalTasks, GeneratedAnswersMatchExactlyOrNot) {
  const auto generated = [&](const std::string& prompt) {
    return json_of("generate", {model(), "--prompt", prompt, "--max-tokens", "12", "--temperature", "0"})["text"]
        .get<std::string>();
  };
  const Words prompts{"the cat", "a rat sat", "mat"};
  std::string lines;
  lines += Json{{"prompt", prompts[0]}, {"answer", "  " + generated(prompts[0]) + "\n"}}.dump(
               -1, ' ', false, Json::error_handler_t::replace) +
           "\n";
  lines += Json{{"prompt", prompts[1]}, {"answer", "something else"}}.dump() + "\n";
  lines += Json{{"prompt", prompts[2]}, {"answer", Json::array({"no", generated(prompts[2])})}}.dump(
               -1, ' ', false, Json::error_handler_t::replace) +
           "\n";
  const std::string path = file("prompts.jsonl", lines);
  const Json json = result_of({model(), "--generate", path, "--max-tokens", "12", "--stop", ""});
  EXPECT_EQ(json["n"], 3);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(json["documents"][i]["text"], generated(prompts[i]));
  EXPECT_EQ(json["documents"][1]["correct"], false);
  EXPECT_EQ(json["settings"]["temperature"], 0);
  EXPECT_EQ(json["settings"]["max_tokens"], 12);
  // The text ends before the stop.
  const std::string text = generated(prompts[0]);
  const auto plain = std::find_if(text.begin() + 1, text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  ASSERT_NE(plain, text.end()) << text;
  const std::string stop(1, *plain);
  const Json stopped = result_of({model(), "--generate", path, "--max-tokens", "12", "--stop", stop});
  EXPECT_EQ(stopped["documents"][0]["text"], text.substr(0, text.find(stop)));
  // Sampled texts are the same for the same seed.
  const Words sampled{model(), "--generate", path, "--temperature", "1", "--seed", "3"};
  EXPECT_EQ(result_of(sampled), result_of(sampled));
}

TEST_F(EvalTasks, TwoResultsAreComparedQuestionByQuestion) {
  write_small_model(scratch_.path() / "other",
                    R"({"model_type": "gpt2", "n_embd": 24, "n_layer": 1, "n_head": 3, "n_positions": 640,
                    "initializer_range": 0.3})");
  const std::string path = file("tasks.jsonl", some_tasks()), a = scratch_ / "a.json", b = scratch_ / "b.json";
  const Json of_a = json_of("eval", {model(), "--choices", path, "--out", a}),
             of_b = json_of("eval", {scratch_ / "other", "--choices", path, "--out", b});
  EXPECT_NE(of_a["model"]["fingerprint"], of_b["model"]["fingerprint"]);
  const Json compared = json_of("eval", {"--compare", a, b});
  std::vector<double> differences;
  const Json documents_a = Json::parse(read_file(a).value())["documents"],
             documents_b = Json::parse(read_file(b).value())["documents"];
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 11; ++i) {
    const auto correct = [&](const Json& d) { return d[i]["chosen"] == d[i]["gold"] ? 1.0 : 0.0; };
    differences.push_back(correct(documents_b) - correct(documents_a));
    sum += differences.back();
  }
  for (const double d : differences) squares += (d - sum / 11) * (d - sum / 11);
  const Json& accuracy = compared["accuracy"];
  EXPECT_NEAR(accuracy["difference"].get<double>(), sum / 11, 1e-12);
  EXPECT_NEAR(accuracy["difference"].get<double>(), of_b["accuracy"].get<double>() - of_a["accuracy"].get<double>(),
              1e-12);
  EXPECT_NEAR(accuracy["difference_stderr"].get<double>(), std::sqrt(squares / 10 / 11), 1e-12);
  EXPECT_EQ(accuracy["n"], 11);
  EXPECT_EQ(compared["b"]["model"], of_b["model"]);
  EXPECT_EQ(json_of("eval", {"--compare", a, a})["accuracy"]["difference"], 0);

  json_of("eval", {model(), "--choices", path, "--template", "cloze", "--out", b});
  expect_error({"eval", "--compare", a, b}, 2, {"template.name", "plain", "cloze"});
  json_of("eval", {model(), "--choices", path, "--limit", "2", "--out", b});
  expect_error({"eval", "--compare", a, b}, 2, {"limit is 0 and 2"});
  const std::string text = file("text.txt", "the cat sat on the mat");
  json_of("eval", {model(), "--text", text, "--out", b});
  expect_error({"eval", "--compare", a, b}, 2, {"kind", "choices", "text"});
}

TEST_F(EvalTasks, TextIsComparedDocumentByDocument) {
  write_small_model(scratch_.path() / "other", kByteModel);
  Words arguments{"--text"};
  for (int i = 0; i < 4; ++i)
    arguments.push_back(
        file(std::to_string(i) + ".txt", "the cat sat on " + std::string(static_cast<size_t>(9 * i), 'm')));
  arguments.push_back(file("empty.txt", ""));
  const std::string a = scratch_ / "a.json", b = scratch_ / "b.json";
  const auto evaluate = [&](const std::string& directory, const std::string& out, const std::string& window) {
    Words all{directory};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), {"--window", window, "--out", out});
    return json_of("eval", all);
  };
  const Json of_a = evaluate(model(), a, "32");
  evaluate(scratch_ / "other", b, "32");
  const Json compared = json_of("eval", {"--compare", a, b});
  EXPECT_EQ(compared["loss"]["n"], 4) << "an empty document has no loss";
  const Json documents_a = Json::parse(read_file(a).value())["documents"],
             documents_b = Json::parse(read_file(b).value())["documents"];
  double difference = 0, nats = 0, tokens = 0;
  for (size_t i = 0; i < 4; ++i) {
    difference += documents_b[i]["loss"].get<double>() - documents_a[i]["loss"].get<double>();
    nats += documents_a[i]["loss"].get<double>() * documents_a[i]["tokens"].get<double>();
    tokens += documents_a[i]["tokens"].get<double>();
    // Each document's loss is what it is alone.
    const Json alone = json_of("eval", {model(), "--window", "32", "--text", arguments[i + 1]});
    EXPECT_NEAR(documents_a[i]["loss"].get<double>(), alone["loss"].get<double>(), 1e-6);
  }
  EXPECT_NEAR(compared["loss"]["difference"].get<double>(), difference / 4, 1e-9);
  EXPECT_NEAR(of_a["loss"].get<double>(), nats / tokens, 1e-9);
  evaluate(scratch_ / "other", b, "16");
  expect_error({"eval", "--compare", a, b}, 2, {"window", "32", "16"});
}

TEST_F(EvalTasks, SaysWhatIsWrong) {
  const std::string tasks = file("tasks.jsonl", some_tasks());
  expect_error({"eval", model(), "--choices", file("bad.csv", "q,1,2,3,4,A\nq,1,2,3,4,\n")}, 3,
               {"bad.csv:2", "no answer"});
  expect_error({"eval", model(), "--choices", scratch_ / "none.csv"}, 3, {"none.csv"});
  expect_error({"eval", model(), "--choices", tasks, "--text", tasks}, 2, {"--text"});
  expect_error({"eval", model(), "--choices", tasks, "--shots", "2"}, 2, {"2 shots", "--examples"});
  expect_error({"eval", model(), "--choices", tasks, "--template", "none"}, 2, {"none", "mmlu"});
  expect_error({"eval", model(), "--choices", tasks, "--window", "9999"}, 2, {"9999", "640"});
  expect_error({"eval", model(), "--choices", tasks, "--seed", "2"}, 2, {"--seed", "--generate"});
  expect_error({"eval", model(), "--generate", file("p.jsonl", "{\"prompt\": 3}\n")}, 3, {"p.jsonl:1"});
  expect_error({"eval", model(), "--generate", file("p.jsonl", "{\"prompt\": \"a\", \"answer\": \"b\"}\n"),
                "--max-tokens", "640"},
               2, {"640", "639"});
  expect_error({"eval", "--choices", tasks}, 2, {"no model"});
  expect_error({"eval", "--compare", tasks, tasks}, 3, {"tasks.jsonl"});
  expect_error({"eval", "--compare", file("a.json", "{}"), tasks}, 3, {"a.json", "settings"});
  expect_error({"eval", "--compare", file("a.json", "{\"settings\": {\"kind\": \"text\"}, \"documents\": [3]}"),
                scratch_ / "a.json"},
               3, {"a.json", "document 0"});
}

TEST_F(EvalTasks, PrintsATableForPeople) {
  const Outcome outcome = run_ingot({"eval", model(), "--choices", file("tasks.jsonl", some_tasks())});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* word : {"subject", "rats", "all questions", "mean of subjects", "±"})
    EXPECT_NE(outcome.out.find(word), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace ingot::integration
