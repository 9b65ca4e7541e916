// Parsing: one pass over the text that keeps the vocabulary and the merges out of the document tree.
#include "text/tokenizer_json.h"

#include <algorithm>
#include <cstdlib>

namespace ingot {
namespace {

constexpr size_t kMostNested = 64;

class Handler final : public nlohmann::json_sax<Json> {
 public:
  explicit Handler(TokenizerFile& file) : file_(file) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool flag) override { return value(flag); }
  bool number_integer(int64_t number) override {
    return integer(number, number >= 0 ? static_cast<uint64_t>(number) : UINT64_MAX);
  }
  bool number_unsigned(uint64_t number) override { return integer(number, number); }
  bool number_float(double number, const std::string& text) override {
    return area_ == Area::scores ? score(text) : value(number);
  }
  bool binary(binary_t&) override { return fail("binary values are not JSON"); }

  bool string(std::string& text) override {
    if (area_ == Area::merges) return merge_text(text);
    if (area_ == Area::scores) return scored_text(text);
    return value(text);
  }

  bool start_object(size_t) override {
    if (area_ == Area::vocabulary) return fail("model.vocab: expected an id, found an object");
    if (area_ == Area::scores) return fail_score();
    if (area_ == Area::merges)
      return fail(fmt::format("model.merges[{}]: expected \"a b\" or [\"a\", \"b\"]", file_.merges.size()));
    if (at("vocab")) {
      area_ = Area::vocabulary;
      return true;
    }
    return open(Json::object());
  }
  bool end_object() override {
    if (area_ == Area::vocabulary) {
      area_ = Area::document;
      return true;
    }
    return close();
  }
  bool start_array(size_t) override {
    if (area_ == Area::vocabulary) return fail("model.vocab: expected an id, found an array");
    if (area_ == Area::merges) {
      if (in_pair_)
        return fail(fmt::format("model.merges[{}]: expected \"a b\" or [\"a\", \"b\"]", file_.merges.size()));
      in_pair_ = true;
      pair_.clear();
      return true;
    }
    if (area_ == Area::scores) {
      if (in_pair_) return fail_score();
      in_pair_ = true;
      has_token_ = has_score_ = false;
      return true;
    }
    if (at("merges") || at("vocab")) {
      area_ = at("merges") ? Area::merges : Area::scores;
      file_.is_scored = file_.is_scored || area_ == Area::scores;
      return true;
    }
    return open(Json::array());
  }
  bool end_array() override {
    if (area_ != Area::merges && area_ != Area::scores) return close();
    if (!in_pair_) {
      area_ = Area::document;
      return true;
    }
    in_pair_ = false;
    if (area_ == Area::scores) return has_token_ && has_score_ ? scored_token() : fail_score();
    if (pair_.size() != 2)
      return fail(fmt::format("model.merges[{}]: expected two strings, found {}", file_.merges.size(), pair_.size()));
    file_.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
    return true;
  }
  bool key(std::string& name) override {
    if (area_ == Area::vocabulary) {
      token_ = std::move(name);
      return true;
    }
    if (stack_.back()->contains(name)) return fail(fmt::format("the key '{}' stands twice in one object", name));
    key_ = name;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& problem) override {
    std::string_view what = problem.what();
    if (const size_t head = what.find("] "); head != std::string_view::npos) what.remove_prefix(head + 2);
    return fail(fmt::format("not valid JSON at byte {}: {}", position, what));
  }

  const std::string& problem() const { return problem_; }

 private:
  enum class Area { document, vocabulary, merges, scores };

