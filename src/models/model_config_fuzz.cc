// Any bytes as a config.json: an error, or a model whose resolved configuration gives the same model again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/log.h"
#include "models/model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingot;
  set_log_level(LogLevel::error);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = Model::from_json(text, "fuzz", {UnknownKeys::warn, 32});
  if (!model.ok()) return 0;
  const auto again = Model::from_json(model->to_config_json(), "again", {UnknownKeys::refuse, {}});
  INGOT_CHECK(again.ok(), "{}", again.ok() ? "" : again.error().message);
  INGOT_CHECK(again->to_config_json() == model->to_config_json(), "another configuration after writing");
  INGOT_CHECK(again->parameter_count() == model->parameter_count(), "another model after writing");
  return 0;
}
