// Any bytes as a model.safetensors.index.json: an error, or shards that all lie beside it.
#include <cstdlib>

#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto shards = ingot::parse_safetensors_index({reinterpret_cast<const char*>(data), size}, "input");
  if (!shards.ok()) return 0;
  for (const auto& [tensor, shard] : *shards)
    if (!ingot::is_plain_file_name(shard)) std::abort();
  return 0;
}
