// ThreadPool: the one pool of threads of the process. Work arrives as numbered tiles; which thread runs a tile is left
// open, so a tile's result must depend on its number alone. That is what makes results the same on any number of
// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace ingot {

// A non-owning reference to a callable (valid for the duration of the call that it is passed to). Never allocates.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, F&, Args...>)
      FunctionRef(F&& f)  // NOLINT: any callable is a FunctionRef
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::add_pointer_t<F>>(object))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// What one thread did in the runs of a timed pool, in nanoseconds of steady_ns(). A cache line of its own.
struct alignas(64) ThreadTime {
  int64_t begin = 0;  // of its first tile; 0: it had none
  int64_t end = 0;    // of its last tile
  int64_t busy = 0;   // of the time between, what it spent in runs and did not wait for other threads
};

// Nanoseconds of the steady clock; never 0.
int64_t steady_ns();

class ThreadPool {
 public:
  // threads >= 1; the calling thread is one of them.
  explicit ThreadPool(int threads);
  // The same threads; every run adds to `times` [threads()], which must outlive the pool's use. Setting them back to
  // zero is the owner's.
  ThreadPool timed(std::span<ThreadTime> times) const;

  int threads() const { return threads_; }
  // Calls body(tile, thread) once for each tile in [0, tiles), thread in [0, threads()); returns when all are done.
  // Not reentrant: body must not call run. An exception thrown by a body is rethrown here after all tiles ended.
  // Bodies compute with denormals flushed to zero (flush_denormals.h), on every thread alike.
  void run(int64_t tiles, FunctionRef<void(int64_t tile, int thread)> body) const;

 private:
  int threads_;
  ThreadTime* times_ = nullptr;  // [threads_]; null: nobody asks
};

// The half-open range of items that part `part` of `parts` gets when `items` are cut into multiples of `grain`, evenly.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};
constexpr Range split_evenly(int64_t items, int64_t parts, int64_t part, int64_t grain = 1) {
  const int64_t units = (items + grain - 1) / grain;
  const auto at = [&](int64_t k) {
    const int64_t edge = (units * k / parts) * grain;
    return edge < items ? edge : items;
  };
  return {at(part), at(part + 1)};
}

}  // namespace ingot
