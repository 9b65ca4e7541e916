// Multiple-choice files, prompts and accuracies.
#include "infer/choices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "infer/choice_scoring.h"

namespace ingot {
namespace {

class ChoicesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "ingot-choices-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { ASSERT_TRUE(ingot::remove_all(directory_).ok()); }
  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = directory_ / name;
    EXPECT_TRUE(ingot::create_directories(path.parent_path()).ok());
    EXPECT_TRUE(write_file_atomic(path, text).ok());
    return path.string();
  }
  static Result<ChoiceSet> read(std::vector<std::string> paths, int64_t shots = 0, const std::string& examples = "") {
    ChoiceFiles files;
    files.paths = std::move(paths);
    files.shots = shots;
    files.examples = examples;
    return read_choices(files);
  }
  static std::string error_of(const Result<ChoiceSet>& set, ErrorKind kind = ErrorKind::input) {
    EXPECT_FALSE(set.ok());
    if (set.ok()) return {};
    EXPECT_EQ(set.error().kind, kind) << set.error().message;
    return set.error().message;
  }
  fs::path directory_;
};

using Texts = std::vector<std::string>;

TEST_F(ChoicesTest, TheFilesOfTheThreeBenchmarksGiveTheSameQuestions) {
  const std::string mmlu = write("sky_test.csv", "\"What, then?\",red,blue,\"a \"\"b\"\"\",4,B\nTwo,1,2,3,4,D\n"),
                    ceval =
                        write("sky_val.csv",
                              "id,question,A,B,C,D,answer,explanation\n0,\"What, then?\",red,blue,\"a \"\"b\"\"\",4,B,"
                              "because\n1,Two,1,2,3,4,D,\n"),
                    cmmlu = write("sky.csv",
                                  "\xEF\xBB\xBF,Question,A,B,C,D,Answer\r\n0,\"What, then?\",red,blue,\"a "
                                  "\"\"b\"\"\",4,B\r\n1,Two,1,2,3,4,D\r\n"),
                    numbered =
                        write("sky_dev.csv", "0,\"What, then?\",red,blue,\"a \"\"b\"\"\",4,B\n1,Two,1,2,3,4,D\n");
  for (const std::string& path : {mmlu, ceval, cmmlu, numbered}) {
    const auto set = read({path});
    ASSERT_TRUE(set.ok()) << set.error().message;
    ASSERT_EQ(set->questions.size(), 2u) << path;
    EXPECT_EQ(set->questions[0].subject, "sky");
    EXPECT_EQ(set->questions[0].text, "What, then?");
    EXPECT_EQ(set->questions[0].choices, (Texts{"red", "blue", "a \"b\"", "4"}));
    EXPECT_EQ(set->questions[0].gold, 1u);
    EXPECT_EQ(set->questions[1].gold, 3u);
    EXPECT_EQ(fingerprint_of(set->questions), fingerprint_of(read({mmlu})->questions)) << path;
    EXPECT_FALSE(set->is_jsonl);
  }
  EXPECT_EQ(read({mmlu})->questions[1].line, 2);
  EXPECT_EQ(read({ceval})->questions[1].line, 3);
}

TEST_F(ChoicesTest, JsonlHasContextChoicesAndTheIndexOfTheRightOne) {
  const auto set =
      read({write("tasks.jsonl",
                  "{\"context\": \"a\", \"choices\": [\"x\", \"y\", \"z\"], \"gold\": 2}\n\n"
                  "{\"query\": \"b \", \"choices\": [\"x\", \"y\"], \"label\": 0, \"subject\": \"own\"}\n")});
  ASSERT_TRUE(set.ok()) << set.error().message;
  ASSERT_EQ(set->questions.size(), 2u);
  EXPECT_TRUE(set->is_jsonl);
  EXPECT_EQ(set->questions[0].subject, "tasks");
  EXPECT_EQ(set->questions[0].gold, 2u);
  EXPECT_EQ(set->questions[1].subject, "own");
  EXPECT_EQ(set->questions[1].text, "b ");
  EXPECT_EQ(set->questions[1].line, 3);
}

