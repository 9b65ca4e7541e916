#include "train/run_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ingot {
namespace {

RunState scaled_state() {
  return {.step = 40,
          .updates = 37,
          .tokens = 81920,
          .skipped = 3,
          .consecutive_skips = 1,
          .loss_scale = 8192.1,
          .clean_steps = 11,
          .cursor = {160, 1, 60, 0xfedcba9876543210u},
          .micro_batch_size = 2,
          .total_steps = 100};
}

RunState read(const nlohmann::json& json) {
  return RunState::parse(json.dump(), "state.json").value();
}

TEST(RunState, ReadsBackWhatItWrote) {
  RunState state = scaled_state();
  EXPECT_EQ(RunState::parse(state.to_json(), "state.json").value(), state);
  state.clean_steps.reset();
  state.loss_scale = 1;
  EXPECT_EQ(nlohmann::json::parse(state.to_json()).count("clean_steps"), 0u);
  EXPECT_EQ(RunState::parse(state.to_json(), "state.json").value(), state);
}

TEST(RunState, RefusesWhatIsMissingOrOfAnotherKindAndNamesTheKey) {
  const nlohmann::json good = nlohmann::json::parse(scaled_state().to_json());
  EXPECT_EQ(read(good), scaled_state());
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json bad = good;
    if (value.is_discarded())
      bad.erase(key);
    else
      bad[key] = value;
    const auto state = RunState::parse(bad.dump(), "state.json");
    ASSERT_FALSE(state.ok()) << key << " " << value;
    EXPECT_EQ(state.error().kind, ErrorKind::input);
    EXPECT_NE(state.error().message.find(std::string("state.json: the key \"") + key), std::string::npos)
        << state.error().message;
  };
  const nlohmann::json missing(nlohmann::json::value_t::discarded);
  for (const char* key : {"step", "skipped", "consecutive_skips"})
    for (const nlohmann::json& value : {missing, nlohmann::json(-1), nlohmann::json(1.5), nlohmann::json("1")})
      refused(key, value);
  for (const nlohmann::json& value : {missing, nlohmann::json(0), nlohmann::json(-2), nlohmann::json("1")})
    refused("loss_scale", value);
  for (const nlohmann::json& value : {nlohmann::json(-1), nlohmann::json(0.5), nlohmann::json()})
    refused("clean_steps", value);
  refused("cursor", missing);
}

}  // namespace
}  // namespace ingot
