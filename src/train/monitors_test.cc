#include "train/monitors.h"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>

namespace ingot {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

StepFigures figures(int64_t step, double loss = 2.0, double norm = 1.0, double speed = 1000.0) {
  return {step, 100, loss, norm, 3e-4, speed};
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(Monitors, HealthyStepsProceedInSilence) {
  MonitorSection config;
  config.loss_spike = 2;
  config.grad_norm_range = {{0.1, 10}};
  config.throughput_drop = 0.5;
  Monitors monitors(config);
  for (int64_t step = 1; step <= 200; ++step) {
    const Verdict verdict = monitors.judge(figures(step, 10.0 / static_cast<double>(step)));
    EXPECT_EQ(verdict.action, StepAction::proceed);
    EXPECT_TRUE(verdict.warnings.empty());
    EXPECT_TRUE(verdict.diagnosis.empty());
  }
}

TEST(Monitors, ANonFiniteStepStopsWithADiagnosis) {
  for (const auto& [loss, norm, part] :
       {std::tuple{kNan, 1.0, "loss is not finite"}, std::tuple{kInfinity, kNan, "loss is not finite"},
        std::tuple{2.0, kInfinity, "gradient norm is not finite"}}) {
    Monitors monitors{MonitorSection{}};
    monitors.judge(figures(6, 3.5));
    const Verdict verdict = monitors.judge(figures(7, loss, norm));
    EXPECT_EQ(verdict.action, StepAction::stop);
    EXPECT_TRUE(contains(verdict.diagnosis, "step 7")) << verdict.diagnosis;
    EXPECT_TRUE(contains(verdict.diagnosis, part)) << verdict.diagnosis;
    EXPECT_TRUE(contains(verdict.diagnosis, "3.5 at step 6")) << verdict.diagnosis;
    EXPECT_TRUE(contains(verdict.diagnosis, "mode=eager")) << verdict.diagnosis;
  }
}

TEST(Monitors, SkipsAtMostAsManyInARowAsAllowed) {
  MonitorSection config;
  config.on_nan = OnNan::skip;
  config.max_consecutive_skips = 3;
  Monitors monitors(config);
  for (int64_t step = 1; step <= 3; ++step) EXPECT_EQ(monitors.judge(figures(step, kNan)).action, StepAction::skip);
  EXPECT_EQ(monitors.judge(figures(4)).action, StepAction::proceed);  // counts in a row only
  for (int64_t step = 5; step <= 7; ++step) {
    EXPECT_EQ(monitors.judge(figures(step, kNan)).action, StepAction::skip);
    EXPECT_EQ(monitors.consecutive_skips(), step - 4);
  }
  const Verdict verdict = monitors.judge(figures(8, kNan));
  EXPECT_EQ(verdict.action, StepAction::stop);
  EXPECT_TRUE(contains(verdict.diagnosis, "3 skipped steps in a row")) << verdict.diagnosis;
}

TEST(Monitors, GoOnCountingSkipsOfARunThatWasResumed) {
  MonitorSection config;
  config.on_nan = OnNan::skip;
  config.max_consecutive_skips = 3;
  Monitors monitors(config);
  monitors.resume(2);
  EXPECT_EQ(monitors.judge(figures(9, kNan)).action, StepAction::skip);
  EXPECT_EQ(monitors.judge(figures(10, kNan)).action, StepAction::stop);
}

StepFigures scaled(int64_t step, double loss, double norm, double loss_scale, bool can_fall) {
  StepFigures result = figures(step, loss, norm);
  result.loss_scale = loss_scale;
  result.loss_scale_can_fall = can_fall;
  return result;
}

TEST(Monitors, AnOverflowIsSkippedWhileTheLossScaleCanFallHoweverOften) {
  MonitorSection config;
  config.on_nan = OnNan::stop;  // not asked
  config.max_consecutive_skips = 2;
  Monitors monitors(config);
  for (int64_t step = 1; step <= 20; ++step) {
    const Verdict verdict = monitors.judge(scaled(step, 2.0, step % 2 == 0 ? kNan : kInfinity, 65536, true));
    EXPECT_EQ(verdict.action, StepAction::skip);
    EXPECT_TRUE(verdict.is_expected);
    EXPECT_TRUE(contains(verdict.diagnosis, "loss scale 65536")) << verdict.diagnosis;
    EXPECT_EQ(monitors.consecutive_skips(), 0);
  }
  EXPECT_EQ(monitors.judge(scaled(21, 2.0, 1.0, 4, true)).action, StepAction::proceed);
}

TEST(Monitors, OverflowsAtTheSmallestLossScaleStopAfterAsManyInARowAsAllowed) {
  MonitorSection config;
  config.max_consecutive_skips = 3;
  Monitors monitors(config);
  monitors.judge(scaled(1, 2.5, 1.0, 2, true));
  monitors.judge(scaled(2, 2.0, kInfinity, 2, true));
  for (int64_t step = 3; step <= 5; ++step) {
    const Verdict verdict = monitors.judge(scaled(step, 2.0, kInfinity, 1, false));
    EXPECT_EQ(verdict.action, StepAction::skip);
    EXPECT_FALSE(verdict.is_expected);
  }
  const Verdict verdict = monitors.judge(scaled(6, 2.0, kInfinity, 1, false));
  EXPECT_EQ(verdict.action, StepAction::stop);
  for (const char* part :
       {"step 6", "gradients are not finite", "loss scale 1, its minimum", "3 skipped steps in a row", "2.5 at step 1",
        "precision=bf16", "learning_rate", "max_grad_norm", "fp32_ops"})
    EXPECT_TRUE(contains(verdict.diagnosis, part)) << part << ": " << verdict.diagnosis;
}

TEST(Monitors, AFiniteStepEndsTheRowOfOverflowsAtTheSmallestScale) {
  MonitorSection config;
  config.max_consecutive_skips = 1;
  Monitors monitors(config);
  for (int64_t step = 1; step <= 9; step += 2) {
    EXPECT_EQ(monitors.judge(scaled(step, 2.0, kInfinity, 1, false)).action, StepAction::skip);
    EXPECT_EQ(monitors.judge(scaled(step + 1, 2.0, 1.0, 1, false)).action, StepAction::proceed);
  }
}

TEST(Monitors, ALossThatIsNotFiniteIsNotLeftToTheLossScale) {
  MonitorSection config;
  config.max_consecutive_skips = 1;
  Monitors monitors(config);
  EXPECT_EQ(monitors.judge(scaled(1, kNan, kNan, 65536, true)).action, StepAction::skip);
  const Verdict verdict = monitors.judge(scaled(2, kInfinity, kNan, 32768, true));
  EXPECT_EQ(verdict.action, StepAction::stop);
  EXPECT_TRUE(contains(verdict.diagnosis, "loss is not finite at loss scale 32768 (")) << verdict.diagnosis;
  EXPECT_TRUE(contains(verdict.diagnosis, "no loss scale mends")) << verdict.diagnosis;
}

TEST(Monitors, NoSkipAllowedStopsAtTheFirst) {
  MonitorSection config;
  config.on_nan = OnNan::skip;
  config.max_consecutive_skips = 0;
  EXPECT_EQ(Monitors(config).judge(figures(1, kNan)).action, StepAction::stop);
}

TEST(Monitors, ASpikeIsAFactorOverTheMedianAndReportedOnce) {
  MonitorSection config;
  config.loss_spike = 1.5;
  Monitors monitors(config);
  for (int64_t step = 1; step <= 16; ++step) monitors.judge(figures(step, 2.0));
  EXPECT_TRUE(monitors.judge(figures(17, 3.0)).warnings.empty());  // not above
  const Verdict spike = monitors.judge(figures(18, 3.01));
  EXPECT_EQ(spike.action, StepAction::proceed);
  ASSERT_EQ(spike.warnings.size(), 1u);
  EXPECT_TRUE(contains(spike.warnings[0], "median 2")) << spike.warnings[0];
  EXPECT_TRUE(monitors.judge(figures(19, 9.0)).warnings.empty());  // goes on
  EXPECT_TRUE(monitors.judge(figures(20, 2.0)).warnings.empty());
  EXPECT_EQ(monitors.judge(figures(21, 9.0)).warnings.size(), 1u);  // a new one
}

TEST(Monitors, TooFewStepsAndStepsWithoutLabelsSayNothing) {
  MonitorSection config;
  config.loss_spike = 1.5;
  config.grad_norm_range = {{0.1, 10}};
  Monitors monitors(config);
  for (int64_t step = 1; step <= 15; ++step)
    EXPECT_TRUE(monitors.judge(figures(step, step == 8 ? 50.0 : 2.0)).warnings.empty());
  for (int64_t step = 16; step <= 99; ++step) {
    StepFigures empty = figures(step, 0.0, 0.0);
    empty.counted_tokens = 0;
    const Verdict verdict = monitors.judge(empty);
    EXPECT_EQ(verdict.action, StepAction::proceed);
    EXPECT_TRUE(verdict.warnings.empty());
  }
  EXPECT_TRUE(monitors.judge(figures(100, 2.0)).warnings.empty());
}

TEST(Monitors, NormsOutsideTheirRangeAreReportedOnce) {
  MonitorSection config;
  config.grad_norm_range = {{0.5, 5}};
  Monitors monitors(config);
  EXPECT_TRUE(monitors.judge(figures(1, 2, 0.5)).warnings.empty());
  EXPECT_TRUE(monitors.judge(figures(2, 2, 5.0)).warnings.empty());
  EXPECT_EQ(monitors.judge(figures(3, 2, 5.1)).warnings.size(), 1u);
  EXPECT_TRUE(monitors.judge(figures(4, 2, 6.0)).warnings.empty());
  EXPECT_TRUE(monitors.judge(figures(5, 2, 1.0)).warnings.empty());
  EXPECT_EQ(monitors.judge(figures(6, 2, 0.4)).warnings.size(), 1u);
}

TEST(Monitors, LostSpeedIsReportedOnce) {
  MonitorSection config;
  config.throughput_drop = 0.3;
  Monitors monitors(config);
  for (int64_t step = 1; step <= 16; ++step) monitors.judge(figures(step));
  EXPECT_TRUE(monitors.judge(figures(17, 2, 1, 701)).warnings.empty());
  const Verdict slow = monitors.judge(figures(18, 2, 1, 600));
  ASSERT_EQ(slow.warnings.size(), 1u);
  EXPECT_TRUE(contains(slow.warnings[0], "40% below the median 1000")) << slow.warnings[0];
  EXPECT_TRUE(monitors.judge(figures(19, 2, 1, 500)).warnings.empty());
  EXPECT_TRUE(monitors.judge(figures(20, 2, 1, 0)).warnings.empty());  // not known
}

TEST(RunningMedian, IsTheMiddleOfTheLastSixtyFour) {
  RunningMedian median;
  EXPECT_EQ(median.median(), 0.0);
  for (int i = 1; i <= 4; ++i) median.add(i);
  EXPECT_EQ(median.median(), 2.5);
  EXPECT_FALSE(median.ready());
  for (int i = 5; i <= 100; ++i) median.add(i);
  EXPECT_EQ(median.median(), 68.5);  // of 37 … 100
  EXPECT_TRUE(median.ready());
}

}  // namespace
}  // namespace ingot
