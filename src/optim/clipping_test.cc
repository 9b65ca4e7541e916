#include "optim/clipping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ingot {
namespace {

Clipping clip(const std::vector<double>& sums, const std::vector<double>& limits) {
  return clip_by_norm(sums, limits);
}

TEST(Clipping, ScalesDownToTheLimit) {
  const Clipping clipping = clip({25.0}, {1.0});
  EXPECT_DOUBLE_EQ(clipping.grad_norm, 5.0);
  EXPECT_TRUE(clipping.finite);
  EXPECT_FLOAT_EQ(clipping.scales[0], static_cast<float>(1.0 / (5.0 + 1e-6)));
}

TEST(Clipping, LeavesSmallGradientsAlone) {
  EXPECT_EQ(clip({0.25}, {1.0}).scales[0], 1.0f);
  EXPECT_EQ(clip({0.0}, {1.0}).scales[0], 1.0f);
}

TEST(Clipping, ZeroTurnsItOff) {
  const Clipping clipping = clip({1e8}, {0.0});
  EXPECT_EQ(clipping.scales[0], 1.0f);
  EXPECT_DOUBLE_EQ(clipping.grad_norm, 1e4);
}

TEST(Clipping, GroupsWithTheirOwnLimitAreClippedByTheirOwnNorm) {
  const Clipping clipping = clip({9.0, 16.0, 0.01}, {1.0, 2.0, 1.0});
  EXPECT_NEAR(clipping.scales[0], 1.0 / 3, 1e-6);
  EXPECT_NEAR(clipping.scales[1], 0.5, 1e-6);
  EXPECT_EQ(clipping.scales[2], 1.0f);
  EXPECT_DOUBLE_EQ(clipping.grad_norm, std::sqrt(25.01));  // what is reported is over all of them
}

TEST(Clipping, ANonFiniteNormSkipsTheStep) {
  for (double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    const Clipping clipping = clip({1.0, bad}, {1.0, 0.0});
    EXPECT_FALSE(clipping.finite);
    EXPECT_EQ(clipping.scales, (std::vector<float>{0.0f, 0.0f}));
  }
}

TEST(Clipping, NothingToClipIsNormZero) {
  const Clipping clipping = clip({}, {});
  EXPECT_EQ(clipping.grad_norm, 0.0);
  EXPECT_TRUE(clipping.finite);
}

}  // namespace
}  // namespace ingot