TEST_F(ChoicesTest, AMalformedRowIsNamedByFileAndLine) {
  const auto message = [&](const std::string& name, const std::string& text) {
    return error_of(read({write(name, text)}));
  };
  const auto has = [](const std::string& text, const Texts& parts) {
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  };
  has(message("a.csv", "q,1,2,3,4,A\nq,1,2,3,A\n"), {"a.csv:2", "5 fields", "expected 6"});
  has(message("a.csv", "q,1,2\n"), {"a.csv:1", "3 fields", "header"});
  has(message("a.csv", "q,1,2,3,4,E\n"), {"a.csv:1", "\"E\"", "A to D"});
  has(message("a.csv", "question,A,B,C,D,answer\n\n\"q\nq\",1,2,3,4,A\nq,1,2,3,4,\n"), {"a.csv:5", "no answer", "val"});
  has(message("a.csv", "q,\"1,2,3,4,A\n"), {"a.csv:1", "never closed"});
  has(message("a.csv", "question,A,B,C,D,answer\n"), {"a.csv", "no question"});
  has(message("a.jsonl", "{\"context\": \"a\", \"choices\": [\"x\", \"y\"], \"gold\": 1}\n{\n"), {"a.jsonl:2"});
  has(message("a.jsonl", "[1]\n"), {"a.jsonl:1", "array", "object"});
  has(message("a.jsonl", "{\"choices\": [\"x\", \"y\"], \"gold\": 1}"), {"a.jsonl:1", "context, query"});
  has(message("a.jsonl", "{\"context\": \"a\", \"query\": \"a\", \"choices\": [\"x\", \"y\"], \"gold\": 1}"),
      {"a.jsonl:1", "more than one"});
  has(message("a.jsonl", "{\"context\": \"a\", \"choices\": [\"x\"], \"gold\": 0}"), {"a.jsonl:1", "array of 1"});
  has(message("a.jsonl", "{\"context\": \"a\", \"choices\": [\"x\", 3], \"gold\": 0}"), {"a.jsonl:1", "number"});
  for (const char* gold : {"2", "-1", "1.5", "\"A\"", "null"})
    has(message("a.jsonl", fmt::format("{{\"context\": \"a\", \"choices\": [\"x\", \"y\"], \"gold\": {}}}", gold)),
        {"a.jsonl:1", gold, "0 to 1"});
  has(message("a.txt", "question"), {"a.txt", ".csv or .jsonl"});
  has(error_of(read({(directory_ / "nowhere").string()})), {"nowhere"});
}

TEST_F(ChoicesTest, ExamplesComeFromDevBesideTheQuestions) {
  write("data/test/sky_test.csv", "q1,1,2,3,4,A\nq2,1,2,3,4,B\n");
  write("data/test/sea_test.csv", "s1,1,2,3,4,C\n");
  write("data/dev/sky_dev.csv", "e1,1,2,3,4,A\ne2,1,2,3,4,B\ne3,1,2,3,4,B\n");
  write("data/dev/sea_dev.csv", "f1,1,2,3,4,C\nf2,1,2,3,4,C\n");
  const std::string test = (directory_ / "data/test").string();
  const auto set = read({test}, 2);
  ASSERT_TRUE(set.ok()) << set.error().message;
  ASSERT_EQ(set->questions.size(), 3u);
  EXPECT_EQ(set->questions[0].subject, "sea");
  ASSERT_EQ(set->examples_of(set->questions[0]).size(), 2u);
  EXPECT_EQ(set->examples_of(set->questions[0])[1].text, "f2");
  EXPECT_EQ(set->examples_of(set->questions[2])[0].text, "e1");
  EXPECT_NE(error_of(read({test}, 3), ErrorKind::usage).find("sea has 2 examples"), std::string::npos);
  // One file serves every subject.
  const auto shared = read({test}, 1, write("other.csv", "o1,1,2,3,4,A\n"));
  EXPECT_EQ(shared->examples_of(shared->questions[0])[0].text, "o1");
  EXPECT_EQ(shared->examples_of(shared->questions[2])[0].text, "o1");
  // Both splits at once would count questions twice.
  EXPECT_NE(error_of(read({(directory_ / "data").string()})).find("in two files"), std::string::npos);
  EXPECT_NE(error_of(read({write("alone.csv", "q,1,2,3,4,A\n")}, 1), ErrorKind::usage).find("--examples"),
            std::string::npos);
}

TEST_F(ChoicesTest, ASubjectNamesAFileOrSelects) {
  ChoiceFiles files;
  files.paths = {write("any.csv", "q1,1,2,3,4,A\nq2,1,2,3,4,B\n")};
  files.subject = "sky";
  files.limit = 1;
  const auto named = read_choices(files);
  ASSERT_TRUE(named.ok());
  ASSERT_EQ(named->questions.size(), 1u);
  EXPECT_EQ(named->questions[0].subject, "sky");
  write("many/sky_test.csv", "s,1,2,3,4,A\n");
  write("many/sea_test.csv", "t,1,2,3,4,A\n");
  files.paths = {(directory_ / "many").string()};
  const auto selected = read_choices(files);
  ASSERT_TRUE(selected.ok());
  ASSERT_EQ(selected->questions.size(), 1u);
  EXPECT_EQ(selected->questions[0].text, "s");
  files.subject = "earth";
  EXPECT_NE(error_of(read_choices(files)).find("earth"), std::string::npos);
}

