#include "export/narrow.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "export/gguf_file.h"

namespace ingot {
namespace {

// The smallest magnitude, as f32, that rounds to infinity.
double overflow_limit(DType to) {
  if (to == DType::f16) return 65520.0;
  if (to == DType::bf16) return 0x1.FFp127;
  return std::numeric_limits<double>::infinity();  // f32, or wider: what is infinite as f32 already
}

template <class T, class F>
std::optional<double> find_overflow(const std::byte* source, size_t count, double limit, F value_of) {
  for (size_t i = 0; i < count; ++i) {
    T raw;
    std::memcpy(&raw, source + i * sizeof(T), sizeof(T));
    const double value = value_of(raw);
    if (std::isfinite(value) && std::abs(static_cast<double>(static_cast<float>(value))) >= limit) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> first_overflow(DType from, const std::byte* source, DType to, size_t count) {
  if (from == to || to == DType::f64) return std::nullopt;
  const double limit = overflow_limit(to);
  if (from == DType::f64) return find_overflow<double>(source, count, limit, [](double x) { return x; });
  if (from == DType::f32) return find_overflow<float>(source, count, limit, [](float x) { return double{x}; });
  if (from == DType::bf16 && to == DType::f16)
    return find_overflow<uint16_t>(source, count, limit, [](uint16_t x) { return double{float_from_bf16(x)}; });
  return std::nullopt;  // f16 fits everywhere
}

Error overflow_error(const std::string& tensor, double value, std::string_view to) {
  return failed_error("the tensor {} holds {:g}, which is beyond {}; choose bf16 or f32", tensor, value, to);
}

bool quantize_q8_0(std::span<const float> values, std::byte* out) {
  for (size_t begin = 0; begin < values.size(); begin += kQ8Block) {
    const auto block = values.subspan(begin, kQ8Block);
    float largest = 0;
    for (const float x : block) {
      if (!std::isfinite(x)) return false;
      largest = std::max(largest, std::abs(x));
    }
    const float scale = largest / 127.0f;
    if (scale >= 65520.0f) return false;
    const float exact = 1.0f / scale,
                inverse = std::isfinite(exact) ? exact : 0.0f;  // a scale that f16 has no place for
    const uint16_t stored = f16_from_float(scale);
    std::memcpy(out, &stored, sizeof(stored));
    out += sizeof(stored);
    for (const float x : block) *out++ = static_cast<std::byte>(static_cast<int8_t>(std::round(x * inverse)));
  }
  return true;
}

}  // namespace ingot
