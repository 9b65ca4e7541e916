// CSV as RFC 4180 has it: comma-separated fields, double quotes around fields that hold commas, quotes or line ends, a
// quote inside them doubled. Debian's CSV libraries are a reader of fixed columns (libfccp) and one that reports
// neither lines nor misplaced quotes as errors (libcsv); both would hide a damaged row. Hence these two functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ingot {

// Where the text stands, for messages: "loans.csv:17".
struct TextPlace {
  std::string_view file;
  int64_t line = 0;  // 1-based
  std::string to_string() const { return fmt::format("{}:{}", file, line); }
};

// The length of the first record of `text`, its line end included. Line ends inside quotes do not end a record.
size_t csv_record_length(std::string_view text);

// The fields of one record (with or without its line end); CRLF inside a field becomes LF. ErrorKind::input with the
// place for a quote that is never closed, text after a closing quote and a quote inside a field that does not start
// with one. `fields` is overwritten; its strings are reused.
Status parse_csv_record(std::string_view record, const TextPlace& place, std::vector<std::string>& fields);

}  // namespace ingot
