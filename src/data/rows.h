// RowCursor: the rows of a JSONL or CSV file. RowFormat: how a row becomes text; one object a file, shared by all
// threads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/csv.h"
#include "data/sources.h"
#include "data/text_template.h"

namespace ingot {

// One row as it stands in the file, its line end included.
struct RawRow {
  std::string_view text;
  int64_t line = 0;  // where it starts, 1-based
};

std::string_view without_byte_order_mark(std::string_view text);

// The rows of a JSONL or CSV file, one behind the other. Blank lines are no rows.
class RowCursor {
 public:
  RowCursor() = default;
  // A byte order mark at the start is passed over. The text must outlive the cursor.
  RowCursor(std::string_view text, FileFormat format);

  std::optional<RawRow> next();
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  FileFormat format_ = FileFormat::jsonl;
  int64_t line_ = 1;  // of the start of rest_
};

// The text of one document: what is learnt, and what stands before it and is only read (often empty).
struct RowText {
  std::string prompt;
  std::string text;
  std::vector<std::string> fields;  // scratch
};

class RowFormat {
 public:
  static Result<RowFormat> jsonl(const SourceSpec& spec);
  // `header` is the file's first record. ErrorKind::input for a template's column that it lacks or a name that stands
  // twice.
  static Result<RowFormat> csv(const SourceSpec& spec, std::string_view header, const TextPlace& place);

  // ErrorKind::input with the row's place for a malformed row. Bytes that are not UTF-8 pass unchanged.
  Status render(std::string_view row, const TextPlace& place, RowText& out) const;

 private:
  Status render_jsonl(std::string_view row, const TextPlace& place, RowText& out) const;
  Status render_csv(std::string_view row, const TextPlace& place, RowText& out) const;

  bool is_csv_ = false;
  std::string text_key_;
  std::optional<TextTemplate> text_, prompt_;
  std::vector<std::string> columns_;                   // of the CSV header
  std::vector<size_t> text_columns_, prompt_columns_;  // of the templates' keys
};

}  // namespace ingot
