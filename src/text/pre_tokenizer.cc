#include "text/pre_tokenizer.h"

#include <algorithm>
#include <array>

#include "text/char_properties.h"
#include "text/gpt_scanner.h"
#include "text/json_reader.h"
#include "text/normalizer.h"
#include "text/regex.h"
#include "text/utf8.h"

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

// Turns matches and what lies between them, given in order, into pieces by a rule.
class SpanFolder {
 public:
  SpanFolder(SplitRule rule, std::string_view text, EmitPiece emit) : rule_(rule), text_(text), emit_(emit) {}

  // [begin, end) follows what came before.
  void add(size_t begin, size_t end, bool matches) {
    const bool is_match = matches != rule_.invert;
    if (rule_.behavior == SplitRule::Behavior::removed && is_match) {
      give();
      begin_ = end_ = end;
    } else if (joins(is_match)) {
      end_ = end;
    } else {
      give();
      begin_ = begin;
      end_ = end;
    }
    last_is_match_ = is_match;
    first_ = false;
  }
  void finish() { give(); }

 private:
  using Behavior = SplitRule::Behavior;
  bool joins(bool is_match) const {
    if (first_) return false;
    switch (rule_.behavior) {
      case Behavior::merged_with_previous:
        return is_match && !last_is_match_;
      case Behavior::merged_with_next:
        return !is_match && last_is_match_;
      case Behavior::contiguous:
        return is_match == last_is_match_;
      default:
        return false;
    }
  }
  void give() {
    if (begin_ < end_) emit_(text_.substr(begin_, end_ - begin_));
    begin_ = end_;
  }

  SplitRule rule_;
  std::string_view text_;
  EmitPiece emit_;
  size_t begin_ = 0, end_ = 0;  // the piece that is still open
  bool last_is_match_ = false, first_ = true;
};

class RegexSplitter final : public Splitter {
 public:
  RegexSplitter(Regex regex, SplitRule rule) : regex_(std::move(regex)), rule_(rule) {}
  void split(std::string_view text, EmitPiece emit) const override {
    SpanFolder folder(rule_, text, emit);
    size_t done = 0;
    regex_.find_all(text, [&](size_t begin, size_t end) {
      begin = std::max(begin, done);  // \K may have put it before
      end = std::max(begin, end);
      if (done < begin) folder.add(done, begin, false);
      folder.add(begin, end, true);
      done = end;
    });
    if (done < text.size()) folder.add(done, text.size(), false);
    folder.finish();
  }

 private:
  Regex regex_;
  SplitRule rule_;
};

using CharTest = bool (*)(char32_t code);

// Each character that passes a test is a match.
class CharSplitter final : public Splitter {
 public:
  CharSplitter(CharTest test, SplitRule rule) : test_(test), rule_(rule) {
    for (size_t i = 0; i < ascii_.size(); ++i) ascii_[i] = test(static_cast<char32_t>(i));
  }
  void split(std::string_view text, EmitPiece emit) const override {
    SpanFolder folder(rule_, text, emit);
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = decode_utf8(bytes + at, bytes + text.size());
      const size_t size = std::max<size_t>(c.size, 1);
      if (c.size > 0 && (c.code < 0x80 ? ascii_[c.code] : test_(c.code))) {
        if (done < at) folder.add(done, at, false);
        folder.add(at, at + size, true);
        done = at + size;
      }
      at += size;
    }
    if (done < text.size()) folder.add(done, text.size(), false);
    folder.finish();
  }

 private:
  CharTest test_;
  SplitRule rule_;
  std::array<bool, 128> ascii_;
};

