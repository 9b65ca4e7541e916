#include "optim/loss_scale.h"

#include <gtest/gtest.h>

#include <vector>

namespace ingot {
namespace {

// The scales of the steps of a run; 'x' overflows, '.' does not.
std::vector<double> scales(LossScaler scaler, const char* steps) {
  std::vector<double> found;
  for (; *steps != 0; ++steps) {
    found.push_back(scaler.scale());
    if (*steps == 'x')
      scaler.overflowed();
    else
      scaler.stayed_finite();
  }
  found.push_back(scaler.scale());
  return found;
}

using Scales = std::vector<double>;

TEST(LossScaler, StartsAtTheInitialScale) {
  EXPECT_EQ(LossScaler({}).scale(), 65536.0);
  EXPECT_EQ(LossScaler({.initial = 3.5}).scale(), 3.5);
}

TEST(LossScaler, HalvesWithEachOverflowDownToTheMinimum) {
  EXPECT_EQ(scales(LossScaler({.initial = 8, .minimum = 1}), "xxxxx"), (Scales{8, 4, 2, 1, 1, 1}));
  EXPECT_EQ(scales(LossScaler({.initial = 10, .minimum = 3}), "xxx"), (Scales{10, 5, 3, 3}));
}

TEST(LossScaler, DoublesAfterAsManyStepsInARowAsTheInterval) {
  const LossScaler scaler({.initial = 8, .growth_interval = 3});
  EXPECT_EQ(scales(scaler, "......"), (Scales{8, 8, 8, 16, 16, 16, 32}));
  EXPECT_EQ(scales(scaler, "..x...x."), (Scales{8, 8, 8, 4, 4, 4, 8, 4, 4}));
  EXPECT_EQ(scales(LossScaler({.initial = 8, .growth_interval = 1}), "..x."), (Scales{8, 16, 32, 16, 32}));
}

TEST(LossScaler, GrowsAgainFromItsMinimum) {
  const LossScaler scaler({.initial = 2, .growth_interval = 2, .minimum = 1});
  EXPECT_EQ(scales(scaler, "xx....x"), (Scales{2, 1, 1, 1, 2, 2, 4, 2}));
}

TEST(LossScaler, StopsGrowingAtTheLargest) {
  const LossScaler scaler({.initial = LossScaler::kLargest / 2, .growth_interval = 1});
  EXPECT_EQ(scales(scaler, "..."), (Scales{0x1p63, 0x1p64, 0x1p64, 0x1p64}));
}

TEST(LossScaler, KnowsWhenNoLowerScaleIsLeft) {
  LossScaler scaler({.initial = 2, .growth_interval = 1, .minimum = 1});
  EXPECT_FALSE(scaler.is_at_minimum());
  scaler.overflowed();
  EXPECT_TRUE(scaler.is_at_minimum());
  scaler.stayed_finite();
  EXPECT_FALSE(scaler.is_at_minimum());
}

TEST(LossScaler, GoesOnFromASavedState) {
  const LossScaleConfig config{.initial = 64, .growth_interval = 3, .minimum = 4};
  LossScaler whole(config);
  const auto run = [](LossScaler& scaler, const char* steps) {
    for (; *steps != 0; ++steps) *steps == 'x' ? scaler.overflowed() : scaler.stayed_finite();
  };
  run(whole, "x..");
  LossScaler resumed(config, whole.state());
  EXPECT_EQ(resumed.state(), (LossScaler::State{32, 2}));
  for (LossScaler* scaler : {&whole, &resumed}) run(*scaler, "..x");
  EXPECT_EQ(resumed.state(), whole.state());
  EXPECT_EQ(whole.state(), (LossScaler::State{32, 0}));
}

TEST(LossScaler, MovesASavedScaleIntoTheRange) {
  EXPECT_EQ(LossScaler({.minimum = 16}, {2, 5}).state(), (LossScaler::State{16, 5}));
  EXPECT_EQ(LossScaler({}, {1e300, 0}).scale(), LossScaler::kLargest);
}

}  // namespace
}  // namespace ingot
