// Any bytes as a chat template: refused with a message, or run within its limits.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingot;
  static const Json messages = {{{"role", "system"}, {"content", "Be brief."}},
                                {{"role", "user"}, {"content", "Hi <there>\n"}},
                                {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {{{"name", "f"}}}}}};
  const auto parsed = ChatTemplate::parse({reinterpret_cast<const char*>(data), size}, "fuzz", {{"bos_token", "<s>"}});
  if (parsed.ok()) (void)parsed->render(messages, true);
  return 0;
}
