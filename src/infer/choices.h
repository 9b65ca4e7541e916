// Multiple-choice questions as benchmarks distribute them: the CSV of MMLU, C-Eval and CMMLU, and JSONL as the LM
// evaluation harness writes it. docs/evaluate.md describes the formats.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/csv.h"

namespace ingot {

struct Question {
  std::string subject;
  std::string text;                  // the question, or the context that the choices continue
  std::vector<std::string> choices;  // 2 to 26
  size_t gold = 0;                   // the right one
  std::string file;
  int64_t line = 0;  // 1-based, where its row starts
  std::string place() const { return TextPlace{file, line}.to_string(); }
};

struct ChoiceFiles {
  std::vector<std::string> paths;  // files, directories or globs: .csv and .jsonl
  // Only this subject. A file that is named by itself and whose rows do not say theirs is of this subject; else the
  // file's name says it.
  std::string subject;
  std::string examples;  // where the worked examples are, as paths; empty: dev/ beside each question's directory
  int64_t shots = 0;     // examples before each question: the first ones of its subject
  int64_t limit = 0;     // questions of each subject; 0: all
};

struct ChoiceSet {
  std::vector<Question> questions;                        // by path, then as they stand in the file
  std::map<std::string, std::vector<Question>> examples;  // [shots] of each subject; empty where shots is 0
  bool is_jsonl = false;                                  // all files are

  std::span<const Question> examples_of(const Question& question) const;
};

// Errors: input, with file and line, for a malformed row, a missing answer, a subject in two files of one directory and
// where nothing is left; usage where there are fewer examples than shots.
Result<ChoiceSet> read_choices(const ChoiceFiles& files);

// "data/test/abstract_algebra_test.csv" -> "abstract_algebra".
std::string subject_of_file(const fs::path& path);

// Equal for the same questions in the same order, whatever files they came from.
uint64_t fingerprint_of(std::span<const Question> questions);

}  // namespace ingot
