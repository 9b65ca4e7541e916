#include "data/csv.h"

#include <algorithm>

namespace ingot {
namespace {

std::string_view without_line_end(std::string_view record) {
  if (record.ends_with('\n')) record.remove_suffix(1);
  if (record.ends_with('\r')) record.remove_suffix(1);
  return record;
}

TextPlace place_at(const TextPlace& start, std::string_view record, size_t at) {
  return {start.file, start.line + std::count(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(at), '\n')};
}

// Reads the quoted field that starts at record[at] == '"' and moves `at` behind its closing quote. False: not closed.
bool read_quoted(std::string_view record, size_t& at, std::string& field) {
  for (++at;;) {
    const size_t quote = record.find('"', at);
    if (quote == std::string_view::npos) return false;
    field.append(record.substr(at, quote - at));
    at = quote + 1;
    if (at == record.size() || record[at] != '"') return true;
    field.push_back('"');
    ++at;
  }
}

void crlf_to_lf(std::string& text) {
  if (text.find("\r\n") == std::string::npos) return;
  size_t to = 0;
  for (size_t from = 0; from < text.size(); ++from)
    if (text[from] != '\r' || from + 1 == text.size() || text[from + 1] != '\n') text[to++] = text[from];
  text.resize(to);
}

}  // namespace

size_t csv_record_length(std::string_view text) {
  bool quoted = false;
  for (size_t at = 0;;) {
    at = text.find_first_of(quoted ? "\"" : "\"\n", at);
    if (at == std::string_view::npos) return text.size();
    if (text[at] == '\n') return at + 1;
    quoted = !quoted;  // a doubled quote toggles twice
    ++at;
  }
}

Status parse_csv_record(std::string_view record, const TextPlace& place, std::vector<std::string>& fields) {
  record = without_line_end(record);
  size_t count = 0;
  for (size_t at = 0;;) {
    if (count == fields.size()) fields.emplace_back();
    std::string& field = fields[count++];
    field.clear();
    if (at < record.size() && record[at] == '"') {
      const size_t opened = at;
      if (!read_quoted(record, at, field))
        return input_error("{}: the quote that opens field {} is never closed; expected a closing '\"'",
                           place_at(place, record, opened).to_string(), count);
      if (at < record.size() && record[at] != ',')
        return input_error(
            "{}: text follows the closing quote of field {}; expected a comma or the line's end "
            "(a quote inside a quoted field is written twice)",
            place_at(place, record, at).to_string(), count);
      crlf_to_lf(field);
    } else {
      const size_t comma = std::min(record.find(',', at), record.size());
      const std::string_view plain = record.substr(at, comma - at);
      if (plain.find('"') != std::string_view::npos)
        return input_error(
            "{}: a quote inside field {}, which does not start with one; expected the whole field in quotes "
            "and the quote inside it written twice",
            place_at(place, record, at).to_string(), count);
      field.assign(plain);
      at = comma;
    }
    if (at == record.size()) break;
    ++at;  // the comma
  }
  fields.resize(count);
  return {};
}

}  // namespace ingot
