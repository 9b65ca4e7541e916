#include "infer/choice_scoring.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "train/model_directory.h"

namespace ingot {
namespace {

// A context and its choices as token sequences, each with the number of tokens that belong to the context.
struct Sequences {
  std::vector<std::vector<int32_t>> ids;
  std::vector<int64_t> first;
  int64_t longest = 0;        // tokens that the model reads: all but the last
  int64_t kept_in_front = 0;  // of what the post-processor puts there
};

Result<std::vector<int32_t>> tokens_in_front(const Tokenizer& tokenizer, bool context_is_empty,
                                             const Question& question) {
  std::vector<int32_t> front = tokenizer.specials_before();
  if (!front.empty() || !context_is_empty) return front;
  // Something must stand before the first token that is predicted.
  if (tokenizer.bos_id()) return std::vector<int32_t>{*tokenizer.bos_id()};
  if (tokenizer.eos_id()) return std::vector<int32_t>{*tokenizer.eos_id()};
  return input_error("{}: the context is empty, and the tokenizer has no BOS and no EOS to start from; give a context",
                     question.place());
}

Result<Sequences> encode_pairs(const ChoicePrompter& prompter, const Tokenizer& tokenizer, const Question& question,
                               const std::string& context) {
  // White space at the context's end belongs to the choices: tokenizers put it before a word.
  const size_t end = context.find_last_not_of(" \t\r\n") + 1;  // npos + 1 = 0
  const std::string_view head = std::string_view(context).substr(0, end);
  INGOT_ASSIGN(std::vector<int32_t> before, tokens_in_front(tokenizer, head.empty(), question));
  Sequences result;
  result.kept_in_front = static_cast<int64_t>(before.size());
  std::vector<int32_t> alone = before;
  tokenizer.encode(head, alone);
  for (size_t i = 0; i < question.choices.size(); ++i) {
    const std::string choice = prompter.choice(question, i);
    if (choice.find_first_not_of(" \t\r\n") == std::string::npos)
      return input_error("{}: choice {} has no text to score", question.place(), i + 1);
    std::string whole = context;
    whole += prompter.delimiter(context, choice);
    whole += choice;
    std::vector<int32_t> ids = before;
    tokenizer.encode(whole, ids);
    const auto length = static_cast<int64_t>(ids.size());
    // A token across the edge, or none for the choice: at least the last token is predicted.
    const int64_t first = std::clamp<int64_t>(static_cast<int64_t>(alone.size()), 1, std::max<int64_t>(1, length - 1));
    if (length < 2) return input_error("{}: choice {} has no token to predict", question.place(), i + 1);
    result.longest = std::max(result.longest, length - 1);
    result.first.push_back(first);
    result.ids.push_back(std::move(ids));
  }
  return result;
}

// Takes `tokens` from the left of every context, behind what the post-processor puts there.
Status cut_left(Sequences& sequences, int64_t tokens, int64_t window, const Question& question) {
  const int64_t begin = sequences.kept_in_front;
  const int64_t room = *std::ranges::min_element(sequences.first) - std::max<int64_t>(1, begin);
  if (tokens > room)
    return input_error("{}: a choice alone is longer than the window of {} tokens; use a model with a longer context",
                       question.place(), window);
  for (size_t i = 0; i < sequences.ids.size(); ++i) {
    auto& ids = sequences.ids[i];
    ids.erase(ids.begin() + begin, ids.begin() + begin + tokens);
    sequences.first[i] -= tokens;
  }
  sequences.longest -= tokens;
  return {};
}

Result<std::vector<EncodedQuestion>> encode_all(const ChoicePrompter& prompter, const Tokenizer& tokenizer,
                                                const ChoiceSet& set, int64_t window, const ThreadPool& pool) {
  const auto count = static_cast<int64_t>(set.questions.size());
  std::vector<std::optional<Result<EncodedQuestion>>> results(set.questions.size());
  pool.run(count, [&](int64_t i, int) {
    const Question& question = set.questions[static_cast<size_t>(i)];
    results[static_cast<size_t>(i)].emplace(
        encode_question(prompter, tokenizer, question, set.examples_of(question), window));
  });
  std::vector<EncodedQuestion> encoded;
  for (auto& result : results) {
    INGOT_ASSIGN(EncodedQuestion question, std::move(*result));
    encoded.push_back(std::move(question));
  }
  return encoded;
}

// Subject by subject, so that their worked examples stay in the cache, and short ones beside short ones.
std::vector<size_t> scoring_order(std::span<const Question> questions, std::span<const EncodedQuestion> encoded) {
  std::map<std::string_view, size_t> subjects;
  for (const Question& question : questions) subjects.emplace(question.subject, subjects.size());
  std::vector<size_t> order(questions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, {}, [&](size_t i) { return std::pair(subjects.at(questions[i].subject), encoded[i].group.tokens()); });
  return order;
}

Accuracy accuracy_of(std::span<const ChoiceScore* const> scores) {
  std::vector<double> plain, normalized;
  for (const ChoiceScore* score : scores) {
    plain.push_back(score->correct ? 1 : 0);
    normalized.push_back(score->correct_normalized ? 1 : 0);
  }
  return {mean_of(plain), mean_of(normalized)};
}

}  // namespace

Result<EncodedQuestion> encode_question(const ChoicePrompter& prompter, const Tokenizer& tokenizer,
                                        const Question& question, std::span<const Question> examples, int64_t window) {
  EncodedQuestion encoded;
  for (size_t i = 0; i < question.choices.size(); ++i)
    encoded.choice_bytes.push_back(static_cast<int64_t>(prompter.choice(question, i).size()));
  for (;;) {
    INGOT_ASSIGN(Sequences sequences,
                 encode_pairs(prompter, tokenizer, question, prompter.context(question, examples)));
    if (sequences.longest > window && !examples.empty()) {
      examples = examples.first(examples.size() - 1);
      ++encoded.examples_dropped;
      continue;
    }
    encoded.tokens_cut = std::max<int64_t>(0, sequences.longest - window);
    if (encoded.tokens_cut > 0) INGOT_TRY(cut_left(sequences, encoded.tokens_cut, window, question));
    encoded.group = group_of(sequences.ids, sequences.first);
    return encoded;
  }
}

ChoiceScore judge(const Question& question, const EncodedQuestion& encoded, std::vector<double> log_likelihoods) {
  ChoiceScore score;
  std::vector<double> normalized = log_likelihoods;
  for (size_t i = 0; i < normalized.size(); ++i) normalized[i] /= static_cast<double>(encoded.choice_bytes[i]);
  score.chosen = index_of_greatest(log_likelihoods);
  score.chosen_normalized = index_of_greatest(normalized);
  score.correct = score.chosen == question.gold;
  score.correct_normalized = score.chosen_normalized == question.gold;
  score.log_likelihoods = std::move(log_likelihoods);
  score.examples_dropped = encoded.examples_dropped;
  score.tokens_cut = encoded.tokens_cut;
  return score;
}

Result<std::vector<ChoiceScore>> score_choices(const LoadedModel& model, const ChoiceSet& set,
                                               const ChoicePrompter& prompter, const ChoiceOptions& options,
                                               const ThreadPool& pool) {
  INGOT_ASSIGN(const Tokenizer tokenizer, tokenizer_of(model));
  INGOT_ASSIGN(const ScoringOptions scoring, resolve_scoring(model.model, {.window = options.window}));
  INGOT_ASSIGN(const std::vector<EncodedQuestion> encoded, encode_all(prompter, tokenizer, set, scoring.window, pool));
  int64_t longest = 1;
  for (const EncodedQuestion& question : encoded) longest = std::max(longest, question.group.tokens());
  const auto total = static_cast<int64_t>(encoded.size());
  const int64_t rows = std::clamp<int64_t>(options.batch_size, 1, std::max<int64_t>(1, total));
  auto created = LikelihoodScorer::create(model.model, rows, longest, pool, options.precision);
  if (!created.ok() && rows > 1)
    return Error{created.error().kind,
                 created.error().message + fmt::format(", or fewer than {} questions at a time (--batch-size)", rows)};
  INGOT_ASSIGN(const std::unique_ptr<LikelihoodScorer> scorer, std::move(created));
  INGOT_TRY(load_weights(model.directory, model.model, scorer->arena()));
  const std::vector<size_t> order = scoring_order(set.questions, encoded);
  std::vector<ChoiceScore> scores(encoded.size());
  for (size_t begin = 0; begin < order.size(); begin += static_cast<size_t>(rows)) {
    const size_t end = std::min(order.size(), begin + static_cast<size_t>(rows));
    std::vector<EndingGroup> groups;
    for (size_t i = begin; i < end; ++i) groups.push_back(encoded[order[i]].group);
    INGOT_ASSIGN(std::vector<std::vector<double>> found, scorer->score(groups));
    for (size_t i = begin; i < end; ++i) {
      const Question& question = set.questions[order[i]];
      if (!std::ranges::all_of(found[i - begin], [](double x) { return std::isfinite(x); }))
        return failed_error("{}: the model's log-likelihoods are not finite; are its weights?", question.place());
      scores[order[i]] = judge(question, encoded[order[i]], std::move(found[i - begin]));
    }
    if (options.progress) options.progress(static_cast<int64_t>(end), total);
  }
  return scores;
}

ChoiceSummary summarize(std::span<const Question> questions, std::span<const ChoiceScore> scores) {
  INGOT_CHECK(questions.size() == scores.size(), "{} scores of {} questions", scores.size(), questions.size());
  ChoiceSummary summary;
  std::vector<const ChoiceScore*> all;
  std::map<std::string, std::vector<const ChoiceScore*>> by_subject;
  for (size_t i = 0; i < scores.size(); ++i) {
    all.push_back(&scores[i]);
    by_subject[questions[i].subject].push_back(&scores[i]);
    summary.questions_with_fewer_examples += scores[i].examples_dropped > 0 ? 1 : 0;
    summary.examples_dropped += scores[i].examples_dropped;
    summary.contexts_cut += scores[i].tokens_cut > 0 ? 1 : 0;
    summary.tokens_cut += scores[i].tokens_cut;
  }
  summary.overall = accuracy_of(all);
  std::vector<Mean> plain, normalized;
  for (const auto& [subject, of_subject] : by_subject) {
    const Accuracy accuracy = accuracy_of(of_subject);
    plain.push_back(accuracy.plain);
    normalized.push_back(accuracy.normalized);
    summary.per_subject.emplace(subject, accuracy);
  }
  summary.by_subject = {mean_of_means(plain), mean_of_means(normalized)};
  return summary;
}

}  // namespace ingot
