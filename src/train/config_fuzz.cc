// Arbitrary bytes as a configuration: an error or a configuration that writes and reads back, never a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "train/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = ingot::parse_config(text, "fuzz.yaml");
  if (!config.ok()) return 0;
  const auto again = ingot::parse_config(ingot::to_yaml(*config), "again.yaml");
  INGOT_CHECK(again.ok() && *again == *config, "what was written does not read back");
  return 0;
}
