#include "graph/attributes.h"

#include <cctype>

namespace ingot {

void AttributeReader::skip_spaces() {
  while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t')) text_.remove_prefix(1);
}

bool AttributeReader::at(char c) {
  skip_spaces();
  return !text_.empty() && text_.front() == c;
}

bool AttributeReader::take(char c) {
  if (!at(c)) return false;
  text_.remove_prefix(1);
  return true;
}

bool AttributeReader::done() {
  skip_spaces();
  return text_.empty();
}

std::string_view AttributeReader::word() {
  skip_spaces();
  size_t n = 0;
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '+' || c == '-';
  };
  while (n < text_.size() && in_word(text_[n])) ++n;
  const std::string_view result = text_.substr(0, n);
  text_.remove_prefix(n);
  return result;
}

bool AttributeReader::quoted(std::string& out) {
  if (!take('"')) return false;
  out.clear();
  while (!text_.empty()) {
    char c = text_.front();
    text_.remove_prefix(1);
    if (c == '"') return true;
    if (c == '\\') {
      if (text_.empty()) return false;
      c = text_.front();
      text_.remove_prefix(1);
    }
    out += c;
  }
  return false;
}

namespace attribute_text {

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

void print(std::string& out, double value) {
  out += fmt::format("{}", value);
}

bool parse(AttributeReader& in, bool& value) {
  const std::string_view word = in.word();
  value = word == "true";
  return value || word == "false";
}

template <class T>
static bool parse_number(AttributeReader& in, T& value) {
  const std::string_view word = in.word();
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}
bool parse(AttributeReader& in, int64_t& value) {
  return parse_number(in, value);
}
bool parse(AttributeReader& in, double& value) {
  return parse_number(in, value);
}
bool parse(AttributeReader& in, std::string& value) {
  return in.quoted(value);
}

bool parse(AttributeReader& in, DType& value) {
  const auto dtype = dtype_from_name(in.word());
  if (dtype) value = *dtype;
  return dtype.has_value();
}

}  // namespace attribute_text
}  // namespace ingot
