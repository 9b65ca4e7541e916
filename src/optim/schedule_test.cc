#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ingot {
namespace {

constexpr double kPeak = 3.0e-4;

Schedule make(const ScheduleConfig& config, int64_t steps, double rate = kPeak, int64_t batch = 8) {
  auto schedule = Schedule::make(config, rate, steps, batch);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
  return std::move(schedule).value();
}

const ScheduleType kEveryType[] = {ScheduleType::cosine, ScheduleType::linear,       ScheduleType::constant,
                                   ScheduleType::wsd,    ScheduleType::inverse_sqrt, ScheduleType::exponential};

TEST(Schedule, WarmupReachesTheConfiguredPeakExactlyAtItsLastStep) {
  for (ScheduleType type : kEveryType) {
    const Schedule schedule = make({.type = type, .warmup_steps = 7}, 100, 6.0e-5);
    EXPECT_EQ(schedule.at(0), 0.0);
    EXPECT_DOUBLE_EQ(schedule.at(1), 6.0e-5 / 7);
    EXPECT_DOUBLE_EQ(schedule.at(3), 6.0e-5 * 3 / 7);
    EXPECT_LT(schedule.at(6), 6.0e-5);
    EXPECT_EQ(schedule.at(7), 6.0e-5);
  }
}

TEST(Schedule, WithoutWarmupStepZeroIsThePeak) {
  for (ScheduleType type : kEveryType) EXPECT_EQ(make({.type = type}, 10).at(0), kPeak);
}

TEST(Schedule, CosineHasTheTextbookValues) {
  const Schedule schedule = make({.warmup_steps = 10, .min_lr_ratio = 0.1}, 110);
  EXPECT_DOUBLE_EQ(schedule.at(60), kPeak * 0.55);  // half way: the middle of 1 and 0.1
  EXPECT_DOUBLE_EQ(schedule.at(35), kPeak * (0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5))));
  EXPECT_EQ(schedule.at(110), kPeak * 0.1);
  EXPECT_EQ(schedule.at(111), kPeak * 0.1);
  EXPECT_EQ(make({.min_lr_ratio = 0}, 5).at(5), 0.0);
  EXPECT_EQ(make({.min_lr_ratio = 1}, 5).at(3), kPeak);
}

TEST(Schedule, LinearFallsEvenly) {
  const Schedule schedule = make({.type = ScheduleType::linear, .warmup_steps = 2, .min_lr_ratio = 0}, 10, 1.0);
  for (int64_t step = 2; step <= 10; ++step) EXPECT_DOUBLE_EQ(schedule.at(step), static_cast<double>(10 - step) / 8);
  EXPECT_EQ(schedule.at(10), 0.0);
}

TEST(Schedule, ConstantStaysAtThePeak) {
  const Schedule schedule = make({.type = ScheduleType::constant, .warmup_steps = 2}, 10);
  for (int64_t step = 2; step <= 12; ++step) EXPECT_EQ(schedule.at(step), kPeak);
}

TEST(Schedule, WarmupStableDecayFallsOverItsLastSteps) {
  const ScheduleConfig config{.type = ScheduleType::wsd, .warmup_steps = 5, .min_lr_ratio = 0.2, .decay_steps = 10};
  const Schedule schedule = make(config, 100, 1.0);
  EXPECT_EQ(schedule.at(6), 1.0);
  EXPECT_EQ(schedule.at(90), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(95), 0.6);
  EXPECT_EQ(schedule.at(100), 0.2);
  EXPECT_EQ(make({.type = ScheduleType::wsd}, 50).at(45), kPeak);  // a tenth by default
  EXPECT_LT(make({.type = ScheduleType::wsd}, 50).at(46), kPeak);
}

TEST(Schedule, InverseSquareRootFallsFromTheWarmupOnToItsFloor) {
  const Schedule schedule =
      make({.type = ScheduleType::inverse_sqrt, .warmup_steps = 4, .min_lr_ratio = 0.1}, 1000, 1.0);
  EXPECT_EQ(schedule.at(4), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(16), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(100), 0.2);
  EXPECT_EQ(schedule.at(900), 0.1);
  EXPECT_EQ(make({.type = ScheduleType::inverse_sqrt, .min_lr_ratio = 0}, 1000, 1.0).at(4), 0.5);
}

TEST(Schedule, ExponentialFallsByEqualFactors) {
  const Schedule schedule = make({.type = ScheduleType::exponential, .min_lr_ratio = 0.01}, 20, 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(10), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(5), std::pow(10.0, -0.5));
  EXPECT_EQ(schedule.at(20), 0.01);
}