// Runs of word characters and runs of what is neither word nor space: \w+|[^\w\s]+.
class WordSplitter final : public Splitter {
 public:
  void split(std::string_view text, EmitPiece emit) const override {
    enum class Kind { space, word, other };
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    Kind open = Kind::space;
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = decode_utf8(bytes + at, bytes + text.size());
      const Kind kind = c.size == 0                  ? Kind::other
                        : is_whitespace_word(c.code) ? Kind::word
                        : is_white_space(c.code)     ? Kind::space
                                                     : Kind::other;
      if (kind != open) {
        if (open != Kind::space) emit(text.substr(begin, at - begin));
        begin = at;
        open = kind;
      }
      at += std::max<size_t>(c.size, 1);
    }
    if (open != Kind::space) emit(text.substr(begin));
  }
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

Result<SplitRule::Behavior> read_behavior(const JsonPlace& place) {
  using Behavior = SplitRule::Behavior;
  INGOT_ASSIGN(const std::string name, place.string());
  if (name == "Isolated") return Behavior::isolated;
  if (name == "Removed") return Behavior::removed;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  return place.unsupported(fmt::format(
      "the behavior {} (known: Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous)", describe(name)));
}

Result<std::shared_ptr<const Splitter>> read_split(const JsonPlace& place) {
  INGOT_TRY(place.is_object_with({"type", "pattern", "behavior", "invert"}));
  INGOT_ASSIGN(const std::string pattern, read_pattern(place["pattern"]));
  SplitRule rule;
  INGOT_ASSIGN(rule.behavior, read_behavior(place["behavior"]));
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
  const bool all_stay =
      rule.invert ? rule.behavior == SplitRule::Behavior::removed : rule.behavior == SplitRule::Behavior::isolated;
  if (allow_scanner && all_stay) {
    if (const auto scanner = GptScanner::for_pattern(pattern)) {
      return std::shared_ptr<const Splitter>(std::make_shared<ScannerSplitter>(*scanner));
    }
  }
  INGOT_ASSIGN(Regex regex, Regex::compile(pattern));
  return std::shared_ptr<const Splitter>(std::make_shared<RegexSplitter>(std::move(regex), rule));
}

