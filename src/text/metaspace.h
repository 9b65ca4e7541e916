// MetaspaceRule: how spaces are written in tokens (as U+2581 mostly): the pre-tokenizer and decoder Metaspace.
#pragma once

#include <string>

#include "base/result.h"

namespace ingot {

class JsonPlace;

struct MetaspaceRule {
  enum class Prepend { always, first, never };
  std::string replacement;            // one character, for each space
  Prepend prepend = Prepend::always;  // also before each stretch of text, before the first one, or not
  bool split = true;                  // each replacement begins a piece

  static Result<MetaspaceRule> read(const JsonPlace& place);
};

}  // namespace ingot
