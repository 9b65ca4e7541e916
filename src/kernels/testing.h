// For the kernels' tests: every instruction set the CPU has, memory with guards around it, and numbers to try.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

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

// n elements in the middle of guard bytes, at an address that is a multiple of sizeof(T) only. Contents start as a
// pattern that no kernel should leave where it ought to have written.
template <class T>
class Guarded {
 public:
  explicit Guarded(int64_t n) : bytes_(2 * kGuard + static_cast<size_t>(n) * sizeof(T), kPattern), n_(n) {}
  Guarded(const Guarded&) = default;
  T* data() { return reinterpret_cast<T*>(bytes_.data() + kGuard); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data() + kGuard); }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }
  int64_t size() const { return n_; }
  bool intact() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (bytes_[i] != kPattern || bytes_[bytes_.size() - 1 - i] != kPattern) return false;
    }
    return true;
  }
  bool same_bits(const Guarded& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr size_t kGuard = 256 + (sizeof(T) > 8 ? 8 : sizeof(T));
  static constexpr unsigned char kPattern = 0xcd;
  std::vector<unsigned char> bytes_;
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
