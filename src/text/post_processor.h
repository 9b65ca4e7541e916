// PostProcessor: the special tokens that a whole text gets at its ends (TemplateProcessing, BertProcessing,
// RobertaProcessing; single sequences).
// ByteLevel changes offsets only, which Ingot does not have.
#pragma once

#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace ingot {

class JsonPlace;

struct PostProcessor {
  std::vector<TokenId> before, after;

  // The "post_processor" of a tokenizer.json; null adds nothing. Ids must be of the vocabulary.
  static Result<PostProcessor> read(const JsonPlace& place, const Vocabulary& vocabulary);
};

}  // namespace ingot
