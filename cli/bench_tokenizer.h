// Measuring a tokenizer on one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace ingot::cli {

struct TokenizerBench {
  int64_t bytes = 0, tokens = 0;
  double encode_mb_per_s = 0, decode_mb_per_s = 0;  // of text, the median
  double read_gbytes_per_s = 0;                     // what memory gives one thread: the limit
};

// The file's text in one piece, `repetitions` times after one of warm-up.
Result<TokenizerBench> bench_tokenizer(const std::string& tokenizer, const std::string& file, int64_t repetitions);

}  // namespace ingot::cli
