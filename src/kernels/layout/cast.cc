#include <algorithm>

#include "base/check.h"
#include "base/dtype.h"
#include "kernels/layout/layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layout/cast.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/layout/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

void bf16_from_f32(const float* from, uint16_t* to, int64_t n) {
  narrow(from, DType::bf16, to, n);
}
void f16_from_f32(const float* from, uint16_t* to, int64_t n) {
  narrow(from, DType::f16, to, n);
}
void f32_from_bf16(const uint16_t* from, float* to, int64_t n) {
  widen(from, DType::bf16, to, n);
}
void f32_from_f16(const uint16_t* from, float* to, int64_t n) {
  widen(from, DType::f16, to, n);
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(bf16_from_f32);
HWY_EXPORT(f32_from_bf16);
HWY_EXPORT(f16_from_f32);
HWY_EXPORT(f32_from_f16);

bool is_half(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16;
}

void halves_from_floats(const float* from, DType to_dtype, uint16_t* to, int64_t n) {
  if (to_dtype == DType::bf16) return HWY_DYNAMIC_DISPATCH(bf16_from_f32)(from, to, n);
  HWY_DYNAMIC_DISPATCH(f16_from_f32)(from, to, n);
}
void floats_from_halves(const uint16_t* from, DType from_dtype, float* to, int64_t n) {
  if (from_dtype == DType::bf16) return HWY_DYNAMIC_DISPATCH(f32_from_bf16)(from, to, n);
  HWY_DYNAMIC_DISPATCH(f32_from_f16)(from, to, n);
}

// bf16 and f16 meet in f32, which holds both exactly.
void halves_from_halves(const uint16_t* from, DType from_dtype, uint16_t* to, DType to_dtype, int64_t n) {
  constexpr int64_t kChunk = 1024;
  float buffer[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = std::min(kChunk, n - i);
    floats_from_halves(from + i, from_dtype, buffer, count);
    halves_from_floats(buffer, to_dtype, to + i, count);
  }
}
}  // namespace

bool can_cast(DType from_dtype, DType to_dtype) {
  if (from_dtype == to_dtype) return true;
  const auto small = [](DType dtype) { return dtype == DType::f32 || is_half(dtype); };
  if (small(from_dtype) && small(to_dtype)) return true;
  return (from_dtype == DType::f32 && to_dtype == DType::f64) || (from_dtype == DType::f64 && to_dtype == DType::f32);
}

void cast(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t n) {
  INGOT_CHECK(can_cast(from_dtype, to_dtype), "cast from {} to {}", name_of(from_dtype), name_of(to_dtype));
  if (from_dtype == to_dtype) {
    std::memcpy(to, from, static_cast<size_t>(n) * size_of(to_dtype));
  } else if (from_dtype == DType::f64) {
    std::copy_n(static_cast<const double*>(from), n, static_cast<float*>(to));
  } else if (to_dtype == DType::f64) {
    std::copy_n(static_cast<const float*>(from), n, static_cast<double*>(to));
  } else if (from_dtype == DType::f32) {
    halves_from_floats(static_cast<const float*>(from), to_dtype, static_cast<uint16_t*>(to), n);
  } else if (to_dtype == DType::f32) {
    floats_from_halves(static_cast<const uint16_t*>(from), from_dtype, static_cast<float*>(to), n);
  } else {
    halves_from_halves(static_cast<const uint16_t*>(from), from_dtype, static_cast<uint16_t*>(to), to_dtype, n);
  }
}

void round_through(DType dtype, const float* from, float* to, int64_t n) {
  constexpr int64_t kChunk = 512;
  uint16_t buffer[kChunk];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = std::min(kChunk, n - begin);
    cast(from + begin, DType::f32, buffer, dtype, count);
    cast(buffer, dtype, to + begin, DType::f32, count);
  }
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
