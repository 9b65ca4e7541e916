#include "infer/choice_prompt.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace ingot {
namespace {

constexpr std::string_view kLettered = "{question}\n{options}\nAnswer:";
constexpr std::string_view kLetteredChinese = "{question}\n{options}\n答案：";

// As the LM evaluation harness has them (lm_eval/tasks/mmlu, ceval, cmmlu), which are the benchmarks' own.
constexpr std::array<ChoiceTemplate, 5> kTemplates{{
    {"mmlu", "The following are multiple choice questions (with answers) about {subject}.\n\n", kLettered,
     "{letter}. {text}", "{letter}", " ", "\n\n"},
    {"ceval", "以下是中国关于{subject}的单项选择题，请选出其中的正确答案。\n\n", kLetteredChinese, "{letter}. {text}",
     "{letter}", " ", "\n\n"},
    {"cmmlu", "以下是关于{subject}的单项选择题，请直接给出正确答案的选项。\n\n", kLetteredChinese, "{letter}. {text}",
     "{letter}", " ", "\n\n"},
    {"cloze", "", "Question: {question}\nAnswer:", "", "{text}", " ", "\n\n"},
    {"plain", "", "{context}", "", "{text}", " ", "\n\n"},
}};

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string_view stripped(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Appends the template's text with the value that `value_of` gives for each name.
template <class ValueOf>
void render(const TextTemplate& text, ValueOf value_of, std::string& out) {
  const Status done = text.render(
      [&](size_t key, std::string& to) {
        to += value_of(std::string_view(text.keys()[key]));
        return Status();
      },
      out);
  INGOT_CHECK(done.ok(), "a template of our own: {}", done.error().message);
}

}  // namespace

std::span<const ChoiceTemplate> list_choice_templates() {
  return kTemplates;
}

Result<ChoicePrompter> ChoicePrompter::create(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ChoiceTemplate& format : kTemplates) {
    names.push_back(format.name);
    if (format.name != name) continue;
    ChoicePrompter prompter;
    prompter.format_ = &format;
    INGOT_ASSIGN(prompter.description_, TextTemplate::parse(format.description));
    INGOT_ASSIGN(prompter.question_, TextTemplate::parse(format.question));
    INGOT_ASSIGN(prompter.option_, TextTemplate::parse(format.option));
    INGOT_ASSIGN(prompter.choice_, TextTemplate::parse(format.choice));
    return prompter;
  }
  return usage_error("there is no template \"{}\"; there are {}", name, fmt::join(names, ", "));
}

std::string ChoicePrompter::choice_text(const TextTemplate& text, const Question& question, size_t index) const {
  std::string out;
  render(
      text,
      [&](std::string_view key) {
        return key == "letter" ? std::string(1, static_cast<char>('A' + index)) : question.choices[index];
      },
      out);
  return out;
}

void ChoicePrompter::append_question(const TextTemplate& text, const Question& question, std::string& out) const {
  const auto value_of = [&](std::string_view key) {
    std::string value;
    if (key == "context") return question.text;
    if (key == "question") return std::string(stripped(question.text));
    if (key == "subject") {
      value = question.subject;
      std::ranges::replace(value, '_', ' ');
      return value;
    }
    for (size_t i = 0; i < question.choices.size(); ++i) {
      if (i > 0) value += '\n';
      value += choice_text(option_, question, i);
    }
    return value;
  };
  render(text, value_of, out);
}

std::string ChoicePrompter::choice(const Question& question, size_t index) const {
  return choice_text(choice_, question, index);
}

std::string_view ChoicePrompter::delimiter(std::string_view context, std::string_view choice) const {
  const bool is_apart = context.empty() || is_space(context.back()) || choice.empty() || is_space(choice.front());
  return is_apart ? std::string_view() : format_->delimiter;
}

std::string ChoicePrompter::context(const Question& question, std::span<const Question> examples) const {
  std::string text;
  append_question(description_, question, text);
  for (const Question& example : examples) {
    append_question(question_, example, text);
    const std::string answer = choice(example, example.gold);
    text += delimiter(text, answer);
    text += answer;
    text += format_->separator;
  }
  append_question(question_, question, text);
  return text;
}

}  // namespace ingot
