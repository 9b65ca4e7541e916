// The pre-tokenisers of GPT-2 and of Llama 3, Qwen and cl100k, written by hand: the same pieces as their regexes,
// nearly four times as fast as PCRE2's JIT on English text (BM_Split* in text_bench.cc). The tests compare both on all
// code points.
#pragma once

#include <optional>
#include <string_view>

#include "base/parallel.h"

namespace ingot {

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
extern const std::string_view kGpt2Pattern;

class GptScanner {
 public:
  // The scanner that equals this pattern, if there is one.
  static std::optional<GptScanner> for_pattern(std::string_view pattern);
  // Calls emit for each piece; together they are the text. Bytes that are not valid UTF-8 are ends of text to the
  // pattern; each run of them is a piece.
  void split(std::string_view text, FunctionRef<void(std::string_view piece)> emit) const;

 private:
  enum class Style { gpt2, cl100k };
  GptScanner(Style style, int max_digits) : style_(style), max_digits_(max_digits) {}
  Style style_;
  int max_digits_;  // \p{N}{1,max_digits}, in the style of cl100k
};

}  // namespace ingot
