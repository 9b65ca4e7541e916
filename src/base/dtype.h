// Element types of tensors, their sizes and names, and the 16-bit floating-point formats in portable form.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ingot {

enum class DType : uint8_t { f32, bf16, f16, f64, i32, i64, i8, u8 };

// Bytes of one element.
constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::i8:
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f64;
}

std::string_view name_of(DType dtype);  // "f32"
std::optional<DType> dtype_from_name(std::string_view name);

// bf16 and IEEE binary16 as bit patterns. Conversions from f32 round to nearest even; NaN stays NaN.
constexpr float float_from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
constexpr uint16_t bf16_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
float float_from_f16(uint16_t bits);
uint16_t f16_from_float(float value);

}  // namespace ingot
