// Cursor: where in its data a run is.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"

namespace ingot {

// All that is needed to go on: the order of the samples is a function of seed and sample number. It does not depend on
// ranks or batch sizes, so a run may continue with others.
struct Cursor {
  int64_t samples = 0;        // sequences consumed since the run began, over all ranks
  int64_t epoch = 0;          // derived from `samples`, for people: samples / sequences per epoch
  int64_t epoch_samples = 0;  // and the rest
  uint64_t data = 0;          // fingerprint of the data, its order and settings; 0: not known
  bool operator==(const Cursor&) const = default;
};

nlohmann::ordered_json cursor_to_json(const Cursor& cursor);
// ErrorKind::input that names `source_name` and the key.
Result<Cursor> cursor_from_json(const nlohmann::json& json, std::string_view source_name);

}  // namespace ingot
