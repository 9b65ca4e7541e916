// Generative scoring: a model continues a prompt, and its text is compared with the expected one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "infer/generator.h"

namespace ingot {

// One line of the file: {"prompt": "…", "answer": "…"} or {"prompt": "…", "answer": ["…", "…"]}: any of them is right.
struct PromptedAnswer {
  std::string prompt;
  std::vector<std::string> answers;
};
// Errors (input) with file and line.
Result<std::vector<PromptedAnswer>> read_prompted_answers(const std::string& path);
// Equal for the same prompts and answers in the same order.
uint64_t fingerprint_of(const std::vector<PromptedAnswer>& questions);

struct ExactMatchOptions {
  int64_t max_tokens = 64;
  SamplingOptions sampling{.temperature = 0};  // question i (from 0) is sampled with seed + i
  std::string stop = "\n";                     // the text ends before its first occurrence; empty: nowhere
  MixedPrecision precision = {};
  bool ignore_case = false;                                   // of ASCII letters
  std::function<void(int64_t done, int64_t total)> progress;  // on the calling thread; may be empty
};

// What is compared: white space at both ends taken off, each run of it inside one space; ASCII letters in lower case
// where `ignore_case`.
std::string normalized_answer(std::string_view text, bool ignore_case);

struct ExactMatch {
  std::string text;  // as generated, up to the stop
  bool correct = false;
  int64_t tokens_cut = 0;  // from the left of a prompt that left no room for the new tokens
};

// One result a prompt, in their order. A prompt gets what the post-processor puts before a text; special tokens that
// are written in it are plain text. Errors: usage for options outside their range; input for an empty prompt that has
// no token to start from.
Result<std::vector<ExactMatch>> score_exact_match(const LoadedModel& model,
                                                  const std::vector<PromptedAnswer>& questions,
                                                  const ExactMatchOptions& options, const ThreadPool& pool);

}  // namespace ingot
