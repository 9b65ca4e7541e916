#include "base/dynamic_map.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ingot {
namespace {

// bitsandbytes.functional.create_dynamic_map(signed=…): ends and some between.
TEST(DynamicMap, HasTheValuesOfThePaper) {
  const auto both = dynamic_values(DynamicMap::signed_values), positive = dynamic_values(DynamicMap::unsigned_values);
  for (size_t i = 1; i < 256; ++i) EXPECT_LT(both[i - 1], both[i]);
  for (size_t i = 1; i < 256; ++i) EXPECT_LT(positive[i - 1], positive[i]);
  EXPECT_EQ(both[127], 0.0f);
  EXPECT_EQ(both[128], 5.5e-7f);
  EXPECT_EQ(both[255], 1.0f);
  EXPECT_EQ(both[254], 0.99296875f);
  EXPECT_EQ(both[0], -0.99296875f);
  EXPECT_EQ(positive[0], 0.0f);
  EXPECT_EQ(positive[1], 3.25e-7f);
  EXPECT_EQ(positive[2], 7.75e-7f);
  EXPECT_EQ(positive[254], 0.996484375f);
  EXPECT_EQ(positive[255], 1.0f);
}

TEST(DynamicMap, TakesTheNearestValue) {
  for (const DynamicMap map : {DynamicMap::signed_values, DynamicMap::unsigned_values}) {
    const auto values = dynamic_values(map);
    for (int i = -3000; i <= 3000; ++i) {
      const double x = (i < 0 ? -1 : 1) * std::pow(10.0, -std::abs(i) / 375.0);
      if (map == DynamicMap::unsigned_values && i < 0) continue;
      const uint8_t code = dynamic_code(map, x);
      for (size_t other = map == DynamicMap::unsigned_values ? 1 : 0; other < 256; ++other)
        ASSERT_LE(std::abs(x - double{values[code]}), std::abs(x - double{values[other]})) << x;
    }
    EXPECT_EQ(dynamic_code(map, 0.0), dynamic_zero(map));
    EXPECT_EQ(dynamic_code(map, 1.0), 255);
  }
  EXPECT_EQ(dynamic_code(DynamicMap::signed_values, 1e-9), 127);
  EXPECT_EQ(dynamic_code(DynamicMap::unsigned_values, 1e-30), 1);
  EXPECT_EQ(dynamic_code(DynamicMap::signed_values, -1.0), 0);
}

}  // namespace
}  // namespace ingot
