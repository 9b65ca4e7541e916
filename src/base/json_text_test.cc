#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ingot {
namespace {

std::string lists(size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(JsonText, MayNestAsDeepAsTheLimitAndNoDeeper) {
  EXPECT_FALSE(nests_too_deep(lists(kMostJsonLevels)));
  EXPECT_TRUE(nests_too_deep(lists(kMostJsonLevels + 1)));
  std::string objects;
  for (size_t i = 0; i < kMostJsonLevels; ++i) objects += R"({"a":)";
  EXPECT_FALSE(nests_too_deep(objects + "1" + std::string(kMostJsonLevels, '}')));
  EXPECT_TRUE(nests_too_deep(objects + "[1]" + std::string(kMostJsonLevels, '}')));
}

TEST(JsonText, CountsOnlyWhatIsOpenAtOnceAndOutsideOfStrings) {
  std::string beside = "[";
  for (size_t i = 0; i < 2 * kMostJsonLevels; ++i) beside += "[],{},";
  EXPECT_FALSE(nests_too_deep(beside + "0]"));
  const std::string brackets(2 * kMostJsonLevels, '[');
  EXPECT_FALSE(nests_too_deep('"' + brackets + '"'));
  EXPECT_FALSE(nests_too_deep(R"(["\")" + brackets + R"("])"));
  EXPECT_TRUE(nests_too_deep(R"(["\\",)" + lists(kMostJsonLevels) + "]"));
}

TEST(JsonText, IsDiscardedWhereItIsNoJsonOrNestsTooDeep) {
  EXPECT_EQ(parse_json<nlohmann::json>(R"({"a": [1, 2]})"), nlohmann::json({{"a", {1, 2}}}));
  EXPECT_TRUE(parse_json<nlohmann::json>("[1,").is_discarded());
  EXPECT_TRUE(parse_json<nlohmann::json>(lists(1000000)).is_discarded());
  EXPECT_TRUE(parse_json<nlohmann::ordered_json>(lists(1000000)).is_discarded());
}

}  // namespace
}  // namespace ingot
