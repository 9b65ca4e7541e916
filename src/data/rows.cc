#include "data/rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/jsonl.h"

namespace ingot {
namespace {

Result<std::optional<TextTemplate>> parse_optional(const std::optional<std::string>& text) {
  if (!text) return std::optional<TextTemplate>();
  INGOT_ASSIGN(TextTemplate parsed, TextTemplate::parse(*text));
  return std::optional(std::move(parsed));
}

Result<std::vector<size_t>> columns_of(const TextTemplate& text, const std::vector<std::string>& columns,
                                       const TextPlace& place) {
  std::vector<size_t> found;
  for (const std::string& key : text.keys()) {
    const auto at = std::find(columns.begin(), columns.end(), key);
    if (at == columns.end())
      return input_error("{}: no column {}, which the template names; the header has {}", place.to_string(), key,
                         fmt::join(columns, ", "));
    found.push_back(static_cast<size_t>(at - columns.begin()));
  }
  return found;
}

// The text of a JSON value inside a template: strings as they are, null as nothing, all else as JSON writes it.
void append_json_value(const nlohmann::json& value, std::string& out) {
  if (value.is_string())
    out += value.get_ref<const std::string&>();
  else if (!value.is_null())
    out += value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string keys_of(const nlohmann::json& object) {
  std::string keys;
  for (const auto& item : object.items()) keys += (keys.empty() ? "" : ", ") + item.key();
  return keys.empty() ? "no key" : keys;
}

Status render_template(const TextTemplate& text, const nlohmann::json& object, const TextPlace& place,
                       std::string& out) {
  return text.render(
      [&](size_t key, std::string& to) -> Status {
        const std::string& name = text.keys()[key];
        const auto value = object.find(name);
        if (value == object.end())
          return input_error("{}: no key \"{}\", which the template names; found {}", place.to_string(), name,
                             keys_of(object));
        append_json_value(*value, to);
        return {};
      },
      out);
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

RowCursor::RowCursor(std::string_view text, FileFormat format)
    : rest_(without_byte_order_mark(text)), format_(format) {}

std::optional<RawRow> RowCursor::next() {
  while (!rest_.empty()) {
    const size_t length =
        format_ == FileFormat::csv ? csv_record_length(rest_) : std::min(rest_.find('\n'), rest_.size() - 1) + 1;
    const RawRow row{rest_.substr(0, length), line_};
    rest_.remove_prefix(length);
    line_ += std::count(row.text.begin(), row.text.end(), '\n');
    if (!is_blank(row.text)) return row;
  }
  return std::nullopt;
}

Result<RowFormat> RowFormat::jsonl(const SourceSpec& spec) {
  RowFormat format;
  format.text_key_ = spec.text_key;
  INGOT_ASSIGN(format.text_, parse_optional(spec.row_template));
  INGOT_ASSIGN(format.prompt_, parse_optional(spec.prompt_template));
  return format;
}

Result<RowFormat> RowFormat::csv(const SourceSpec& spec, std::string_view header, const TextPlace& place) {
  INGOT_ASSIGN(RowFormat format, jsonl(spec));
  format.is_csv_ = true;
  INGOT_TRY(parse_csv_record(header, place, format.columns_));
  std::vector<std::string> sorted = format.columns_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return input_error("{}: two columns are called \"{}\"; expected a header with a name of its own for each column",
                       place.to_string(), *twice);
  if (format.prompt_) {
    INGOT_ASSIGN(format.prompt_columns_, columns_of(*format.prompt_, format.columns_, place));
  }
  if (format.text_) {
    INGOT_ASSIGN(format.text_columns_, columns_of(*format.text_, format.columns_, place));
    return format;
  }
  const auto column = std::find(format.columns_.begin(), format.columns_.end(), spec.text_key);
  if (column != format.columns_.end()) format.text_columns_ = {static_cast<size_t>(column - format.columns_.begin())};
  return format;
}

Status RowFormat::render(std::string_view row, const TextPlace& place, RowText& out) const {
  out.prompt.clear();
  out.text.clear();
  return is_csv_ ? render_csv(row, place, out) : render_jsonl(row, place, out);
}

Status RowFormat::render_jsonl(std::string_view row, const TextPlace& place, RowText& out) const {
  INGOT_ASSIGN(const JsonLine line, JsonLine::parse(row, place));
  const nlohmann::json& object = line.value();
  if (!object.is_object())
    return input_error("{}: a JSON {} where an object was expected, like {{\"{}\": \"…\"}}", place.to_string(),
                       object.type_name(), text_key_);
  if (prompt_) INGOT_TRY(render_template(*prompt_, object, place, out.prompt));
  if (text_) {
    INGOT_TRY(render_template(*text_, object, place, out.text));
  } else {
    const auto value = object.find(text_key_);
    if (value == object.end())
      return input_error("{}: no key \"{}\"; found {}. Set text_key to the key that holds the text, or a template",
                         place.to_string(), text_key_, keys_of(object));
    if (!value->is_string())
      return input_error("{}: the value of \"{}\" is of type {}; expected a string", place.to_string(), text_key_,
                         value->type_name());
    out.text = value->get_ref<const std::string&>();
  }
  line.restore_bytes(out.prompt);
  line.restore_bytes(out.text);
  return {};
}

Status RowFormat::render_csv(std::string_view row, const TextPlace& place, RowText& out) const {
  INGOT_TRY(parse_csv_record(row, place, out.fields));
  if (out.fields.size() != columns_.size())
    return input_error("{}: {} fields, expected {} as in the header", place.to_string(), out.fields.size(),
                       columns_.size());
  const auto with_template = [&](const TextTemplate& text, const std::vector<size_t>& columns, std::string& to) {
    return text.render(
        [&](size_t key, std::string& value) -> Status {
          value += out.fields[columns[key]];
          return {};
        },
        to);
  };
  if (prompt_) INGOT_TRY(with_template(*prompt_, prompt_columns_, out.prompt));
  if (text_) return with_template(*text_, text_columns_, out.text);
  if (!text_columns_.empty()) {
    out.text = out.fields[text_columns_[0]];
    return {};
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) out.text.push_back('\n');
    out.text += columns_[i];
    out.text += ": ";
    out.text += out.fields[i];
  }
  return {};
}

}  // namespace ingot
