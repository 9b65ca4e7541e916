// Multiple choice by log-likelihood: the model answers with the choice that it finds most likely behind the question.
#pragma once

#include <functional>

#include "infer/choice_prompt.h"
#include "infer/likelihood.h"
#include "infer/scorer.h"
#include "infer/statistics.h"

namespace ingot {

// What a question is to the model. Tokens are cut as the LM evaluation harness cuts them: context and choice are
// encoded together, and as many tokens as the context alone has are the context.
struct EncodedQuestion {
  EndingGroup group;
  std::vector<int64_t> choice_bytes;  // of each choice's text, for the normalised accuracy
  int64_t examples_dropped = 0;       // worked examples that did not fit, the last ones first
  int64_t tokens_cut = 0;             // then from the left of the context, the same for all choices
};

// `window`: tokens that the model reads at a time. Errors (input): a choice without text or one that alone does not
// fit.
Result<EncodedQuestion> encode_question(const ChoicePrompter& prompter, const Tokenizer& tokenizer,
                                        const Question& question, std::span<const Question> examples, int64_t window);

struct ChoiceScore {
  std::vector<double> log_likelihoods;  // of each choice, in nats
  size_t chosen = 0;                    // the most likely one; of equals the first
  size_t chosen_normalized = 0;         // by log-likelihood a byte of the choice
  bool correct = false, correct_normalized = false;
  int64_t examples_dropped = 0, tokens_cut = 0;
};
ChoiceScore judge(const Question& question, const EncodedQuestion& encoded, std::vector<double> log_likelihoods);

struct ChoiceOptions {
  int64_t window = 0;  // as ScoringOptions'
  MixedPrecision precision = {};
  int64_t batch_size = 8;  // questions at a time; changes the results in their rounding alone
  std::function<void(int64_t done, int64_t total)> progress;  // questions; on the calling thread; may be empty
};

// One score a question, in their order. Errors also as LikelihoodScorer's.
Result<std::vector<ChoiceScore>> score_choices(const LoadedModel& model, const ChoiceSet& set,
                                               const ChoicePrompter& prompter, const ChoiceOptions& options,
                                               const ThreadPool& pool);

struct Accuracy {
  Mean plain, normalized;
};
struct ChoiceSummary {
  Accuracy overall;     // each question counts once
  Accuracy by_subject;  // each subject counts once
  std::map<std::string, Accuracy> per_subject;
  int64_t questions_with_fewer_examples = 0, examples_dropped = 0, contexts_cut = 0, tokens_cut = 0;
};
ChoiceSummary summarize(std::span<const Question> questions, std::span<const ChoiceScore> scores);

}  // namespace ingot
