// Any bytes as text: they survive encoding and decoding, whole and streamed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/parallel.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingot;
  static const Tokenizer tokenizer = [] {
    const std::string_view text =
        "the quick brown fox's 123 jumps over the lazy dog   \n\n the dog isn't lazy \xE4\xB8\xAD\xE6\x96\x87 the end";
    BpeTrainOptions options;
    options.vocab_size = 300;
    return *train_bpe({&text, 1}, options, ThreadPool(1));
  }();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool parse_special : {false, true}) {
    const auto ids = tokenizer.encode(text, {.parse_special = parse_special});
    INGOT_CHECK(tokenizer.decode(ids) == text, "the bytes changed");
    StreamDecoder decoder(tokenizer);
    std::string streamed;
    for (const TokenId id : ids) streamed += decoder.push(id);
    INGOT_CHECK(streamed + decoder.flush() == text, "the streamed bytes changed");
  }
  return 0;
}
