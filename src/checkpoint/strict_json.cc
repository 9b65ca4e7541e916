#include "checkpoint/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace ingot {
namespace {

// Walks the document without building anything and stops at the first fault. The parser keeps its nesting in a bit
// vector, not on the call stack, so that depth is ours to bound.
class Checker : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Checker(int max_depth) : max_depth_(static_cast<size_t>(max_depth)) {}
  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    problem_ = fmt::format("the key \"{}\" occurs twice", name);
    return false;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    problem_ = fmt::format("malformed JSON at byte {}", position);
    return false;
  }

 private:
  bool enter() {
    keys_.emplace_back();
    if (keys_.size() <= max_depth_) return true;
    problem_ = fmt::format("JSON nested deeper than {} levels", max_depth_);
    return false;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  size_t max_depth_;
  std::vector<std::set<std::string, std::less<>>> keys_;  // one set for each open object or array
  std::string problem_;
};

}  // namespace

Result<nlohmann::json> parse_strict_json(std::string_view text, const std::string& where, int max_depth) {
  Checker checker(max_depth);
  if (!nlohmann::json::sax_parse(text, &checker)) return input_error("{}: {}", where, checker.problem());
  nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) return input_error("{}: malformed JSON", where);
  return document;
}

}  // namespace ingot
