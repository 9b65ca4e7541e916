#include "base/dtype.h"

#include <array>
#include <cmath>

namespace ingot {
namespace {

struct Named {
  DType dtype;
  std::string_view name;
};
constexpr std::array<Named, 8> kNames{{{DType::f32, "f32"},
                                       {DType::bf16, "bf16"},
                                       {DType::f16, "f16"},
                                       {DType::f64, "f64"},
                                       {DType::i32, "i32"},
                                       {DType::i64, "i64"},
                                       {DType::i8, "i8"},
                                       {DType::u8, "u8"}}};

}  // namespace

std::string_view name_of(DType dtype) {
  for (const Named& named : kNames)
    if (named.dtype == dtype) return named.name;
  return "?";
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Named& named : kNames)
    if (named.name == name) return named.dtype;
  return std::nullopt;
}

float float_from_f16(uint16_t bits) {
  const float sign = (bits & 0x8000u) ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent == 31)
    return std::bit_cast<float>((static_cast<uint32_t>(bits & 0x8000u) << 16) | 0x7f800000u |
                                (static_cast<uint32_t>(mantissa) << 13));
  return sign * std::ldexp(static_cast<float>(mantissa | 0x400), exponent - 25);
}

uint16_t f16_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, a multiple of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | static_cast<uint16_t>((rounded - 0x38000000u) >> 13));
}

}  // namespace ingot
