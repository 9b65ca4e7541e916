// Any bytes as a CSV or JSONL file: no crash, and a CSV record's fields are found again when it is written anew.
#include <string>

#include "base/check.h"
#include "data/rows.h"

namespace {

void check_csv(std::string_view text) {
  std::vector<std::string> fields, again;
  while (!text.empty()) {
    const size_t length = ingot::csv_record_length(text);
    INGOT_CHECK(length > 0 && length <= text.size(), "a record of {} bytes", length);
    if (ingot::parse_csv_record(text.substr(0, length), {"fuzz.csv", 1}, fields).ok()) {
      std::string written;
      for (const std::string& field : fields) {
        written += written.empty() ? "\"" : ",\"";
        for (char c : field) written += c == '"' ? std::string("\"\"") : std::string(1, c);
        written += '"';
      }
      const bool ok = ingot::parse_csv_record(written, {"fuzz.csv", 1}, again).ok();
      INGOT_CHECK(ok && again.size() == fields.size(), "{} fields, then {}", fields.size(), again.size());
    }
    text.remove_prefix(length);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_csv(text);
  ingot::SourceSpec spec;
  ingot::RowText row;
  const auto jsonl = ingot::RowFormat::jsonl(spec);
  (void)jsonl->render(text, {"fuzz.jsonl", 1}, row);
  const std::string_view header = text.substr(0, ingot::csv_record_length(text));
  const auto csv = ingot::RowFormat::csv(spec, header, {"fuzz.csv", 1});
  if (csv.ok()) (void)csv->render(text.substr(header.size()), {"fuzz.csv", 2}, row);
  spec.row_template = std::string(header);
  if (const auto with_template = ingot::RowFormat::jsonl(spec); with_template.ok())
    (void)with_template->render(text.substr(header.size()), {"fuzz.jsonl", 2}, row);
  return 0;
}
