#include "infer/choices.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "data/jsonl.h"
#include "data/rows.h"

namespace ingot {
namespace {

constexpr size_t kMostChoices = 26;  // the letters

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

std::string lowered(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

Result<size_t> gold_of_letter(std::string_view field, size_t choices, const TextPlace& place) {
  const std::string answer = trimmed(field);
  const char last = static_cast<char>('A' + choices - 1);
  if (answer.empty())
    return input_error(
        "{}: there is no answer; expected a letter from A to {} (C-Eval's test split comes without: "
        "use its val)",
        place.to_string(), last);
  if (answer.size() != 1 || answer[0] < 'A' || answer[0] > last)
    return input_error("{}: the answer is \"{}\"; expected a letter from A to {}", place.to_string(), answer, last);
  return static_cast<size_t>(answer[0] - 'A');
}

// Which columns of a CSV file hold what.
struct Columns {
  size_t count = 0;
  size_t question = 0, answer = 0;
  std::vector<size_t> choices;
};

// The columns that a header names; none where the record is no header.
std::optional<Columns> columns_of_header(const std::vector<std::string>& fields) {
  Columns columns;
  columns.count = fields.size();
  const auto find = [&](const std::string& name) -> std::optional<size_t> {
    for (size_t i = 0; i < fields.size(); ++i)
      if (lowered(trimmed(fields[i])) == name) return i;
    return std::nullopt;
  };
  const auto question = find("question"), answer = find("answer");
  if (!question || !answer) return std::nullopt;
  columns.question = *question;
  columns.answer = *answer;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    const auto column = find(std::string(1, letter));
    if (!column) break;
    columns.choices.push_back(*column);
  }
  if (columns.choices.size() < 2) return std::nullopt;
  return columns;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Without a header: question, A, B, C, D, answer; behind a number where there are seven.
std::optional<Columns> columns_by_count(const std::vector<std::string>& fields) {
  const bool has_id = fields.size() == 7 && is_number(trimmed(fields[0]));
  if (fields.size() != 6 && !has_id) return std::nullopt;
  const size_t first = has_id ? 1 : 0;
  return Columns{fields.size(), first, first + 5, {first + 1, first + 2, first + 3, first + 4}};
}

class FileReader {
 public:
  FileReader(fs::path path, std::string subject) : path_(std::move(path)), subject_(std::move(subject)) {}

  Result<std::vector<Question>> read() {
    INGOT_ASSIGN(const MappedFile map, MappedFile::open(path_));
    const FileFormat format = format_of(path_).value_or(FileFormat::text);
    if (format == FileFormat::text)
      return input_error("{}: expected a .csv or .jsonl file of questions", path_.string());
    RowCursor rows(map.text(), format);
    while (const auto row = rows.next()) INGOT_TRY(format == FileFormat::csv ? add_csv(*row) : add_jsonl(*row));
    return std::move(questions_);
  }

 private:
  TextPlace place_of(const RawRow& row) const { return {path_.native(), row.line}; }

  Question question_at(const TextPlace& place) const {
    Question question;
    question.subject = subject_;
    question.file = path_.string();
    question.line = place.line;
    return question;
  }

  Status add_csv(const RawRow& row) {
    const TextPlace place = place_of(row);
    INGOT_TRY(parse_csv_record(row.text, place, fields_));
    if (!columns_) {
      columns_ = columns_of_header(fields_);
      if (columns_) return {};
      columns_ = columns_by_count(fields_);
      if (!columns_)
        return input_error(
            "{}: {} fields and no header; expected the columns question, A, B, C, D, answer (a number may stand "
            "before them), or a header that names them",
            place.to_string(), fields_.size());
    }
    if (fields_.size() != columns_->count)
      return input_error("{}: {} fields; expected {} as in the file's first row", place.to_string(), fields_.size(),
                         columns_->count);
    Question question = question_at(place);
    question.text = fields_[columns_->question];
    for (const size_t column : columns_->choices) question.choices.push_back(fields_[column]);
    INGOT_ASSIGN(question.gold, gold_of_letter(fields_[columns_->answer], question.choices.size(), place));
    questions_.push_back(std::move(question));
    return {};
  }

  // The one key of `names` that the object has.
  static Result<const nlohmann::json*> value_of(const nlohmann::json& object, std::span<const char* const> names,
                                                const TextPlace& place) {
    const nlohmann::json* found = nullptr;
    for (const char* name : names) {
      const auto value = object.find(name);
      if (value == object.end()) continue;
      if (found != nullptr)
        return input_error("{}: more than one of the keys {}; expected one", place.to_string(), fmt::join(names, ", "));
      found = &*value;
    }
    if (found == nullptr)
      return input_error("{}: none of the keys {}; expected a context, \"choices\" and the index of the right choice",
                         place.to_string(), fmt::join(names, ", "));
    return found;
  }

  static Result<std::string> string_of(const nlohmann::json& value, const char* what, const JsonLine& line,
                                       const TextPlace& place) {
    if (!value.is_string())
      return input_error("{}: the {} is of type {}; expected a string", place.to_string(), what, value.type_name());
    auto text = value.get<std::string>();
    line.restore_bytes(text);
    return text;
  }

  Status add_jsonl(const RawRow& row) {
    constexpr std::array kContext{"context", "query"}, kGold{"gold", "label"};
    constexpr std::array kChoices{"choices"};
    const TextPlace place = place_of(row);
    INGOT_ASSIGN(const JsonLine line, JsonLine::parse(row.text, place));
    const nlohmann::json& object = line.value();
    if (!object.is_object())
      return input_error("{}: a JSON {}; expected an object with a context, choices and gold", place.to_string(),
                         object.type_name());
    Question question = question_at(place);
    INGOT_ASSIGN(const nlohmann::json* context, value_of(object, kContext, place));
    INGOT_ASSIGN(question.text, string_of(*context, "context", line, place));
    INGOT_ASSIGN(const nlohmann::json* choices, value_of(object, kChoices, place));
    if (!choices->is_array() || choices->size() < 2 || choices->size() > kMostChoices)
      return input_error("{}: \"choices\" is {}; expected an array of 2 to {} strings", place.to_string(),
                         choices->is_array() ? fmt::format("an array of {}", choices->size()) : choices->type_name(),
                         kMostChoices);
    for (const nlohmann::json& choice : *choices) {
      INGOT_ASSIGN(std::string text, string_of(choice, "choice", line, place));
      question.choices.push_back(std::move(text));
    }
    INGOT_ASSIGN(const nlohmann::json* gold, value_of(object, kGold, place));
    const bool is_index = gold->is_number_unsigned() && gold->get<uint64_t>() < question.choices.size();
    if (!is_index)
      return input_error("{}: the index of the right choice is {}; expected a number from 0 to {}", place.to_string(),
                         gold->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                         question.choices.size() - 1);
    question.gold = gold->get<size_t>();
    if (const auto subject = object.find("subject"); subject != object.end()) {
      INGOT_ASSIGN(question.subject, string_of(*subject, "subject", line, place));
    }
    questions_.push_back(std::move(question));
    return {};
  }

  fs::path path_;
  std::string subject_;
  std::optional<Columns> columns_;
  std::vector<std::string> fields_;
  std::vector<Question> questions_;
};

// The questions of one path. `given`: the subject of a file that is named by itself; empty: its name says it.
Result<std::vector<Question>> questions_of_path(const std::string& path, const std::string& given) {
  SourceSpec spec;
  spec.path = path;
  INGOT_ASSIGN(SourceFiles found, find_source_files(spec));
  std::error_code ignored;
  const bool is_file = fs::is_regular_file(path, ignored);
  if (!is_file) std::erase_if(found.files, [](const fs::path& file) { return format_of(file) == FileFormat::text; });
  if (found.files.empty()) return input_error("{}: there is no .csv or .jsonl file of questions", path);
  std::vector<Question> questions;
  std::map<std::string, std::string> seen;  // the file of each subject
  for (const fs::path& file : found.files) {
    const std::string name = subject_of_file(file);
    const auto [other, is_new] = seen.emplace(name, file.string());
    if (!is_new)
      return input_error("the subject {} is in two files, {} and {}; name the directory of one split, like {}", name,
                         other->second, file.string(), file.parent_path().string());
    INGOT_ASSIGN(std::vector<Question> more, FileReader(file, is_file && !given.empty() ? given : name).read());
    std::ranges::move(more, std::back_inserter(questions));
  }
  return questions;
}

// The first `limit` questions (0: all) of each subject.
void keep_first(std::vector<Question>& questions, int64_t limit) {
  if (limit == 0) return;
  std::map<std::string, int64_t> kept;
  std::erase_if(questions, [&](const Question& question) { return ++kept[question.subject] > limit; });
}

// The paths that hold the examples: as given, or dev/ beside the questions' directories.
Result<std::vector<std::string>> example_paths(const ChoiceFiles& files, std::span<const Question> questions) {
  if (!files.examples.empty()) return std::vector{files.examples};
  std::vector<std::string> paths;
  for (const Question& question : questions) {
    const fs::path directory = fs::absolute(question.file).parent_path().parent_path() / "dev";
    std::error_code ignored;
    if (!fs::is_directory(directory, ignored))
      return usage_error("{} shots, but there is no {}; say with --examples where the worked examples are", files.shots,
                         directory.string());
    if (std::ranges::find(paths, directory.string()) == paths.end()) paths.push_back(directory.string());
  }
  return paths;
}

Status read_examples(const ChoiceFiles& files, ChoiceSet& set) {
  INGOT_ASSIGN(const std::vector<std::string> paths, example_paths(files, set.questions));
  std::map<std::string, std::vector<Question>> found;
  std::vector<Question> for_all;  // a file that is named by itself serves the subjects that its rows do not name
  for (const std::string& path : paths) {
    std::error_code ignored;
    INGOT_ASSIGN(std::vector<Question> examples, questions_of_path(path, ""));
    if (fs::is_regular_file(path, ignored)) for_all = examples;
    for (Question& example : examples) found[example.subject].push_back(std::move(example));
  }
  for (const Question& question : set.questions) {
    auto [examples, is_new] = set.examples.try_emplace(question.subject);
    if (!is_new) continue;
    const auto own = found.find(question.subject);
    examples->second = own != found.end() ? own->second : for_all;
    if (static_cast<int64_t>(examples->second.size()) < files.shots)
      return usage_error("{} shots, but {} has {} examples in {}; give fewer shots or more examples", files.shots,
                         question.subject, examples->second.size(), fmt::join(paths, ", "));
    examples->second.resize(static_cast<size_t>(files.shots));
  }
  return {};
}

}  // namespace

std::string subject_of_file(const fs::path& path) {
  std::string name = path.stem().string();
  for (const std::string_view split : {"_test", "_validation", "_val", "_dev"})
    if (name.size() > split.size() && name.ends_with(split)) return name.substr(0, name.size() - split.size());
  return name;
}

uint64_t fingerprint_of(std::span<const Question> questions) {
  StreamHash hash;
  const auto add = [&](std::string_view text) {
    const uint64_t size = text.size();  // so that the edges between texts count
    hash.add(std::as_bytes(std::span(&size, 1)));
    hash.add(std::as_bytes(std::span(text.data(), text.size())));
  };
  for (const Question& question : questions) {
    add(question.subject);
    add(question.text);
    for (const std::string& choice : question.choices) add(choice);
    add(std::to_string(question.gold));
  }
  return hash.digest();
}

std::span<const Question> ChoiceSet::examples_of(const Question& question) const {
  const auto found = examples.find(question.subject);
  return found == examples.end() ? std::span<const Question>() : std::span<const Question>(found->second);
}

Result<ChoiceSet> read_choices(const ChoiceFiles& files) {
  ChoiceSet set;
  for (const std::string& path : files.paths) {
    INGOT_ASSIGN(std::vector<Question> questions, questions_of_path(path, files.subject));
    std::ranges::move(questions, std::back_inserter(set.questions));
  }
  if (!files.subject.empty())
    std::erase_if(set.questions, [&](const Question& question) { return question.subject != files.subject; });
  if (set.questions.empty())
    return input_error("{}: there is no question{}", fmt::join(files.paths, ", "),
                       files.subject.empty() ? "" : " of the subject " + files.subject);
  keep_first(set.questions, files.limit);
  set.is_jsonl = std::ranges::all_of(
      set.questions, [](const Question& question) { return format_of(question.file) == FileFormat::jsonl; });
  if (files.shots > 0) INGOT_TRY(read_examples(files, set));
  return set;
}

}  // namespace ingot
