// What is said of the data pipeline, of figures that are made up.
#include "train/data_verdict.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

constexpr int64_t kMs = 1'000'000;

// The batches of two steps: 100 ms each, of which the worker was on a core and waited for one.
std::vector<DataSpan> worker(int64_t cpu, int64_t queued) {
  return {{DataStage::reading, 0, 30 * kMs},
          {DataStage::packing, 0, 100 * kMs, cpu, queued},
          {DataStage::tokenizing, 100 * kMs, 120 * kMs},
          {DataStage::packing, 100 * kMs, 200 * kMs, cpu, queued}};
}

void expect_says(const DataVerdict& verdict, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(describe(verdict).find(part), std::string::npos) << part << " in: " << describe(verdict);
}

TEST(DataVerdict, AWorkerThatKeepsUpIsNoBottleneckHoweverBusy) {
  const DataVerdict verdict = judge_data(1000 * kMs, 20 * kMs, worker(95 * kMs, 0));
  EXPECT_EQ(verdict.limit, DataLimit::none);
  EXPECT_NEAR(verdict.waited_part, 0.02, 1e-12);
  expect_says(verdict, {"keeps up", "2.00%", "100.000 ms", "15.000 ms reading", "10.000 ms tokenizing"});
}

TEST(DataVerdict, AWorkerThatComputesOrWaitsForACoreIsLimitedByCpu) {
  for (const auto& [cpu, queued] : {std::pair{90, 0}, {20, 70}, {50, 0}}) {
    const DataVerdict verdict = judge_data(1000 * kMs, 500 * kMs, worker(cpu * kMs, queued * kMs));
    EXPECT_EQ(verdict.limit, DataLimit::cpu) << cpu;
    expect_says(verdict, {"bottleneck, for CPU", "50.0%"});
  }
}

TEST(DataVerdict, AWorkerThatDoesNeitherIsLimitedByDisk) {
  const DataVerdict verdict = judge_data(1000 * kMs, 500 * kMs, worker(5 * kMs, 1 * kMs));
  EXPECT_EQ(verdict.limit, DataLimit::disk);
  EXPECT_EQ(verdict.blocked(), 188 * kMs);
  expect_says(verdict, {"bottleneck, for disk", "5.000 ms on a core", "94.000 ms waiting for the disk"});
}

TEST(DataVerdict, WithoutABatchTheCauseIsNotKnown) {
  const DataVerdict verdict = judge_data(1000 * kMs, 500 * kMs, {});
  EXPECT_EQ(verdict.limit, DataLimit::unknown);
  expect_says(verdict, {"bottleneck", "50.0%"});
}

TEST(DataVerdict, NothingMeasuredSaysNothingWrong) {
  EXPECT_EQ(judge_data(0, 0, {}).limit, DataLimit::none);
  expect_says(judge_data(0, 0, {}), {"keeps up"});
}

}  // namespace
}  // namespace ingot
