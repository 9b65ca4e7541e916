// Any bytes as a SentencePiece .model: refused with a message, or loaded and used.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingot;
  const std::string bytes = "\n" + std::string(reinterpret_cast<const char*>(data), size);  // how every .model begins
  const auto tokenizer = Tokenizer::parse(bytes, "fuzz");
  if (!tokenizer.ok()) return 0;
  const std::string_view text =
      "Hello, world's  <s>\n\xFF 12 \xEF\xAC\x81"
      "e\xCC\x81";
  const auto ids = tokenizer->encode(text, {.parse_special = true, .add_special = true});
  for (const TokenId id : ids) INGOT_CHECK(id >= 0 && id < tokenizer->vocab_size(), "id {}", id);
  (void)tokenizer->decode(ids);
  return 0;
}
