#include "train/signals.h"

#include <signal.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/check.h"

namespace ingot {
namespace {

constexpr std::array kSignals = {SIGTERM, SIGINT, SIGUSR1};
// Nanoseconds between two SIGINT of a person who will not wait. Less is one Ctrl-C that came twice: to the group, and
// from the program that started this one.
constexpr int64_t kTwice = 300'000'000, kImpatient = 5'000'000'000;

// A signal handler is a plain function: what it changes can only be global. It belongs to the one StopSignals that
// lives.
std::atomic<bool> installed = false;
std::atomic<int> first_signal = 0;
std::atomic<int64_t> interrupted_at = 0;  // when the last SIGINT came, 0 for never
std::array<struct sigaction, kSignals.size()> previous{};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free,
              "a handler may touch only atomics without locks");

int64_t monotonic_ns() {
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Calls only what POSIX allows in a handler, and leaves errno to the code that it interrupted.
void on_signal(int number) {
  const int error = errno;
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
  if (number == SIGINT) {
    const int64_t now = monotonic_ns(), before = interrupted_at.exchange(now);
    if (before != 0 && now - before > kTwice && now - before < kImpatient) {
      ::signal(SIGINT, SIG_DFL);
      ::raise(SIGINT);  // delivered when this handler returns, which unblocks it
    }
  }
  errno = error;
}

}  // namespace

StopSignals::StopSignals() {
  INGOT_CHECK(!installed.exchange(true), "two StopSignals at a time");
  first_signal = 0;
  interrupted_at = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    const int status = ::sigaction(kSignals[i], &action, &previous[i]);
    INGOT_CHECK(status == 0, "sigaction({}) failed with errno {}", kSignals[i], errno);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &previous[i], nullptr);
  installed = false;
}

int StopSignals::signal() const {
  return first_signal.load();
}

std::string_view StopSignals::name() const {
  switch (signal()) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "";
  }
}

}  // namespace ingot