Question a_question(const std::string& text, Texts choices, size_t gold) {
  Question question;
  question.subject = "high_school_physics";
  question.text = text;
  question.choices = std::move(choices);
  question.gold = gold;
  question.file = "q.csv";
  question.line = 3;
  return question;
}

TEST(ChoicePrompt, IsTheBenchmarksOwn) {
  const Question question = a_question(" What falls? ", {"up", "down", "left", "right"}, 1),
                 example = a_question("One?", {"1", "2", "3", "4"}, 0);
  const ChoicePrompter mmlu = ChoicePrompter::create("mmlu").value();
  EXPECT_EQ(mmlu.context(question, {&example, 1}),
            "The following are multiple choice questions (with answers) about high school physics.\n\n"
            "One?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer: A\n\n"
            "What falls?\nA. up\nB. down\nC. left\nD. right\nAnswer:");
  EXPECT_EQ(mmlu.choice(question, 2), "C");
  EXPECT_EQ(mmlu.delimiter("Answer:", "C"), " ");
  const ChoicePrompter ceval = ChoicePrompter::create("ceval").value();
  EXPECT_EQ(ceval.context(question, {}),
            "以下是中国关于high school physics的单项选择题，请选出其中的正确答案。\n\n"
            "What falls?\nA. up\nB. down\nC. left\nD. right\n答案：");
  const ChoicePrompter cmmlu = ChoicePrompter::create("cmmlu").value();
  EXPECT_TRUE(cmmlu.context(question, {}).starts_with("以下是关于high school physics的单项选择题，请直接给出正确"));
}

TEST(ChoicePrompt, PlainIsTheContextAndTheChoiceAsTheyStand) {
  const Question question = a_question("It fell ", {"up", "down"}, 1), example = a_question("It rose", {"up", "in"}, 0);
  const ChoicePrompter plain = ChoicePrompter::create("plain").value();
  EXPECT_EQ(plain.context(question, {&example, 1}), "It rose up\n\nIt fell ");
  EXPECT_EQ(plain.delimiter("It fell ", "down"), "");
  EXPECT_EQ(plain.delimiter("It fell", " down"), "");
  EXPECT_EQ(plain.delimiter("", "down"), "");
  EXPECT_EQ(plain.delimiter("It fell", "down"), " ");
  const ChoicePrompter cloze = ChoicePrompter::create("cloze").value();
  EXPECT_EQ(cloze.context(question, {}), "Question: It fell\nAnswer:");
  EXPECT_EQ(cloze.choice(question, 1), "down");
  const auto unknown = ChoicePrompter::create("mmmlu");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::usage);
  EXPECT_NE(unknown.error().message.find("cmmlu"), std::string::npos);
}

Tokenizer byte_tokenizer() {
  const ThreadPool pool(1);
  BpeTrainOptions options;
  options.vocab_size = 257;  // <|endoftext|> and the bytes
  const std::vector<std::string_view> documents{"text"};
  return train_bpe(documents, options, pool).value();
}

