// Any bytes as a checkpoint's state.json: an error, or a state that writes and reads back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "train/run_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto state = ingot::RunState::parse({reinterpret_cast<const char*>(data), size}, "state.json");
  if (!state.ok()) return 0;
  const auto again = ingot::RunState::parse(state->to_json(), "again.json");
  INGOT_CHECK(again.ok() && *again == *state, "what was written does not read back");
  return 0;
}
