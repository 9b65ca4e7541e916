#include "base/parallel.h"

#include <omp.h>

#include <exception>
#include <mutex>

#include "base/check.h"
#include "base/flush_denormals.h"

namespace ingot {

ThreadPool::ThreadPool(int threads) : threads_(threads) {
  INGOT_CHECK(threads >= 1, "a pool of {} threads", threads);
}

void ThreadPool::run(int64_t tiles, FunctionRef<void(int64_t, int)> body) const {
  if (threads_ == 1 || tiles <= 1) {
    const FlushDenormals flush;
    for (int64_t tile = 0; tile < tiles; ++tile) body(tile, 0);
    return;
  }
  std::exception_ptr failure;
  std::mutex mutex;
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1) default(none) shared(tiles, body, failure, mutex)
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const FlushDenormals flush;
    try {
      body(tile, omp_get_thread_num());
    } catch (...) {  // an exception must not leave an OpenMP region
      std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ingot
