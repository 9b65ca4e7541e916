// Any bytes as the tokenizer_config.json and the generation_config.json of a model (whose keys are not the same): an
// error, or roles that tokens of the vocabulary have, and a chat template.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/chat_template.h"
#include "text/tokenizer_json.h"

namespace {

using namespace ingot;

std::shared_ptr<TokenizerParts> make_parts() {
  const std::string_view json = R"({"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false},
      "model": {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": {"?": 0, "<s>": 1, "</s>": 2, "a": 4}}})";
  const auto file = read_tokenizer_file(json, "fuzz");
  INGOT_CHECK(file.ok(), "{}", file.error().message);
  auto parts = build_tokenizer(*file, "fuzz");
  INGOT_CHECK(parts.ok(), "{}", parts.error().message);
  (*parts)->sentencepiece = "a .model, of which the configuration says what a text gets at its ends";
  return *parts;
}

void check_id(TokenId id) {
  INGOT_CHECK(id >= 0 && id <= 4 && id != 3, "id {}", id);
}

void read_roles(const Json& config) {
  static const auto parts = make_parts();
  parts->bos = parts->eos = std::nullopt;
  parts->ends.clear();
  parts->post_processor = {};
  if (!read_token_roles({config, "fuzz", ""}, {config, "fuzz", ""}, *parts).ok()) return;
  check_id(parts->bos.value_or(0));
  check_id(parts->eos.value_or(0));
  for (const TokenId id : parts->ends) check_id(id);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = parse_json_object({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!config.ok()) return 0;
  read_roles(*config);
  static const Json messages = {{{"role", "user"}, {"content", "Hi"}}};
  const auto chat = ChatTemplate::of_config(*config, "fuzz");
  if (chat.ok() && *chat) (void)(*chat)->render(messages, true);
  return 0;
}
