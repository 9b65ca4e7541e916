#include "base/parallel.h"

#include <omp.h>

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
#pragma omp parallel num_threads(threads_) default(none) shared(tiles, body, failure, mutex, times)
  {
    const int thread = omp_get_thread_num();
    const RunTimer timer(times, thread);
    bool had_tiles = false;
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t tile = 0; tile < tiles; ++tile) {
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
