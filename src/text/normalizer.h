// Normalizer: changes text before it is cut into pieces. Prepend, Replace (of a string or regex), NFC, NFD, NFKC, NFKD,
// Lowercase, StripAccents, Strip, Nmt, BertNormalizer, Precompiled and sequences of them; bytes that are not valid
// UTF-8 stay as they are.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/sentencepiece_normalizer.h"

namespace ingot {

class JsonPlace;

class Normalizer {
 public:
  Normalizer() = default;  // changes nothing
  // The "normalizer" of a tokenizer.json; null changes nothing.
  static Result<Normalizer> read(const JsonPlace& place);
  explicit Normalizer(SentencePieceNormalizer sentencepiece);

  bool empty() const { return steps_.empty(); }
  // at_start: the text begins a whole text.
  std::string apply(std::string_view text, bool at_start = true) const;

 private:
  struct Step {
    std::function<std::string(std::string_view text, bool at_start)> apply;
    size_t growth = 1;  // how many times as long it may make a text, where that is up to the file
  };
  static Result<Step> read_step(const std::string& type, const JsonPlace& place);
  Status add(const JsonPlace& place, int depth);
  std::vector<Step> steps_;
  size_t growth_ = 1;
};

std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// The "pattern" of a Replace, which must be {"String": text} with text not empty.
Result<std::string> read_string_pattern(const JsonPlace& pattern);

}  // namespace ingot
