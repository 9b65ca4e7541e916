// Any bytes as a tokenizer.json: refused with a message, or loaded, used and written to what loads back equal.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/log.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingot;
  set_log_level(LogLevel::error);
  const auto tokenizer = Tokenizer::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!tokenizer.ok()) return 0;
  const auto again = Tokenizer::parse(tokenizer->to_file(), "saved");
  INGOT_CHECK(again.ok(), "{}", again.ok() ? "" : again.error().message);
  INGOT_CHECK(again->fingerprint() == tokenizer->fingerprint(), "another fingerprint after saving");
  const std::string_view text = "Hello, world's  <s>\n\xFF 12";
  const auto ids = tokenizer->encode(text, {.parse_special = true, .add_special = true});
  INGOT_CHECK(ids == again->encode(text, {.parse_special = true, .add_special = true}), "other ids after saving");
  (void)tokenizer->decode(ids);
  return 0;
}
