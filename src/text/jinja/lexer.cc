#include "text/jinja/lexer.h"

#include <algorithm>

namespace ingot::jinja {
namespace {

constexpr size_t kMostInTag = 2048;  // tokens; what is built from them is as deep at most
constexpr std::string_view kSpace = " \t\r\n\f\v";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class Lexer {
 public:
  Lexer(std::string_view source, std::string_view name) : source_(source), name_(name) {
    if (source_.ends_with('\n')) source_.remove_suffix(1);  // as Jinja does
  }

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) INGOT_TRY(text_and_tag());
    push(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  using Kind = Token::Kind;

  Error wrong(std::string_view what) const { return input_error("{}: line {}: {}", name_, line_, what); }
  void push(Kind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }
  bool follows(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  void advance(size_t count) {
    const std::string_view passed = source_.substr(at_, count);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    at_ += passed.size();
  }

  // The next place where {{, {% or {# begins.
  size_t find_tag() const {
    for (size_t at = source_.find('{', at_); at != std::string_view::npos; at = source_.find('{', at + 1)) {
      if (at + 1 < source_.size() && std::string_view("{%#").find(source_[at + 1]) != std::string_view::npos) return at;
    }
    return source_.size();
  }

  Status text_and_tag() {
    const size_t begin = find_tag();
    std::string_view text = source_.substr(at_, begin - at_);
    const bool has_tag = begin < source_.size();
    const char kind = has_tag ? source_[begin + 1] : '\0';
    const char control = has_tag && begin + 2 < source_.size() ? source_[begin + 2] : '\0';
    const std::string_view kept = keep(text, kind, control);
    if (!kept.empty()) push(Kind::text, std::string(kept));
    advance(begin - at_);
    if (!has_tag) return {};
    advance(control == '-' || control == '+' ? 3 : 2);
    if (kind == '#') return comment();
    push(kind == '{' ? Kind::print_begin : Kind::tag_begin, "");
    return inside(kind == '{');
  }

  // The text before a tag, less what the tag before it and this one take away.
  std::string_view keep(std::string_view text, char kind, char control) {
    if (strip_next_) {
      text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    } else if (trim_next_ && text.starts_with('\n')) {
      text.remove_prefix(1);
    } else if (trim_next_ && text.starts_with("\r\n")) {
      text.remove_prefix(2);
    }
    const bool whole_line_possible = !strip_next_;
    const bool begins_line = at_ == 0 || (trim_next_ && source_[at_] == '\n');
    strip_next_ = trim_next_ = false;
    if (control == '-') {
      const size_t last = text.find_last_not_of(kSpace);
      return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
    }
    if ((kind != '%' && kind != '#') || control == '+') return text;
    // lstrip_blocks: blanks between the line's start and a tag go.
    const size_t last = text.find_last_not_of(" \t\r\f\v");
    if (last == std::string_view::npos) return begins_line && whole_line_possible ? text.substr(0, 0) : text;
    return text[last] == '\n' ? text.substr(0, last + 1) : text;
  }

  void end_tag(char control, bool is_print) {
    strip_next_ = control == '-';
    trim_next_ = control == '\0' && !is_print;
  }

  Status comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) return wrong("a comment is not ended by '#}'");
    const char last = end > at_ ? source_[end - 1] : '\0';
    advance(end + 2 - at_);
    end_tag(last == '-' || last == '+' ? last : '\0', false);
    return {};
  }

  // The tokens of a tag, to its end.
  Status inside(bool is_print) {
    const std::string_view close = is_print ? "}}" : "%}";
    size_t depth = 0;  // open brackets: }} may end a dict
    for (size_t count = 0;; ++count) {
      if (count > kMostInTag) return wrong(fmt::format("a tag of more than {} parts", kMostInTag));
      advance(std::min(source_.find_first_not_of(kSpace, at_), source_.size()) - at_);
      if (at_ == source_.size()) return wrong(fmt::format("a tag is not ended by '{}'", close));
      const bool has_control = source_[at_] == '-' || source_[at_] == '+';
      if (depth == 0 && (follows(close) || (has_control && source_.substr(at_ + 1).starts_with(close)))) {
        const char control = has_control ? source_[at_] : '\0';
        advance(has_control ? 3 : 2);
        push(is_print ? Kind::print_end : Kind::tag_end, "");
        end_tag(control, is_print);
        return {};
      }
      const char c = source_[at_];
      if (std::string_view("([{").find(c) != std::string_view::npos) ++depth;
      if (std::string_view(")]}").find(c) != std::string_view::npos && depth > 0) --depth;
      INGOT_TRY(token());
    }
  }

  Status token() {
    const char c = source_[at_];
    if (c == '\'' || c == '"') return string(c);
    if (is_digit(c)) return number();
    if (is_name_start(c)) {
      size_t end = at_;
      while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
      push(Kind::name, std::string(source_.substr(at_, end - at_)));
      advance(end - at_);
      return {};
    }
    for (const std::string_view op : {"//", "**", "==", "!=", "<=", ">="}) {
      if (!follows(op)) continue;
      push(Kind::op, std::string(op));
      advance(2);
      return {};
    }
    if (std::string_view("+-*/%~<>=()[]{},:.|").find(c) == std::string_view::npos)
      return wrong(fmt::format("the character '{}' has no meaning in a tag", c));
    push(Kind::op, std::string(1, c));
    advance(1);
    return {};
  }

  Status string(char quote) {
    std::string text;
    size_t at = at_ + 1;
    for (;; ++at) {
      if (at >= source_.size()) return wrong("a string is not ended");
      if (source_[at] == quote) break;
      if (source_[at] != '\\') {
        text += source_[at];
        continue;
      }
      if (++at >= source_.size()) return wrong("a string is not ended");
      switch (source_[at]) {
        case 'n':
          text += '\n';
          break;
        case 't':
          text += '\t';
          break;
        case 'r':
          text += '\r';
          break;
        case '\\':
        case '\'':
        case '"':
          text += source_[at];
          break;
        case '\n':
          break;
        case 'x':
        case 'u':
        case 'U':
        case 'N':
          return wrong(fmt::format("the escape '\\{}' in a string is not supported", source_[at]));
        default:
          text += {'\\', source_[at]};
      }
    }
    push(Kind::string, std::move(text));
    advance(at + 1 - at_);
    return {};
  }

  Status number() {
    size_t end = at_;
    while (end < source_.size() && is_digit(source_[end])) ++end;
    const bool real = end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1]);
    if (real) {
      ++end;
      while (end < source_.size() && is_digit(source_[end])) ++end;
    }
    push(real ? Kind::real : Kind::integer, std::string(source_.substr(at_, end - at_)));
    advance(end - at_);
    return {};
  }

  std::string_view source_, name_;
  size_t at_ = 0;
  int line_ = 1;
  bool strip_next_ = false;  // the last tag ended with '-'
  bool trim_next_ = false;   // the last one takes one line end after it
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source, std::string_view source_name) {
  return Lexer(source, source_name).run();
}

}  // namespace ingot::jinja
