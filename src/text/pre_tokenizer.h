// PreTokenizer: cuts text into pieces that the model encodes one by one. ByteLevel, Split (by regex or string),
// Metaspace, Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, Digits, CharDelimiterSplit and sequences of
// them. Known regexes run on a scanner of our own (text/gpt_scanner.h), all others on PCRE2.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "base/result.h"
#include "text/metaspace.h"

namespace ingot {

class JsonPlace;

using EmitPiece = FunctionRef<void(std::string_view piece)>;

// Cuts a text; the pieces are parts of it, in order. Immutable, thread-safe.
class Splitter {
 public:
  virtual ~Splitter() = default;
  virtual void split(std::string_view text, EmitPiece emit) const = 0;
};

// What becomes of the matches of a pattern. With `invert` what lies between the matches counts as the matches.
struct SplitRule {
  enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };
  Behavior behavior = Behavior::isolated;
  bool invert = false;
};
Result<std::shared_ptr<const Splitter>> make_regex_splitter(const std::string& pattern, SplitRule rule,
                                                            bool allow_scanner = true);

class PreTokenizer {
 public:
  PreTokenizer() = default;  // one piece: the text
  // The "pre_tokenizer" of a tokenizer.json; null leaves the text whole.
  static Result<PreTokenizer> read(const JsonPlace& place);

  // Pieces are parts of text, except after a prefix space or Metaspace, where they live until emit returns. None is
  // empty. at_start: text begins where the whole text begins.
  void split(std::string_view text, bool at_start, EmitPiece emit) const { split_from(0, text, at_start, emit); }
  // Whether the model sees bytes (ByteLevel) or characters.
  bool byte_level() const { return byte_level_; }

 private:
  struct Stage {
    bool prefix_space = false;                 // first
    std::optional<MetaspaceRule> metaspace;    // or this
    std::shared_ptr<const Splitter> splitter;  // then; none: the piece stays whole
  };
  static Result<Stage> read_stage(const std::string& type, const JsonPlace& place);
  static Result<std::vector<Stage>> read_stages(const std::string& type, const JsonPlace& place);
  Status add(const JsonPlace& place, int depth);
  void split_from(size_t stage, std::string_view text, bool at_start, EmitPiece emit) const;
  std::vector<Stage> stages_;
  bool byte_level_ = false;
};

}  // namespace ingot
