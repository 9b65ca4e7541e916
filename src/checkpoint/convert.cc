#include "checkpoint/convert.h"

#include <cstring>

namespace ingot {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T, class F>
void to_f32(const std::byte* source, std::byte* destination, size_t count, F convert) {
  for (size_t i = 0; i < count; ++i) {
    const float value = convert(load<T>(source + i * sizeof(T)));
    std::memcpy(destination + i * sizeof(float), &value, sizeof(float));
  }
}

template <class T, class F>
void from_f32(const std::byte* source, std::byte* destination, size_t count, F convert) {
  for (size_t i = 0; i < count; ++i) {
    const T value = convert(load<float>(source + i * sizeof(float)));
    std::memcpy(destination + i * sizeof(T), &value, sizeof(T));
  }
}

void widen(DType from, const std::byte* source, std::byte* destination, size_t count) {
  switch (from) {
    case DType::f64:
      return to_f32<double>(source, destination, count, [](double x) { return static_cast<float>(x); });
    case DType::bf16:
      return to_f32<uint16_t>(source, destination, count, [](uint16_t x) { return float_from_bf16(x); });
    case DType::f16:
      return to_f32<uint16_t>(source, destination, count, [](uint16_t x) { return float_from_f16(x); });
    default:
      std::memcpy(destination, source, count * sizeof(float));
  }
}

void narrow(DType to, const std::byte* source, std::byte* destination, size_t count) {
  switch (to) {
    case DType::f64:
      return from_f32<double>(source, destination, count, [](float x) { return static_cast<double>(x); });
    case DType::bf16:
      return from_f32<uint16_t>(source, destination, count, [](float x) { return bf16_from_float(x); });
    case DType::f16:
      return from_f32<uint16_t>(source, destination, count, [](float x) { return f16_from_float(x); });
    default:
      std::memcpy(destination, source, count * sizeof(float));
  }
}

}  // namespace

void convert_elements(DType from, const std::byte* source, DType to, std::byte* destination, size_t count) {
  INGOT_CHECK(is_convertible(from, to), "elements of {} cannot become {}", name_of(from), name_of(to));
  if (count == 0) return;
  if (from == to) {
    std::memcpy(destination, source, count * size_of(from));
    return;
  }
  if (to == DType::f32) return widen(from, source, destination, count);
  constexpr size_t kChunk = 1024;  // both halves of the way stay in the first-level cache
  float chunk[kChunk];
  auto* wide = reinterpret_cast<std::byte*>(chunk);
  for (size_t done = 0; done < count; done += kChunk) {
    const size_t n = count - done < kChunk ? count - done : kChunk;
    widen(from, source + done * size_of(from), wide, n);
    narrow(to, wide, destination + done * size_of(to), n);
  }
}

void convert_to_f32(const ConstTensorView& source, std::span<float> destination) {
  const auto count = static_cast<size_t>(source.shape.elements());
  INGOT_CHECK(count == destination.size(), "{} elements converted into room for {}", count, destination.size());
  convert_elements(source.dtype, source.data, DType::f32, reinterpret_cast<std::byte*>(destination.data()), count);
}

}  // namespace ingot
