#include "train/signals.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/check.h"

namespace ingot {
namespace {

TEST(StopSignals, EachOfTheThreeAsksToStop) {
  for (const auto& [number, name] : {std::pair{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGUSR1, "SIGUSR1"}}) {
    StopSignals signals;
    EXPECT_FALSE(signals.requested());
    EXPECT_EQ(signals.name(), "");
    ::raise(number);
    EXPECT_TRUE(signals.requested());
    EXPECT_EQ(signals.signal(), number);
    EXPECT_EQ(signals.name(), name);
  }
}

TEST(StopSignals, TheFirstOneIsRemembered) {
  StopSignals signals;
  ::raise(SIGUSR1);
  ::raise(SIGTERM);
  EXPECT_EQ(signals.signal(), SIGUSR1);
}

std::atomic<int> others_calls = 0;

TEST(StopSignals, GivesTheHandlersBackAsTheyWere) {
  const auto before = ::signal(SIGUSR1, [](int) { ++others_calls; });
  {
    StopSignals signals;
    ::raise(SIGUSR1);
    EXPECT_TRUE(signals.requested());
  }
  EXPECT_EQ(others_calls, 0);
  ::raise(SIGUSR1);
  EXPECT_EQ(others_calls, 1);
  ::signal(SIGUSR1, before);
}

TEST(StopSignals, TwoAtATimeAreABug) {
  StopSignals signals;
  EXPECT_THROW(StopSignals(), BugError);
  ::raise(SIGTERM);
  EXPECT_TRUE(signals.requested());
}

TEST(StopSignals, AnInterruptedReadGoesOn) {
  StopSignals signals;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::atomic<bool> reading = false;
  ssize_t got = 0;
  std::thread reader([&] {
    char byte = 0;
    reading = true;
    got = ::read(ends[0], &byte, 1);
  });
  while (!reading) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) ::pthread_kill(reader.native_handle(), SIGUSR1);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  reader.join();
  EXPECT_EQ(got, 1);
  EXPECT_TRUE(signals.requested());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(StopSignals, KeepErrno) {
  StopSignals signals;
  errno = ENOENT;
  ::raise(SIGINT);
  EXPECT_EQ(errno, ENOENT);
}

// A shell sends Ctrl-C to the whole group, and a program that started this one may send it on.
TEST(StopSignals, TakeAnInterruptThatComesTwiceForOne) {
  StopSignals signals;
  ::raise(SIGINT);
  ::raise(SIGINT);
  EXPECT_EQ(signals.signal(), SIGINT);
}

TEST(StopSignalsDeathTest, ASecondInterruptEndsTheProcessAtOnce) {
  EXPECT_EXIT(
      {
        StopSignals signals;
        ::raise(SIGINT);
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        ::raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace ingot
