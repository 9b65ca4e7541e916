// ingot eval --choices and --generate.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <iostream>

#include "base/clock.h"
#include "eval.h"
#include "train/progress.h"

namespace ingot::cli {
namespace {

// Questions done, rate and time left on stderr: one line redrawn on a terminal, one every ten seconds elsewhere.
class QuestionProgress {
 public:
  ~QuestionProgress() {
    if (is_terminal_ && shown_) std::cerr << '\n';
  }
  void show(int64_t done, int64_t total) {
    const auto now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(is_terminal_ ? 200 : 10000)) return;
    const double rate = static_cast<double>(done) / seconds_since(start_);
    std::cerr << (is_terminal_ ? "\r\033[K" : "")
              << fmt::format("{} of {} questions, {:.2f} a second, {} left", done, total, rate,
                             duration_text(static_cast<double>(total - done) / rate))
              << (is_terminal_ ? "" : "\n") << std::flush;
    last_ = now;
    shown_ = true;
  }

 private:
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

void put_accuracy(nlohmann::ordered_json& to, const Accuracy& accuracy) {
  put_mean(to, "accuracy", accuracy.plain);
  put_mean(to, "accuracy_normalized", accuracy.normalized);
  to["n"] = accuracy.plain.n;
}

nlohmann::ordered_json template_json(const ChoiceTemplate& format) {
  return {{"name", format.name},          {"description", format.description}, {"question", format.question},
          {"option", format.option},      {"choice", format.choice},           {"delimiter", format.delimiter},
          {"separator", format.separator}};
}

// The examples of all subjects, in order: a part of the settings.
std::string examples_fingerprint(const ChoiceSet& set) {
  std::vector<Question> all;
  for (const auto& [subject, examples] : set.examples) all.insert(all.end(), examples.begin(), examples.end());
  return hash_text(fingerprint_of(all));
}

nlohmann::ordered_json choice_settings(const EvalFlags& flags, const ChoiceSet& set, const ChoicePrompter& prompter,
                                       int64_t window) {
  return {{"kind", "choices"},
          {"template", template_json(prompter.format())},
          {"shots", flags.choices.shots},
          {"subject", flags.choices.subject.empty() ? nullptr : nlohmann::ordered_json(flags.choices.subject)},
          {"limit", flags.choices.limit},
          {"window", window},
          {"precision", name_of(flags.precision)},
          {"examples", flags.choices.shots > 0 ? nlohmann::ordered_json(examples_fingerprint(set)) : nullptr},
          {"questions", hash_text(fingerprint_of(set.questions))},
          {"accuracy", "the choice with the greatest log-likelihood"},
          {"accuracy_normalized", "the choice with the greatest log-likelihood per byte of the choice"}};
}

// "0.2500 ± 0.0433"; without an error where it is not known.
std::string with_error(const Mean& mean) {
  if (std::isnan(mean.standard_error)) return fmt::format("{:.4f}", mean.mean);
  return fmt::format("{:.4f} ± {:.4f}", mean.mean, mean.standard_error);
}

std::string accuracy_line(const std::string& name, const Accuracy& accuracy) {
  return fmt::format("{:<40} {:>6}  {:<15}  {}\n", name, accuracy.plain.n, with_error(accuracy.plain),
                     with_error(accuracy.normalized));
}

std::string choice_table(const ChoiceSummary& summary) {
  std::string text = fmt::format("{:<40} {:>6}  {:<15}  {}\n", "subject", "n", "accuracy", "normalized");
  for (const auto& [subject, accuracy] : summary.per_subject) text += accuracy_line(subject, accuracy);
  text += accuracy_line("all questions", summary.overall);
  if (summary.per_subject.size() > 1) text += accuracy_line("mean of subjects", summary.by_subject);
  if (summary.examples_dropped > 0)
    text += fmt::format("{} questions with fewer examples than asked for: {} did not fit the window\n",
                        summary.questions_with_fewer_examples, summary.examples_dropped);
  if (summary.contexts_cut > 0)
    text +=
        fmt::format("{} contexts cut on the left, by {} tokens together\n", summary.contexts_cut, summary.tokens_cut);
  return text;
}

nlohmann::ordered_json question_json(const Question& question, const ChoiceScore& score) {
  return {{"subject", question.subject},
          {"place", question.place()},
          {"gold", question.gold},
          {"chosen", score.chosen},
          {"chosen_normalized", score.chosen_normalized},
          {"log_likelihoods", score.log_likelihoods},
          {"examples_dropped", score.examples_dropped},
          {"tokens_cut", score.tokens_cut}};
}

}  // namespace

Result<EvalResult> eval_choices(const EvalFlags& flags, const LoadedModel& model, const ThreadPool& pool) {
  INGOT_ASSIGN(const ChoiceSet set, read_choices(flags.choices));
  const std::string by_kind = set.is_jsonl ? "plain" : "mmlu";
  INGOT_ASSIGN(const ChoicePrompter prompter,
               ChoicePrompter::create(flags.template_name.empty() ? by_kind : flags.template_name));
  INGOT_ASSIGN(const ScoringOptions scoring, resolve_scoring(model.model, {.window = flags.scoring.window}));
  QuestionProgress progress;
  ChoiceOptions options;
  options.window = scoring.window;
  options.batch_size = flags.batch_size;
  options.precision.dtype = dtype_of(flags.precision);
  options.progress = [&](int64_t done, int64_t total) { progress.show(done, total); };
  INGOT_ASSIGN(const std::vector<ChoiceScore> scores, score_choices(model, set, prompter, options, pool));
  const ChoiceSummary summary = summarize(set.questions, scores);

  EvalResult result;
  put_accuracy(result.figures, summary.overall);
  nlohmann::ordered_json &macro = result.figures["macro"], &subjects = result.figures["per_subject"];
  put_accuracy(macro, summary.by_subject);
  macro["n"] = summary.per_subject.size();
  for (const auto& [subject, accuracy] : summary.per_subject) put_accuracy(subjects[subject], accuracy);
  result.figures["truncation"] = {{"questions_with_fewer_examples", summary.questions_with_fewer_examples},
                                  {"examples_dropped", summary.examples_dropped},
                                  {"contexts_cut", summary.contexts_cut},
                                  {"tokens_cut", summary.tokens_cut}};
  result.settings = choice_settings(flags, set, prompter, scoring.window);
  result.documents = nlohmann::ordered_json::array();
  for (size_t i = 0; i < scores.size(); ++i) result.documents.push_back(question_json(set.questions[i], scores[i]));
  result.text = choice_table(summary);
  return result;
}

Result<EvalResult> eval_generation(const EvalFlags& flags, const LoadedModel& model, const ThreadPool& pool) {
  INGOT_ASSIGN(const std::vector<PromptedAnswer> questions, read_prompted_answers(flags.prompts));
  QuestionProgress progress;
  ExactMatchOptions options = flags.generation;
  options.precision.dtype = dtype_of(flags.precision);
  options.progress = [&](int64_t done, int64_t total) { progress.show(done, total); };
  INGOT_ASSIGN(const std::vector<ExactMatch> matches, score_exact_match(model, questions, options, pool));

  EvalResult result;
  std::vector<double> correct;
  int64_t prompts_cut = 0, tokens_cut = 0;
  result.documents = nlohmann::ordered_json::array();
  for (const ExactMatch& match : matches) {
    correct.push_back(match.correct ? 1 : 0);
    prompts_cut += match.tokens_cut > 0 ? 1 : 0;
    tokens_cut += match.tokens_cut;
    result.documents.push_back({{"text", match.text}, {"correct", match.correct}, {"tokens_cut", match.tokens_cut}});
  }
  const Mean mean = mean_of(correct);
  put_mean(result.figures, "exact_match", mean);
  result.figures["n"] = mean.n;
  result.figures["truncation"] = {{"prompts_cut", prompts_cut}, {"tokens_cut", tokens_cut}};
  const SamplingOptions& sampling = options.sampling;
  result.settings = {{"kind", "generate"},
                     {"template", "{prompt}"},
                     {"normalization", "white space at the ends removed, each run of it inside one space"},
                     {"ignore_case", options.ignore_case},
                     {"stop", options.stop},
                     {"max_tokens", options.max_tokens},
                     {"temperature", sampling.temperature},
                     {"top_k", sampling.top_k},
                     {"top_p", sampling.top_p},
                     {"seed", sampling.seed},
                     {"precision", name_of(flags.precision)}};
  result.text = fmt::format("exact match    {}\nn              {}\n", with_error(mean), mean.n);
  if (prompts_cut > 0)
    result.text += fmt::format("{} prompts cut on the left, by {} tokens together\n", prompts_cut, tokens_cut);
  return result;
}

}  // namespace ingot::cli