  bool fail(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
    return false;
  }
  // Whether the value that comes is the key `name` of "model".
  bool at(std::string_view name) const {
    return stack_.size() == 2 && stack_[1]->is_object() && key_ == name && in_model_;
  }
  Json* place(Json value) {
    if (stack_.empty()) {
      file_.document = std::move(value);
      return &file_.document;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }
  bool open(Json container) {
    if (stack_.size() == kMostNested) return fail(fmt::format("nested deeper than {} levels", kMostNested));
    if (stack_.size() == 1) in_model_ = stack_[0]->is_object() && key_ == "model";
    stack_.push_back(place(std::move(container)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }
  bool integer(Json number, uint64_t as_id) {
    if (area_ == Area::scores) return score(number.dump());
    if (area_ != Area::vocabulary) return value(std::move(number));
    if (as_id >= static_cast<uint64_t>(kMostTokens)) {
      return fail(fmt::format("model.vocab[{}]: expected an id from 0 to {}, found {}", Json(token_).dump(),
                              kMostTokens - 1, number.dump()));
    }
    file_.vocabulary.emplace_back(std::move(token_), static_cast<int64_t>(as_id));
    return true;
  }
  bool fail_score() {
    return fail(fmt::format("model.vocab[{}]: expected a token and its score", file_.vocabulary.size()));
  }
  bool scored_text(std::string& text) {
    if (!in_pair_ || has_token_) return fail_score();
    token_ = std::move(text);
    return has_token_ = true;
  }
  bool score(std::string number) {
    if (!in_pair_ || !has_token_ || has_score_) return fail_score();
    score_ = std::move(number);
    return has_score_ = true;
  }
  bool scored_token() {
    if (file_.vocabulary.size() == static_cast<size_t>(kMostTokens))
      return fail(fmt::format("model.vocab: expected at most {} tokens", kMostTokens));
    file_.vocabulary.emplace_back(std::move(token_), static_cast<int64_t>(file_.vocabulary.size()));
    file_.scores.push_back(std::move(score_));
    return true;
  }
  bool value(Json value) {
    if (area_ == Area::scores) return fail_score();
    if (area_ == Area::vocabulary)
      return fail(fmt::format("model.vocab[{}]: expected an id, found {}", Json(token_).dump(), describe(value)));
    if (area_ == Area::merges) {
      return fail(fmt::format("model.merges[{}]: expected \"a b\" or [\"a\", \"b\"], found {}", file_.merges.size(),
                              describe(value)));
    }
    place(std::move(value));
    return true;
  }
  bool merge_text(std::string& text) {
    if (in_pair_) {
      pair_.push_back(std::move(text));
      return true;
    }
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      return fail(fmt::format("model.merges[{}]: expected two tokens with one space between them, found {}",
                              file_.merges.size(), describe(text)));
    }
    file_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    return true;
  }

  TokenizerFile& file_;
  std::vector<Json*> stack_;  // the open containers; an element's address holds while its parent grows no further
  std::string key_, token_;
  std::vector<std::string> pair_;
  Area area_ = Area::document;
  bool in_model_ = false, in_pair_ = false, has_token_ = false, has_score_ = false;
  std::string score_;
  std::string problem_;
};

}  // namespace

double read_score(std::string_view number) {
  const bool negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool after_point = false, full = false;  // full: no further digit has room
  size_t at = 0;
  for (; at < number.size() && number[at] != 'e' && number[at] != 'E'; ++at) {
    if (number[at] == '.') {
      after_point = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(number[at] - '0');
    full = full || digits > (UINT64_MAX - digit) / 10;
    if (full) {
      exponent += after_point ? 0 : 1;
      continue;
    }
    digits = digits * 10 + digit;
    exponent -= after_point ? 1 : 0;
  }
  if (at < number.size()) {
    const int64_t written = std::clamp<int64_t>(std::strtoll(number.data() + at + 1, nullptr, 10), -100000, 100000);
    exponent += written;
  }
  auto value = static_cast<double>(digits);
  for (; exponent < -308 && value != 0; exponent += 308) value /= 1e308;
  const double power = std::strtod(fmt::format("1e{}", std::min<int64_t>(std::abs(exponent), 308)).c_str(), nullptr);
  value = exponent < 0 ? value / power : value * power;
  return negative ? -value : value;
}

Result<TokenizerFile> read_tokenizer_file(std::string_view json, std::string_view source_name) {
  TokenizerFile file;
  Handler handler(file);
  if (!Json::sax_parse(json, &handler)) return input_error("{}: {}", source_name, handler.problem());
  return file;
}

}  // namespace ingot
