#include "train/run_state.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace ingot {
namespace {

// The whole numbers of the state, named once for writing and reading.
struct Counter {
  const char* key;
  int64_t RunState::*member;
};
constexpr Counter kCounters[] = {{"step", &RunState::step},
                                 {"updates", &RunState::updates},
                                 {"tokens", &RunState::tokens},
                                 {"skipped", &RunState::skipped},
                                 {"consecutive_skips", &RunState::consecutive_skips},
                                 {"micro_batch_size", &RunState::micro_batch_size},
                                 {"total_steps", &RunState::total_steps}};

// The value of a key, which should be a whole number from 0 on.
Result<int64_t> whole_number(const nlohmann::json& json, const char* key, std::string_view source_name) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_number_integer() || it->get<int64_t>() < 0)
    return input_error("{}: the key \"{}\" should be a whole number from 0 on", source_name, key);
  return it->get<int64_t>();
}

}  // namespace

std::string RunState::to_json() const {
  nlohmann::ordered_json json;
  for (const Counter& counter : kCounters) json[counter.key] = this->*counter.member;
  json["loss_scale"] = loss_scale;
  if (clean_steps) json["clean_steps"] = *clean_steps;
  json["cursor"] = cursor_to_json(cursor);
  return json.dump(1);
}

Result<RunState> RunState::parse(std::string_view text, std::string_view source_name) {
  const nlohmann::json json = parse_json<nlohmann::json>(text);
  if (!json.is_object()) return input_error("{}: expected a JSON object with the run's counters", source_name);
  RunState state;
  for (const Counter& counter : kCounters) {
    INGOT_ASSIGN(state.*counter.member, whole_number(json, counter.key, source_name));
  }
  if (!json.contains("loss_scale") || !json["loss_scale"].is_number() || !(json["loss_scale"].get<double>() > 0))
    return input_error("{}: the key \"loss_scale\" should be a number above 0", source_name);
  state.loss_scale = json["loss_scale"].get<double>();
  if (json.contains("clean_steps")) {
    INGOT_ASSIGN(state.clean_steps, whole_number(json, "clean_steps", source_name));
  }
  if (!json.contains("cursor")) return input_error("{}: the key \"cursor\" is missing", source_name);
  INGOT_ASSIGN(state.cursor, cursor_from_json(json["cursor"], source_name));
  return state;
}

}  // namespace ingot
