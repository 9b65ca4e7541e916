// For the kernels' tests: every instruction set the CPU has, memory with guards around it, and numbers to try.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "kernels/instruction_set.h"

namespace ingot::kernels::testing {

// body() once on each instruction set; failures name it.
template <class Body>
void on_each_instruction_set(Body body) {
  const std::vector<std::string> names = all_instruction_sets();
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(choose_instruction_set(name).ok());
    body();
  }
  ASSERT_TRUE(choose_instruction_set(names.front()).ok());
}

// n elements with guards around them, at an address that is a multiple of sizeof(T) only. Before them lie bytes that
// must stay as they are, right behind them a page that cannot be read or written: a kernel that does so ends the test.
// Contents start as a pattern that no kernel should leave where it ought to have written.
template <class T>
class Guarded {
 public:
  explicit Guarded(int64_t n) : n_(n) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t content = kGuard + static_cast<size_t>(n) * sizeof(T);
    writable_ = (content + page - 1) / page * page;
    total_ = writable_ + page;
    void* memory = mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    INGOT_CHECK(memory != MAP_FAILED && mprotect(static_cast<char*>(memory) + writable_, page, PROT_NONE) == 0,
                "no memory for a test of {} bytes", total_);
    memory_ = static_cast<unsigned char*>(memory);
    std::memset(memory_, kPattern, writable_);
  }
  Guarded(const Guarded& other) : Guarded(other.n_) { std::memcpy(memory_, other.memory_, writable_); }
  Guarded(Guarded&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)),
        writable_(other.writable_),
        total_(other.total_),
        n_(other.n_) {}
  Guarded& operator=(const Guarded& other) = delete;
  ~Guarded() {
    if (memory_ != nullptr) munmap(memory_, total_);
  }

  T* data() { return reinterpret_cast<T*>(memory_ + writable_ - static_cast<size_t>(n_) * sizeof(T)); }
  const T* data() const { return const_cast<Guarded*>(this)->data(); }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }
  int64_t size() const { return n_; }
  bool intact() const {
    const auto* begin = reinterpret_cast<const unsigned char*>(data());
    return std::all_of(begin - kGuard, begin, [](unsigned char byte) { return byte == kPattern; });
  }
  bool same_bits(const Guarded& other) const {
    return n_ == other.n_ && intact() && other.intact() &&
           std::memcmp(data(), other.data(), static_cast<size_t>(n_) * sizeof(T)) == 0;
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr unsigned char kPattern = 0xcd;
  unsigned char* memory_ = nullptr;
  size_t writable_ = 0, total_ = 0;
  int64_t n_;
};

// Normal numbers times `deviation`, from a fixed stream.
inline void fill_normal(Guarded<float>& to, uint64_t seed, float deviation = 1.0f) {
  for (int64_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<float>(normal_at(seed, static_cast<uint64_t>(i))) * deviation;
  }
}
inline Guarded<float> normal_numbers(int64_t n, uint64_t seed, float deviation = 1.0f) {
  Guarded<float> result(n);
  fill_normal(result, seed, deviation);
  return result;
}
inline std::vector<double> as_double(const Guarded<float>& from) {
  return std::vector<double>(from.data(), from.data() + from.size());
}

// The distance in units of the last place of `expected` rounded to float; 0 where both are NaN or equal infinities.
inline double ulp_error(float actual, double expected) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : std::numeric_limits<double>::infinity();
  const auto rounded = static_cast<float>(expected);
  if (actual == rounded) return 0;
  if (std::isnan(actual) || std::isinf(actual)) return std::numeric_limits<double>::infinity();
  const double magnitude = std::max(std::abs(expected), double{std::numeric_limits<float>::min()});
  return std::abs(actual - expected) / std::ldexp(1.0, std::ilogb(std::min(magnitude, 3.4028234e38)) - 23);
}

// |actual - expected| <= tolerance * max(1, |expected|), for every element.
inline void expect_close(const Guarded<float>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(static_cast<size_t>(actual.size()), expected.size());
  EXPECT_TRUE(actual.intact()) << "bytes outside the output were written";
  for (size_t i = 0; i < expected.size(); ++i) {
    const double got = actual[static_cast<int64_t>(i)];
    ASSERT_LE(std::abs(got - expected[i]), tolerance * std::max(1.0, std::abs(expected[i])))
        << "element " << i << " is " << got << ", expected " << expected[i];
  }
}

// Lengths around every vector width.
inline const std::vector<int64_t> kOddSizes = {1,  2,  3,  4,  5,  7,  8,   9,   15,  16,
                                               17, 31, 33, 63, 64, 65, 100, 127, 129, 257};

}  // namespace ingot::kernels::testing
