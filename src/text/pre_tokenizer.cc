#include "text/pre_tokenizer.h"

#include "text/gpt_scanner.h"
#include "text/json_reader.h"
#include "text/regex.h"

namespace ingot {
namespace {

constexpr int kMostNested = 16;

class ScannerSplitter final : public Splitter {
 public:
  explicit ScannerSplitter(GptScanner scanner) : scanner_(scanner) {}
  void split(std::string_view text, EmitPiece emit) const override { scanner_.split(text, emit); }

 private:
  GptScanner scanner_;
};

class RegexSplitter final : public Splitter {
 public:
  RegexSplitter(Regex regex, SplitRule rule) : regex_(std::move(regex)), rule_(rule) {}
  void split(std::string_view text, EmitPiece emit) const override {
    const auto give = [&](size_t begin, size_t end, bool is_match) {
      if (begin < end && !(rule_.remove_matches && is_match != rule_.invert)) emit(text.substr(begin, end - begin));
    };
    size_t done = 0;
    regex_.find_all(text, [&](size_t begin, size_t end) {
      begin = std::max(begin, done);  // \K may have put it before
      give(done, begin, false);
      give(begin, end, true);
      done = std::max(done, end);
    });
    give(done, text.size(), false);
  }

 private:
  Regex regex_;
  SplitRule rule_;
};

std::string quote_for_regex(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (std::string_view(R"(\^$.[]|()?*+{}-#&~)").find(c) != std::string_view::npos) quoted += '\\';
    quoted += c;
  }
  return quoted;
}

Result<std::string> read_pattern(const JsonPlace& pattern) {
  INGOT_TRY(pattern.is_object_with({"Regex", "String"}));
  if (!pattern["Regex"].is_null()) return pattern["Regex"].string();
  INGOT_ASSIGN(const std::string text, pattern["String"].string());
  return quote_for_regex(text);
}

Result<std::shared_ptr<const Splitter>> read_split(const JsonPlace& place) {
  INGOT_TRY(place.is_object_with({"type", "pattern", "behavior", "invert"}));
  INGOT_ASSIGN(const std::string pattern, read_pattern(place["pattern"]));
  INGOT_ASSIGN(const std::string behavior, place["behavior"].string());
  if (behavior != "Isolated" && behavior != "Removed") {
    return place["behavior"].unsupported(fmt::format("the behavior {} (known: Isolated, Removed)", describe(behavior)));
  }
  SplitRule rule{.remove_matches = behavior == "Removed"};
  INGOT_ASSIGN(rule.invert, place["invert"].boolean_or(false));
  auto splitter = make_regex_splitter(pattern, rule);
  if (!splitter.ok()) return place["pattern"].wrong(splitter.error().message);
  return splitter;
}

}  // namespace

Result<std::shared_ptr<const Splitter>> make_regex_splitter(const std::string& pattern, SplitRule rule,
                                                            bool allow_scanner) {
  // The known patterns match every character: between the matches are only bytes that are not valid UTF-8, and those
  // stay.
  if (allow_scanner && rule.remove_matches == rule.invert) {
    if (const auto scanner = GptScanner::for_pattern(pattern)) {
      return std::shared_ptr<const Splitter>(std::make_shared<ScannerSplitter>(*scanner));
    }
  }
  INGOT_ASSIGN(Regex regex, Regex::compile(pattern));
  return std::shared_ptr<const Splitter>(std::make_shared<RegexSplitter>(std::move(regex), rule));
}

Status PreTokenizer::add(const JsonPlace& place, int depth) {
  INGOT_ASSIGN(const std::string type, place.type());
  if (byte_level_) return place.unsupported("a pre-tokenizer after ByteLevel");
  if (type == "Sequence") {
    INGOT_TRY(place.is_object_with({"type", "pretokenizers"}));
    const JsonPlace list = place["pretokenizers"];
    INGOT_TRY(list.is_array());
    if (depth == kMostNested) return place.unsupported("a Sequence nested this deep");
    for (size_t i = 0; i < list.value().size(); ++i) INGOT_TRY(add(list[i], depth + 1));
    return {};
  }
  Stage stage;
  if (type == "ByteLevel") {
    INGOT_TRY(place.is_object_with({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    INGOT_ASSIGN(stage.prefix_space, place["add_prefix_space"].boolean_or(true));
    INGOT_TRY(place["trim_offsets"].boolean_or(true));
    INGOT_ASSIGN(const bool use_regex, place["use_regex"].boolean_or(true));
    if (use_regex) {
      INGOT_ASSIGN(stage.splitter, make_regex_splitter(std::string(kGpt2Pattern), {}));
    }
    byte_level_ = true;
  } else if (type == "Split") {
    INGOT_ASSIGN(stage.splitter, read_split(place));
  } else {
    return place["type"].unsupported(
        fmt::format("the pre-tokenizer {} (known: ByteLevel, Split, Sequence)", describe(type)));
  }
  if (stage.splitter == nullptr && !stage.prefix_space) return {};
  if (stages_.size() == kMostNested) return place.unsupported("a Sequence this long");
  stages_.push_back(std::move(stage));
  return {};
}

Result<PreTokenizer> PreTokenizer::read(const JsonPlace& place) {
  PreTokenizer pre_tokenizer;
  if (!place.is_null()) INGOT_TRY(pre_tokenizer.add(place, 0));
  return pre_tokenizer;
}

void PreTokenizer::split_from(size_t index, std::string_view text, EmitPiece emit) const {
  if (text.empty()) return;
  if (index == stages_.size()) return emit(text);
  const Stage& stage = stages_[index];
  std::string prefixed;
  if (stage.prefix_space && text.front() != ' ') {
    prefixed.reserve(text.size() + 1);
    prefixed.append(" ").append(text);
    text = prefixed;
  }
  if (stage.splitter == nullptr) return split_from(index + 1, text, emit);
  if (index + 1 == stages_.size()) return stage.splitter->split(text, emit);
  stage.splitter->split(text, [&](std::string_view piece) { split_from(index + 1, piece, emit); });
}

}  // namespace ingot
