// The format of Hugging Face's tokenizer.json, both ways. Internal to text/.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/json_reader.h"
#include "text/tokenizer_parts.h"

namespace ingot {

// A tokenizer.json as read: the vocabulary and the merges, which are large, apart from the rest.
struct TokenizerFile {
  Json document;                                            // without model.vocab and model.merges
  std::vector<std::pair<std::string, int64_t>> vocabulary;  // model.vocab
  std::vector<std::pair<std::string, std::string>> merges;  // model.merges
  bool is_scored = false;                                   // model.vocab is a list of tokens and scores (Unigram)
  std::vector<std::string> scores;                          // by id, where it is: the numbers as written
};
Result<TokenizerFile> read_tokenizer_file(std::string_view json, std::string_view source_name);

// A number as Hugging Face's library reads it: its digits as one integer, rounded to double, times or divided by a
// power of ten, rounded again. That may be one place in the last bit from the nearest double, and decides between paths
// whose sums are equal but for rounding.
double read_score(std::string_view number);

// Checks the file's parts against each other and builds the tokenizer. BOS and EOS are taken by their well-known names.
Result<std::shared_ptr<TokenizerParts>> build_tokenizer(const TokenizerFile& file, std::string_view source_name);

std::string write_tokenizer_json(const TokenizerParts& parts);

// BOS and EOS as tokenizer_config.json and generation_config.json beside a tokenizer.json say, where they do.
Status read_token_roles(const std::string& directory, TokenizerParts& parts);
// The same from what the two files hold: an object or null each.
Status read_token_roles(const JsonPlace& tokenizer_config, const JsonPlace& generation_config, TokenizerParts& parts);

}  // namespace ingot