Result<PreTokenizer::Stage> PreTokenizer::read_stage(const std::string& type, const JsonPlace& place) {
  using Behavior = SplitRule::Behavior;
  Stage stage;
  if (type == "ByteLevel") {
    INGOT_TRY(place.is_object_with({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    INGOT_ASSIGN(stage.prefix_space, place["add_prefix_space"].boolean_or(true));
    INGOT_TRY(place["trim_offsets"].boolean_or(true));
    INGOT_ASSIGN(const bool use_regex, place["use_regex"].boolean_or(true));
    if (use_regex) {
      INGOT_ASSIGN(stage.splitter, make_regex_splitter(std::string(kGpt2Pattern), {}));
    }
  } else if (type == "Split") {
    INGOT_ASSIGN(stage.splitter, read_split(place));
  } else if (type == "Metaspace") {
    INGOT_ASSIGN(stage.metaspace, MetaspaceRule::read(place));
  } else if (type == "CharDelimiterSplit") {
    INGOT_TRY(place.is_object_with({"type", "delimiter"}));
    INGOT_ASSIGN(const std::string delimiter, place["delimiter"].string());
    if (delimiter.empty()) return place["delimiter"].expected("one character");
    INGOT_ASSIGN(stage.splitter, make_regex_splitter(quote_for_regex(delimiter), {Behavior::removed}));
  } else if (type == "Punctuation") {
    INGOT_TRY(place.is_object_with({"type", "behavior"}));
    SplitRule rule;
    if (!place["behavior"].is_null()) {
      INGOT_ASSIGN(rule.behavior, read_behavior(place["behavior"]));
    }
    stage.splitter = std::make_shared<CharSplitter>(is_punctuation, rule);
  } else if (type == "Digits") {
    INGOT_TRY(place.is_object_with({"type", "individual_digits"}));
    INGOT_ASSIGN(const bool each, place["individual_digits"].boolean_or(false));
    stage.splitter =
        std::make_shared<CharSplitter>(is_numeric, SplitRule{each ? Behavior::isolated : Behavior::contiguous});
  } else {
    INGOT_TRY(place.is_object_with({"type"}));
    if (type == "Whitespace") {
      stage.splitter = std::make_shared<WordSplitter>();
    } else {
      stage.splitter = std::make_shared<CharSplitter>(is_white_space, SplitRule{Behavior::removed});
    }
  }
  return stage;
}

Result<std::vector<PreTokenizer::Stage>> PreTokenizer::read_stages(const std::string& type, const JsonPlace& place) {
  INGOT_ASSIGN(Stage stage, read_stage(type, place));
  std::vector<Stage> stages;
  if (stage.splitter != nullptr || stage.prefix_space || stage.metaspace) stages.push_back(std::move(stage));
  if (type == "BertPreTokenizer")  // after white space
    stages.emplace_back().splitter = std::make_shared<CharSplitter>(is_punctuation, SplitRule{});
  return stages;
}

Status PreTokenizer::add(const JsonPlace& place, int depth) {
  static constexpr std::string_view kKnown[] = {
      "ByteLevel",        "Split",       "Metaspace", "Whitespace",         "WhitespaceSplit",
      "BertPreTokenizer", "Punctuation", "Digits",    "CharDelimiterSplit", "Sequence"};
  INGOT_ASSIGN(const std::string type, place.type());
  if (byte_level_) return place.unsupported("a pre-tokenizer after ByteLevel");
  if (std::ranges::find(kKnown, type) == std::end(kKnown)) {
    return place["type"].unsupported(
        fmt::format("the pre-tokenizer {} (known: {})", describe(type), fmt::join(kKnown, ", ")));
  }
  if (type == "Sequence") {
    INGOT_TRY(place.is_object_with({"type", "pretokenizers"}));
    const JsonPlace list = place["pretokenizers"];
    INGOT_TRY(list.is_array());
    if (depth == kMostNested) return place.unsupported("a Sequence nested this deep");
    for (size_t i = 0; i < list.value().size(); ++i) INGOT_TRY(add(list[i], depth + 1));
    return {};
  }
  INGOT_ASSIGN(std::vector<Stage> stages, read_stages(type, place));
  byte_level_ = type == "ByteLevel";
  if (stages_.size() + stages.size() > kMostNested) return place.unsupported("a Sequence this long");
  for (Stage& stage : stages) stages_.push_back(std::move(stage));
  return {};
}

Result<PreTokenizer> PreTokenizer::read(const JsonPlace& place) {
  PreTokenizer pre_tokenizer;
  if (!place.is_null()) INGOT_TRY(pre_tokenizer.add(place, 0));
  return pre_tokenizer;
}

void PreTokenizer::split_from(size_t index, std::string_view text, bool at_start, EmitPiece emit) const {
  if (text.empty()) return;
  if (index == stages_.size()) return emit(text);
  const Stage& stage = stages_[index];
  const bool is_last = index + 1 == stages_.size();
  const auto go_on = [&](std::string_view piece) {
    if (is_last) return emit(piece);
    split_from(index + 1, piece, at_start && piece.data() == text.data(), emit);
  };
  std::string changed;
  if (stage.prefix_space && text.front() != ' ') {
    changed.reserve(text.size() + 1);
    changed.append(" ").append(text);
    text = changed;
  }
  if (stage.metaspace) {
    const MetaspaceRule& metaspace = *stage.metaspace;
    const std::string& mark = metaspace.replacement;
    changed = replace_all(text, " ", mark);
    const bool prepends = metaspace.prepend == MetaspaceRule::Prepend::always ||
                          (metaspace.prepend == MetaspaceRule::Prepend::first && at_start);
    if (prepends && !changed.starts_with(mark)) changed.insert(0, mark);
    text = changed;
    if (!metaspace.split) return go_on(text);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(mark, begin + 1), text.size());
      go_on(text.substr(begin, end - begin));
      begin = end;
    }
    return;
  }
  if (stage.splitter == nullptr) return go_on(text);
  if (is_last) return stage.splitter->split(text, emit);
  stage.splitter->split(text, go_on);
}

}  // namespace ingot
