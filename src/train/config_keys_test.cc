// Every key of the configuration against values that no key, or no key of its kind, may take.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/files.h"
#include "train/config.h"
#include "train/config_tree.h"

namespace ingot {
namespace {

// Every list of sections has an element that lacks nothing, so that an override reaches one key alone.
constexpr const char* kBase = R"(
data: {train: [{path: a}], validation: [{path: a}]}
optimizer: {groups: [{match: a}]}
schedule: {table: [{step: 1, factor: 1}]}
)";

Result<RunConfig> with_override(const std::string& key, const std::string& value) {
  const std::vector<std::string> overrides = {"model.preset=llama-15m", key + "=" + value};
  return parse_config(kBase, "run.yaml", overrides);
}

// Refused because of this key: the message names it, where it was given, what was expected and what was found.
void expect_refused(const ConfigKey& key, const std::string& value) {
  const auto config = with_override(key.path, value);
  ASSERT_FALSE(config.ok()) << key.path << " takes " << value;
  const std::string& message = config.error().message;
  EXPECT_EQ(config.error().kind, ErrorKind::usage);
  const std::string start = "override \"" + key.path + "=" + value + "\": " + key.path + ": expected " + key.expected;
  EXPECT_EQ(message.substr(0, start.size()), start);
  EXPECT_NE(message.find(", found "), std::string::npos) << message;
}

// Whether the value is taken as the key's own: what is then refused, if anything, is how it goes with other keys.
bool accepted(const ConfigKey& key, const std::string& value) {
  const auto config = with_override(key.path, value);
  return config.ok() || config.error().message.find(key.path + ": expected") == std::string::npos;
}

bool is_numeric(const ConfigKey& key) {
  for (const char* kind : {"number from", "number above", "number of at least"})
    if (key.expected.find(kind) != std::string::npos) return true;
  return false;
}
std::string without_quotes(const std::string& yaml) {
  return yaml.size() >= 2 && yaml.front() == '"' ? yaml.substr(1, yaml.size() - 2) : yaml;
}
bool is_list(const ConfigKey& key) {
  return key.expected.starts_with("a list");
}

TEST(EveryConfigKey, IsListedOnceWithADefaultThatItTakes) {
  std::set<std::string> seen;
  for (const ConfigKey& key : config_keys()) {
    EXPECT_TRUE(seen.insert(key.path).second) << key.path;
    const bool takes_default = key.default_value.empty() || accepted(key, key.default_value);
    EXPECT_TRUE(takes_default) << key.path << "=" << key.default_value;
  }
  EXPECT_EQ(seen.size(), 95u);  // a new key is documented and gets its rows here
}

// docs/configuration.md has a row for each, with its default: "| `data.train[].path` | takes | default | meaning |".
TEST(EveryConfigKey, IsDocumentedWithItsDefault) {
  const auto document = read_file(std::filesystem::path(INGOT_SOURCE_DIR) / "docs" / "configuration.md");
  ASSERT_TRUE(document.ok()) << document.error().message;
  for (const ConfigKey& key : config_keys()) {
    std::string name = key.path;
    if (const size_t element = name.find(".0."); element != std::string::npos) name.replace(element, 3, "[].");
    const size_t begin = document->find("\n| `" + name + "` | ");
    ASSERT_NE(begin, std::string::npos) << name << " has no row";
    const std::string row = document->substr(begin + 1, document->find('\n', begin + 1) - begin - 1);
    const std::string expected =
        key.default_value.empty() ? "| required |" : "| `" + without_quotes(key.default_value) + "` |";
    EXPECT_NE(row.find(expected), std::string::npos) << row << "\nhas not the default " << expected;
  }
}

TEST(EveryConfigKey, RefusesNotANumberInfinityAndWhatIsHuge) {
  for (const ConfigKey& key : config_keys())
    for (const char* value : {".nan", ".inf", "-.inf", "1e30", "1e999", "-1e30", "99999999999999999999"}) {
      if (key.path == "model.config") continue;
      expect_refused(key, value);
    }
}

TEST(EveryConfigKey, RefusesNegativeNumbers) {
  for (const ConfigKey& key : config_keys())
    for (const char* value : {"-1", "-0.5", "-9223372036854775808", "[-1]", "[-0.5, 0.5]", "[0.5, -0.5]"})
      expect_refused(key, value);
}

TEST(EveryConfigKey, RefusesTheWrongType) {
  for (const ConfigKey& key : config_keys()) {
    expect_refused(key, "[[a]]");
    if (key.path != "model.config") expect_refused(key, "{a: 1}");
    if (key.expected != "true or false") expect_refused(key, "true");
    if (is_numeric(key)) expect_refused(key, "no-such-word");
    if (is_numeric(key)) expect_refused(key, "\"1\"");
    if (is_numeric(key)) expect_refused(key, "0x");
    if (is_numeric(key)) expect_refused(key, "1_000");
    if (!is_list(key)) expect_refused(key, "[]");
    if (key.expected.find("whole number") != std::string::npos) expect_refused(key, "1.5");
    if (key.expected == "true or false") expect_refused(key, "1");
    const bool nullable =
        key.expected.ends_with(" or null") || key.expected.ends_with(" or auto") || key.expected.ends_with(" or all");
    if (!nullable) expect_refused(key, "null");
  }
}

TEST(EveryConfigKey, TakesZeroOnlyWhereItMeansSomething) {
  const std::set<std::string> zero_is_fine = {
      "seed",
      "data.validation_fraction",
      "data.prefetch_batches",
      "data.workers",
      "training.max_grad_norm",
      "optimizer.weight_decay",
      "optimizer.momentum",
      "optimizer.groups.0.weight_decay",
      "optimizer.groups.0.learning_rate_scale",
      "optimizer.groups.0.max_grad_norm",
      "schedule.warmup_steps",
      "schedule.warmup_ratio",
      "schedule.min_lr_ratio",
      "schedule.table.0.step",
      "schedule.table.0.factor",
      "parallel.zero_stage",
      "checkpoint.every_steps",
      "evaluation.every_steps",
      "logging.every_steps",
      "monitor.max_consecutive_skips",
      "monitor.gradient_consistency.every_steps",
      "monitor.audit.every_steps",
  };
  for (const ConfigKey& key : config_keys()) {
    if (zero_is_fine.count(key.path) == 0) {
      expect_refused(key, "0");
      continue;
    }
    EXPECT_TRUE(accepted(key, "0")) << key.path;
  }
}

TEST(EveryConfigKey, IsUnknownWithALetterMore) {
  for (const ConfigKey& key : config_keys()) {
    if (key.path.starts_with("model.config")) continue;
    const auto config = with_override(key.path + "x", "1");
    ASSERT_FALSE(config.ok()) << key.path;
    EXPECT_NE(config.error().message.find("unknown key '" + key.path + "x'"), std::string::npos)
        << config.error().message;
    EXPECT_NE(config.error().message.find("nearest known key is '" + key.path + "'"), std::string::npos)
        << config.error().message;
  }
}

TEST(ConfigTree, ReadsNumbersByYaml12) {
  const auto scalar = [](const std::string& text) {
    config::Value value;
    value.kind = config::Value::Kind::scalar;
    value.text = text;
    return value;
  };
  EXPECT_EQ(config::as_real(scalar("3e-4")), 3e-4);
  EXPECT_EQ(config::as_real(scalar("1.0e-8")), 1e-8);
  EXPECT_EQ(config::as_real(scalar("+.5")), 0.5);
  EXPECT_EQ(config::as_real(scalar("5.")), 5.0);
  EXPECT_EQ(config::as_real(scalar("1e-999")), 0.0);
  EXPECT_EQ(config::as_integer(scalar("0x1F")), 31);
  EXPECT_EQ(config::as_integer(scalar("0o17")), 15);
  EXPECT_EQ(config::as_integer(scalar("010")), 10);
  EXPECT_EQ(config::as_integer(scalar("+7")), 7);
  EXPECT_EQ(config::as_integer(scalar("2e9")), 2'000'000'000);
  EXPECT_EQ(config::as_integer(scalar("1.5e3")), 1500);
  for (const char* text : {"1.5e0", "8.0", "1_000", "0x", "0x-1", "", "+-1", "1 2", "9223372036854775808"})
    EXPECT_FALSE(config::as_integer(scalar(text))) << text;
  for (const char* text : {"nan", "inf", "e5", ".", "-", "1e", "1.2.3", "0x1p3", "infinity"})
    EXPECT_FALSE(config::as_real(scalar(text))) << text;
}

TEST(ConfigTree, EditDistanceCountsASwapOnce) {
  EXPECT_EQ(config::edit_distance("", "abc"), 3u);
  EXPECT_EQ(config::edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(config::edit_distance("wieght", "weight"), 1u);
  EXPECT_EQ(config::edit_distance("same", "same"), 0u);
}

}  // namespace
}  // namespace ingot
