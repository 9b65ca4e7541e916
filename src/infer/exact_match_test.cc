#include "infer/exact_match.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace ingot {
namespace {

TEST(ExactMatch, WhiteSpaceDoesNotCountAndCaseOnlyWhereAsked) {
  EXPECT_EQ(normalized_answer("  The \t cat\r\n sat ", false), "The cat sat");
  EXPECT_EQ(normalized_answer("ThE Äx", true), "the Äx");
  EXPECT_EQ(normalized_answer(" \n", false), "");
}

TEST(ExactMatch, ReadsOneAnswerOrSeveral) {
  const std::string path = fmt::format("{}/ingot-prompts-{}.jsonl", fs::temp_directory_path().string(), ::getpid());
  const auto read = [&](const std::string& text) {
    EXPECT_TRUE(write_file_atomic(path, text).ok());
    auto questions = read_prompted_answers(path);
    fs::remove(path);
    return questions;
  };
  const auto questions =
      read("{\"prompt\": \"1+1=\", \"answer\": \"2\"}\n{\"prompt\": \"a\", \"answer\": [\"b\", \"c\"], \"id\": 7}\n");
  ASSERT_TRUE(questions.ok()) << questions.error().message;
  ASSERT_EQ(questions->size(), 2u);
  EXPECT_EQ((*questions)[0].answers, std::vector<std::string>{"2"});
  EXPECT_EQ((*questions)[1].answers, (std::vector<std::string>{"b", "c"}));
  for (const char* wrong : {"{\"prompt\": \"a\"}", "{\"prompt\": 1, \"answer\": \"a\"}",
                            "{\"prompt\": \"a\", \"answer\": []}", "{\"prompt\": \"a\", \"answer\": [1]}", "3", "{"}) {
    const auto refused = read(std::string("{\"prompt\": \"1+1=\", \"answer\": \"2\"}\n") + wrong + "\n");
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().kind, ErrorKind::input);
    EXPECT_NE(refused.error().message.find(".jsonl:2"), std::string::npos) << refused.error().message;
  }
  EXPECT_FALSE(read("\n").ok());
}

}  // namespace
}  // namespace ingot
