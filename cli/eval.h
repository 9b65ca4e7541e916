// What the kinds of `ingot eval` share: a result, how it is printed and kept.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "infer/choice_scoring.h"
#include "infer/exact_match.h"
#include "infer/scorer.h"
#include "train/config.h"

namespace ingot::cli {

struct EvalFlags {
  std::string model, weights = "fp32", out;
  Precision precision = Precision::fp32;
  std::vector<std::string> texts, compare;
  ScoringOptions scoring;
  ChoiceFiles choices;
  std::string template_name;  // empty: by the kind of the files
  int64_t batch_size = 8;
  std::string prompts;
  ExactMatchOptions generation;
  int64_t threads = 0;
  bool json = false;
};

// `settings` are all that the figures depend on beside the model and the program; two results are comparable where
// these are equal. `documents` are the figures of each document or question: what paired differences are made of.
struct EvalResult {
  nlohmann::ordered_json figures, settings, documents;
  std::string text;  // the figures for people
};

Result<EvalResult> eval_text(const EvalFlags& flags, const LoadedModel& model, const ThreadPool& pool);
Result<EvalResult> eval_choices(const EvalFlags& flags, const LoadedModel& model, const ThreadPool& pool);
Result<EvalResult> eval_generation(const EvalFlags& flags, const LoadedModel& model, const ThreadPool& pool);

// Two files of --out. Errors: usage, naming the first setting that differs; input for what is no such file.
Status compare_results(const EvalFlags& flags);

// {NAME: mean, NAME_stderr: standard error}, put into `to`.
void put_mean(nlohmann::ordered_json& to, const std::string& name, const Mean& mean);

}  // namespace ingot::cli
