#include <algorithm>

#include "base/check.h"
#include "base/dtype.h"
#include "kernels/layout/layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layout/cast.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

using HalfTag = hn::Rebind<uint16_t, FloatTag>;
inline constexpr HalfTag kHalf{};

// body(i) for whole vectors; the last part goes through buffers, so that every element meets the same instructions.
template <class From, class To, class Body>
HWY_INLINE void convert_vectors(const From* from, To* to, int64_t n, Body body) {
  const int64_t step = lanes();
  int64_t i = 0;
  for (; i + step <= n; i += step) body(from + i, to + i);
  if (i == n) return;
  HWY_ALIGN From in[hn::MaxLanes(FloatTag())] = {};
  HWY_ALIGN To out[hn::MaxLanes(FloatTag())];
  std::memcpy(in, from + i, static_cast<size_t>(n - i) * sizeof(From));
  body(in, out);
  std::memcpy(to + i, out, static_cast<size_t>(n - i) * sizeof(To));
}

void bf16_from_f32(const float* from, uint16_t* to, int64_t n) {
  const hn::RebindToSigned<FloatTag> whole;
  const hn::RebindToUnsigned<FloatTag> words;
  convert_vectors(from, to, n, [&](const float* a, uint16_t* b) HWY_ATTR {
    const auto x = hn::LoadU(kFloat, a);
    const auto bits = hn::BitCast(words, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(words, 0x7fff)), odd));
    const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(words, 0x40));
    const auto is_nan = hn::RebindMask(words, hn::IsNaN(x));
    const auto result = hn::BitCast(whole, hn::IfThenElse(is_nan, quiet, rounded));
    hn::StoreU(hn::DemoteTo(kHalf, result), kHalf, b);
  });
}

void f32_from_bf16(const uint16_t* from, float* to, int64_t n) {
  const hn::RebindToUnsigned<FloatTag> words;
  convert_vectors(from, to, n, [&](const uint16_t* a, float* b) HWY_ATTR {
    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(kHalf, a)));
    hn::StoreU(hn::BitCast(kFloat, bits), kFloat, b);
  });
}

// Highway's own conversions to f16 truncate where the CPU has none; these targets have them and round to nearest even.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
void f16_from_f32(const float* from, uint16_t* to, int64_t n) {
  const hn::Rebind<hwy::float16_t, FloatTag> f16;
  convert_vectors(from, to, n, [&](const float* a, uint16_t* b) HWY_ATTR {
    hn::StoreU(hn::BitCast(kHalf, hn::DemoteTo(f16, hn::LoadU(kFloat, a))), kHalf, b);
  });
}
void f32_from_f16(const uint16_t* from, float* to, int64_t n) {
  const hn::Rebind<hwy::float16_t, FloatTag> f16;
  convert_vectors(from, to, n, [&](const uint16_t* a, float* b) HWY_ATTR {
    hn::StoreU(hn::PromoteTo(kFloat, hn::BitCast(f16, hn::LoadU(kHalf, a))), kFloat, b);
  });
}
#else
void f16_from_f32(const float* from, uint16_t* to, int64_t n) {
  std::transform(from, from + n, to, f16_from_float);
}
void f32_from_f16(const uint16_t* from, float* to, int64_t n) {
  std::transform(from, from + n, to, float_from_f16);
}
#endif

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

}  // namespace ingot::kernels
#endif  // HWY_ONCE
