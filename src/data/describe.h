// A batch in words, for a person who asks what the model sees.
#pragma once

#include <cstdint>
#include <string>

#include "data/batch.h"
#include "text/tokenizer.h"

namespace ingot {

struct DescribeOptions {
  int64_t max_rows = 4;
  int64_t max_tokens = 64;  // of a row
};

// Of each row: its documents, and a line a token with its text, target, first visible position and position id.
// `tokenizer` may be null.
std::string describe_batch(const Batch& batch, const Tokenizer* tokenizer, const DescribeOptions& options = {});

// The bytes of one token in double quotes, on one line: what is not printable UTF-8 is escaped.
std::string quoted_token(const Tokenizer& tokenizer, int32_t id);

}  // namespace ingot
