// How a multiple-choice question becomes text: the templates of the benchmarks.
#pragma once

#include "data/text_template.h"
#include "infer/choices.h"

namespace ingot {

// In description and question stand {subject} (with spaces for underscores), {question} (white space at its ends taken
// off), {context} (the same verbatim) and {options} (each choice by `option`, a line each); in option and choice
// {letter} and {text}.
struct ChoiceTemplate {
  std::string_view name;
  std::string_view description;  // once, before everything
  std::string_view question;
  std::string_view option;
  std::string_view choice;     // what is scored
  std::string_view delimiter;  // between question and choice, unless one of them has white space there or there is no
                               // context
  std::string_view separator;  // behind an example
};

std::span<const ChoiceTemplate> list_choice_templates();

// Immutable.
class ChoicePrompter {
 public:
  // Error (usage): there is no such template; the message names all.
  static Result<ChoicePrompter> create(std::string_view name);
  const ChoiceTemplate& format() const { return *format_; }

  // Description, examples with their answers, and the question.
  std::string context(const Question& question, std::span<const Question> examples) const;
  // The choice as it is scored, without what stands between.
  std::string choice(const Question& question, size_t index) const;
  std::string_view delimiter(std::string_view context, std::string_view choice) const;

 private:
  ChoicePrompter() = default;
  std::string choice_text(const TextTemplate& text, const Question& question, size_t index) const;
  void append_question(const TextTemplate& text, const Question& question, std::string& out) const;

  const ChoiceTemplate* format_ = nullptr;
  TextTemplate description_, question_, option_, choice_;
};

}  // namespace ingot