TEST(Schedule, TableIsLinearBetweenItsPointsAndFlatOutside) {
  const ScheduleConfig config{.type = ScheduleType::table, .table = {{10, 1.0}, {20, 0.5}, {40, 0.1}}};
  const Schedule schedule = make(config, 100, 2.0);
  EXPECT_EQ(schedule.at(1), 2.0);
  EXPECT_EQ(schedule.at(10), 2.0);
  EXPECT_DOUBLE_EQ(schedule.at(15), 1.5);
  EXPECT_EQ(schedule.at(20), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(30), 0.6);
  EXPECT_DOUBLE_EQ(schedule.at(99), 0.2);
}

TEST(Schedule, DecayStepsEndTheDecayEarly) {
  const Schedule schedule = make({.warmup_steps = 10, .min_lr_ratio = 0.5, .decay_steps = 20}, 100, 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(20), 0.75);
  for (int64_t step : {30, 31, 99, 100}) EXPECT_EQ(schedule.at(step), 0.5);
}

TEST(Schedule, WarmupRatioIsAPartOfTheRunRoundedUp) {
  EXPECT_EQ(make({.warmup_ratio = 0.1}, 30).warmup_steps(), 3);  // 0.1 * 30 is a little above 3 in binary
  EXPECT_EQ(make({.warmup_ratio = 0.1}, 31).warmup_steps(), 4);
  EXPECT_EQ(make({.warmup_ratio = 0.0}, 31).warmup_steps(), 0);
  EXPECT_EQ(make({.warmup_ratio = 1.0}, 31).warmup_steps(), 31);
  EXPECT_EQ(make({.warmup_ratio = 1.0}, 31).at(31), kPeak);
}

TEST(Schedule, ScalesThePeakWithTheBatch) {
  ScheduleConfig config{.type = ScheduleType::constant, .lr_scaling = RateScaling::linear, .base_batch_size = 32};
  EXPECT_DOUBLE_EQ(make(config, 10, kPeak, 128).peak(), 4 * kPeak);
  config.lr_scaling = RateScaling::sqrt;
  EXPECT_DOUBLE_EQ(make(config, 10, kPeak, 128).at(5), 2 * kPeak);
  config.lr_scaling = RateScaling::none;
  EXPECT_EQ(make(config, 10, kPeak, 128).peak(), kPeak);
}

TEST(Schedule, NeverRisesAfterTheWarmupAndStaysBetweenFloorAndPeak) {
  for (ScheduleType type : kEveryType) {
    for (int64_t total : {1, 2, 9, 1000}) {
      for (int64_t warmup : {0, 1, 5}) {
        const Schedule schedule = make({.type = type, .warmup_steps = warmup}, total);
        for (int64_t step = warmup + 1; step <= total + 3; ++step) {
          EXPECT_LE(schedule.at(step), schedule.at(step - 1)) << step;
          EXPECT_GE(schedule.at(step), kPeak * 0.1) << step;
        }
      }
    }
  }
}

TEST(Schedule, IsAFunctionOfTheStepAlone) {
  const Schedule whole = make({.warmup_steps = 3}, 50), resumed = make({.warmup_steps = 3}, 50);
  for (int64_t step = 25; step <= 50; ++step) EXPECT_EQ(resumed.at(step), whole.at(step));
}

TEST(Schedule, RefusesContradictions) {
  const auto fails = [](const ScheduleConfig& config, const char* text, double rate = kPeak) {
    const auto schedule = Schedule::make(config, rate, 10, 8);
    ASSERT_FALSE(schedule.ok()) << text;
    EXPECT_EQ(schedule.error().kind, ErrorKind::usage);
    EXPECT_NE(schedule.error().message.find(text), std::string::npos) << schedule.error().message;
  };
  fails({.warmup_steps = 1, .warmup_ratio = 0.1}, "warmup_ratio");
  fails({.lr_scaling = RateScaling::linear}, "base_batch_size");
  fails({.type = ScheduleType::exponential, .min_lr_ratio = 0}, "min_lr_ratio");
  fails({.type = ScheduleType::constant, .decay_steps = 5}, "decay_steps");
  fails({.type = ScheduleType::table}, "schedule.table");
  fails({.table = {{1, 1.0}}}, "schedule.table");
  fails({.type = ScheduleType::table, .table = {{2, 1.0}, {2, 0.5}}}, "step 2 follows step 2");
  fails({}, "peak learning rate", std::numeric_limits<double>::quiet_NaN());
  fails({}, "peak learning rate", 0);
}

}  // namespace
}  // namespace ingot
