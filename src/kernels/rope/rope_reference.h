// The scalar reference of rotary position embedding, on float or double.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace ingot::kernels::reference {

// One head: its first 2 * frequencies.size() elements turned by position * frequency; y may not be x.
template <class T>
void rope_head(const T* x, std::span<const double> inverse_frequencies, int64_t position, bool inverse, T* y) {
  const size_t half = inverse_frequencies.size();
  for (size_t i = 0; i < half; ++i) {
    const double angle = static_cast<double>(position) * inverse_frequencies[i];
    const T c = static_cast<T>(std::cos(angle)), s = static_cast<T>(inverse ? -std::sin(angle) : std::sin(angle));
    y[i] = x[i] * c - x[half + i] * s;
    y[half + i] = x[half + i] * c + x[i] * s;
  }
}

}  // namespace ingot::kernels::reference
