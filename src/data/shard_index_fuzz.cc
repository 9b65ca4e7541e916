// Any bytes as index.json: no crash, and what is accepted prints and parses to the same.
#include <string>

#include "base/check.h"
#include "data/shards.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = ingot::ShardIndex::parse({reinterpret_cast<const char*>(data), size}, "index.json");
  if (!index.ok()) return 0;
  const std::string json = index->to_json();
  const auto again = ingot::ShardIndex::parse(json, "index.json");
  INGOT_CHECK(again.ok() && again->to_json() == json, "an index changed by printing it");
  return 0;
}
