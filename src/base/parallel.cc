#include "base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>

#include "base/check.h"
#include "base/flush_denormals.h"

namespace ingot {
namespace {

// Adds one thread's part of a run to its times, if anybody asks for them.
class RunTimer {
 public:
  RunTimer(ThreadTime* times, int thread) : time_(times == nullptr ? nullptr : times + thread) {
    if (time_ != nullptr) begin_ = steady_ns();
  }
  void stop(bool had_tiles) const {
    if (time_ == nullptr || !had_tiles) return;
    if (time_->begin == 0) time_->begin = begin_;
    time_->end = steady_ns();
    time_->busy += time_->end - begin_;
  }

 private:
  ThreadTime* time_;
  int64_t begin_ = 0;
};

// The tiles of a run that are left. Every thread begins with a run of neighbours, whose operands are mostly neighbours
// in memory: memory is read some 20% faster in long stretches (bench/README.md). Whoever has none left takes from the
// end of another's, so that threads end together whatever tiles take.
class TilesLeft {
 public:
  TilesLeft(int64_t tiles, int threads) : runs_(std::min(threads, kMostRuns)), threads_(threads) {
    INGOT_CHECK(tiles <= UINT32_MAX, "a run of {} tiles", tiles);
    for (int i = 0; i < runs_; ++i) {
      const Range range = split_evenly(tiles, runs_, i);
      at(i).left.store(packed(static_cast<uint64_t>(range.begin), static_cast<uint64_t>(range.end)),
                       std::memory_order_relaxed);
    }
  }

  // -1: none.
  int64_t next(int thread) {
    const int own = static_cast<int>(int64_t{thread} * runs_ / threads_);
    if (const int64_t tile = take(at(own), End::front); tile >= 0) return tile;
    for (int i = 1; i < runs_; ++i)
      if (const int64_t tile = take(at((own + i) % runs_), End::back); tile >= 0) return tile;
    return -1;
  }

 private:
  enum class End { front, back };
  static constexpr int kMostRuns = 64;  // more threads share them
  struct alignas(64) Run {
    std::atomic<uint64_t> left;  // [begin, end) in one word
  };
  static uint64_t packed(uint64_t begin, uint64_t end) { return begin << 32 | end; }
  Run& at(int index) { return all_[static_cast<size_t>(index)]; }

  static int64_t take(Run& run, End from) {
    uint64_t left = run.left.load(std::memory_order_relaxed);
    while (true) {
      const uint64_t begin = left >> 32, end = left & UINT32_MAX;
      if (begin == end) return -1;
      const bool at_front = from == End::front;
      const uint64_t rest = at_front ? packed(begin + 1, end) : packed(begin, end - 1);
      if (run.left.compare_exchange_weak(left, rest, std::memory_order_relaxed))
        return static_cast<int64_t>(at_front ? begin : end - 1);
    }
  }

  std::array<Run, kMostRuns> all_;
  int runs_, threads_;
};

}  // namespace

int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

ThreadPool::ThreadPool(int threads) : threads_(threads) {
  INGOT_CHECK(threads >= 1, "a pool of {} threads", threads);
}

ThreadPool ThreadPool::timed(std::span<ThreadTime> times) const {
  INGOT_CHECK(times.size() >= static_cast<size_t>(threads_), "times of {} threads, the pool has {}", times.size(),
              threads_);
  ThreadPool pool(threads_);
  pool.times_ = times.data();
  return pool;
}

void ThreadPool::run(int64_t tiles, FunctionRef<void(int64_t, int)> body) const {
  if (threads_ == 1 || tiles <= 1) {
    const FlushDenormals flush;
    const RunTimer timer(times_, 0);
    for (int64_t tile = 0; tile < tiles; ++tile) body(tile, 0);
    timer.stop(tiles > 0);
    return;
  }
  std::exception_ptr failure;
  std::mutex mutex;
  ThreadTime* const times = times_;
  TilesLeft left(tiles, threads_);
#pragma omp parallel num_threads(threads_) default(none) shared(left, body, failure, mutex, times)
  {
    const int thread = omp_get_thread_num();
    const RunTimer timer(times, thread);
    bool had_tiles = false;
    for (int64_t tile = left.next(thread); tile >= 0; tile = left.next(thread)) {
      const FlushDenormals flush;
      had_tiles = true;
      try {
        body(tile, thread);
      } catch (...) {  // an exception must not leave an OpenMP region
        std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
    }
    timer.stop(had_tiles);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ingot
