// PreTokenizer: cuts text into pieces that the model encodes one by one. ByteLevel, Split (Isolated or Removed, by
// regex or string) and sequences of them. Known regexes run on a scanner of our own (text/gpt_scanner.h), all others on
// PCRE2.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "base/result.h"

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
  bool remove_matches = false;
  bool invert = false;
};
Result<std::shared_ptr<const Splitter>> make_regex_splitter(const std::string& pattern, SplitRule rule,
                                                            bool allow_scanner = true);

class PreTokenizer {
 public:
  PreTokenizer() = default;  // one piece: the text
  // The "pre_tokenizer" of a tokenizer.json; null leaves the text whole.
  static Result<PreTokenizer> read(const JsonPlace& place);

  // Pieces are parts of text, except those that a prefix space was put before, which live until emit returns. None is
  // empty.
  void split(std::string_view text, EmitPiece emit) const { split_from(0, text, emit); }
  // Whether the model sees bytes (ByteLevel) or characters.
  bool byte_level() const { return byte_level_; }

 private:
  struct Stage {
    bool prefix_space = false;                 // first
    std::shared_ptr<const Splitter> splitter;  // then; none: the piece stays whole
  };
  Status add(const JsonPlace& place, int depth);
  void split_from(size_t stage, std::string_view text, EmitPiece emit) const;
  std::vector<Stage> stages_;
  bool byte_level_ = false;
};

}  // namespace ingot