TEST(EncodeQuestion, SplitsContextAndChoicesWhereTheContextsTokensEnd) {
  const Tokenizer tokenizer = byte_tokenizer();
  const ChoicePrompter plain = ChoicePrompter::create("plain").value();
  const Question question = a_question("ab ", {"cd", "cef"}, 0);
  const EncodedQuestion encoded = encode_question(plain, tokenizer, question, {}, 100).value();
  EXPECT_EQ(tokenizer.decode(encoded.group.prefix), "a");
  ASSERT_EQ(encoded.group.endings.size(), 2u);
  EXPECT_EQ(tokenizer.decode(encoded.group.endings[0].ids), "b cd");
  EXPECT_EQ(tokenizer.decode(encoded.group.endings[1].ids), "b cef");
  EXPECT_EQ(encoded.group.endings[0].first, 1) << "the space is predicted with the choice";
  EXPECT_EQ(encoded.choice_bytes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(encoded.tokens_cut, 0);
  // Without a context, the text starts from the end of a text before it.
  const EncodedQuestion alone = encode_question(plain, tokenizer, a_question("", {"cd", "ef"}, 0), {}, 100).value();
  EXPECT_EQ(alone.group.endings[0].ids.front(), *tokenizer.eos_id());
  EXPECT_EQ(alone.group.endings[0].ids.size(), 3u);
}

TEST(EncodeQuestion, WhatDoesNotFitLosesExamplesFirstAndThenItsLeft) {
  const Tokenizer tokenizer = byte_tokenizer();
  const ChoicePrompter plain = ChoicePrompter::create("plain").value();
  const Question question = a_question("0123456789", {"ab", "abcd"}, 0);
  const std::vector<Question> examples{a_question("e1", {"x", "y"}, 0), a_question("e2", {"x", "y"}, 1)};
  const auto encode = [&](int64_t window) { return encode_question(plain, tokenizer, question, examples, window); };
  // "e1 x\n\n" and "e2 y\n\n" are 6 bytes each; question, space and the longer choice are 15, the last one not read.
  EXPECT_EQ(encode(26)->examples_dropped, 0);
  EXPECT_EQ(encode(26)->group.tokens(), 26);
  const EncodedQuestion fewer = encode(25).value();
  EXPECT_EQ(fewer.examples_dropped, 1);
  EXPECT_EQ(tokenizer.decode(fewer.group.prefix), "e1 x\n\n012345678");
  EXPECT_EQ(encode(19)->examples_dropped, 2);
  EXPECT_EQ(encode(14)->tokens_cut, 0);
  const EncodedQuestion cut = encode(11).value();
  EXPECT_EQ(cut.tokens_cut, 3);
  EXPECT_EQ(tokenizer.decode(cut.group.prefix), "345678");
  EXPECT_EQ(tokenizer.decode(cut.group.endings[0].ids), "9 ab") << "every choice sees the same context";
  EXPECT_EQ(cut.group.tokens(), 11);
  EXPECT_EQ(encode(5)->tokens_cut, 9);
  const auto refused = encode(4);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::input);
  EXPECT_NE(refused.error().message.find("q.csv:3"), std::string::npos);
  const auto empty = encode_question(plain, tokenizer, a_question("a", {"b", " "}, 0), {}, 100);
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.error().message.find("choice 2"), std::string::npos);
}

TEST(Accuracy, NormalisedByBytesAnotherChoiceMayWin) {
  const Question question = a_question("q", {"ab", "abcdefgh"}, 1);
  EncodedQuestion encoded;
  encoded.choice_bytes = {2, 8};
  const ChoiceScore score = judge(question, encoded, {-3.0, -8.0});  // a byte: -1.5 and -1
  EXPECT_EQ(score.chosen, 0u);
  EXPECT_FALSE(score.correct);
  EXPECT_EQ(score.chosen_normalized, 1u);
  EXPECT_TRUE(score.correct_normalized);
}

TEST(Accuracy, CountsQuestionsOverallAndSubjectsInTheirMean) {
  std::vector<Question> questions;
  std::vector<ChoiceScore> scores;
  // a: 1 0 1 1 (0.75 ± 0.25), b: 1 0 (0.5 ± 0.5); together 4 of 6: s² = 4/15, error = sqrt(4/15 / 6).
  for (const auto& [subject, correct] : std::vector<std::pair<std::string, bool>>{
           {"a", true}, {"b", true}, {"a", false}, {"a", true}, {"b", false}, {"a", true}}) {
    questions.push_back(a_question("q", {"x", "y"}, 0));
    questions.back().subject = subject;
    scores.emplace_back();
    scores.back().correct = correct;
    scores.back().correct_normalized = true;
  }
  scores[0].tokens_cut = 5;
  scores[1].examples_dropped = 2;
  scores[2].examples_dropped = 1;
  const ChoiceSummary summary = summarize(questions, scores);
  EXPECT_NEAR(summary.overall.plain.mean, 4.0 / 6, 1e-12);
  EXPECT_NEAR(summary.overall.plain.standard_error, 0.210819, 1e-6);
  EXPECT_EQ(summary.overall.plain.n, 6);
  EXPECT_EQ(summary.overall.normalized.mean, 1);
  EXPECT_NEAR(summary.by_subject.plain.mean, 0.625, 1e-12);
  EXPECT_NEAR(summary.by_subject.plain.standard_error, std::sqrt(0.25 * 0.25 + 0.5 * 0.5) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(summary.per_subject.at("a").plain.mean, 0.75);
  EXPECT_DOUBLE_EQ(summary.per_subject.at("b").plain.standard_error, 0.5);
  EXPECT_EQ(summary.contexts_cut, 1);
  EXPECT_EQ(summary.tokens_cut, 5);
  EXPECT_EQ(summary.questions_with_fewer_examples, 2);
  EXPECT_EQ(summary.examples_dropped, 3);
}

}  // namespace
}  // namespace ingot
