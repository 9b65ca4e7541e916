// Any text as a manifest whose checksum is right: an error, or pieces that tile their tensors and a text that reads
// back.
#include <cstdlib>

#include "base/hash.h"
#include "checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  const auto manifest =
      ingot::parse_manifest(body + "\n\"checksum\":\"" + ingot::hash_text(ingot::hash_bytes(body)) + "\"}\n", "input");
  if (!manifest.ok()) return 0;
  const auto text = ingot::render_manifest(*manifest);
  if (!text.ok() || !ingot::parse_manifest(*text, "again").ok()) std::abort();
  return 0;
}
