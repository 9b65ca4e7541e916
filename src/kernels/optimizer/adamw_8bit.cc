#include "kernels/optimizer/adamw_8bit.h"

#include <algorithm>
#include <cmath>

#include "kernels/optimizer/magnitude_map.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer/adamw_8bit.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

using IntTag = hn::RebindToSigned<FloatTag>;
using ByteTag = hn::Rebind<uint8_t, FloatTag>;

HWY_INLINE FloatVec decode(const uint8_t* codes, const float* values) {
  return hn::GatherIndex(kFloat, values, hn::PromoteTo(IntTag(), hn::LoadU(ByteTag(), codes)));
}

// table[index], for indices below kDynamicDecades.
HWY_INLINE FloatVec pick(const DecadeTable& table, hn::Vec<IntTag> index) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3  // as many lanes as there are decades
  return hn::TableLookupLanes(hn::LoadU(kFloat, table.data()), hn::IndicesFromVec(kFloat, index));
#else
  return hn::GatherIndex(kFloat, table.data(), index);
#endif
}

// The place of a magnitude in [0, 1] among those of the map, counted from zero; a whole number plus a part below one.
HWY_INLINE FloatVec magnitude_place(const MagnitudeMap& map, float first_offset, FloatVec x) {
  auto decade = hn::Zero(IntTag());
  const auto count_from = [&](size_t i) HWY_ATTR {
    decade = hn::Sub(decade, hn::BitCast(IntTag(), hn::VecFromMask(kFloat, hn::Ge(x, set(map.from[i])))));
  };
  static_assert(kDynamicDecades == 7);
  count_from(1), count_from(2), count_from(3), count_from(4), count_from(5), count_from(6);
  const FloatVec parts = pick(map.parts, decade), slope = pick(map.slope, decade);
  const FloatVec inside = hn::MulSub(x, slope, hn::Mul(parts, set(1.0f / 9)));
  const FloatVec part = hn::Min(hn::Max(inside, hn::Zero(kFloat)), hn::Sub(parts, set(1.0f)));
  return hn::Add(hn::Add(parts, part), set(first_offset));
}

HWY_INLINE void encode_signed(const MagnitudeMap& map, FloatVec x, uint8_t* codes) {
  const FloatVec magnitude = hn::Abs(x);
  FloatVec place = magnitude_place(map, 0.0f, magnitude);
  place = hn::IfThenElse(hn::Lt(magnitude, set(map.nothing)), hn::Zero(kFloat), place);
  // There is no value -1.
  const auto is_one = hn::And(hn::Gt(magnitude, set(map.one)), hn::Gt(x, hn::Zero(kFloat)));
  place = hn::IfThenElse(is_one, set(128.0f), place);
  const auto index = hn::ConvertTo(IntTag(), place);
  const auto is_negative = hn::RebindMask(IntTag(), hn::Lt(x, hn::Zero(kFloat)));
  const auto code = hn::Add(hn::Set(IntTag(), 127), hn::IfThenElse(is_negative, hn::Neg(index), index));
  hn::StoreU(hn::DemoteTo(ByteTag(), code), ByteTag(), codes);
}

HWY_INLINE void encode_unsigned(const MagnitudeMap& map, FloatVec x, uint8_t* codes) {
  FloatVec place = magnitude_place(map, -1.0f, x);
  place = hn::IfThenElse(hn::Gt(x, set(map.one)), set(255.0f), place);
  place = hn::IfThenElseZero(hn::Gt(x, hn::Zero(kFloat)), place);
  hn::StoreU(hn::DemoteTo(ByteTag(), hn::ConvertTo(IntTag(), place)), ByteTag(), codes);
}

HWY_INLINE float reciprocal_scale(float scale) {
  return scale >= std::numeric_limits<float>::min() ? 1 / scale : 0.0f;
}

// The codes of one block, of which the last may be shorter than the vectors reach: then it is worked on in a copy.
struct BlockCodes {
  HWY_ALIGN uint8_t copy[kDynamicBlock];
  uint8_t* at;
  HWY_INLINE BlockCodes(uint8_t* codes, int64_t count) : at(codes) {
    if (count == kDynamicBlock) return;
    std::memset(copy, 0, sizeof(copy));
    std::memcpy(copy, codes, static_cast<size_t>(count));
    at = copy;
  }
  HWY_INLINE void write_back(uint8_t* codes, int64_t count) const {
    if (at == copy) std::memcpy(codes, copy, static_cast<size_t>(count));
  }
};

// What does not change from block to block.
struct Factors {
  FloatVec beta1, rest1, beta2, rest2, decay, step, correction, eps, grad_scale;
  explicit Factors(const AdamW& args)
      : beta1(set_rounded(args.beta1)),
        rest1(set_rounded(1 - args.beta1)),
        beta2(set_rounded(args.beta2)),
        rest2(set_rounded(1 - args.beta2)),
        decay(set_rounded(1 - args.lr * args.weight_decay)),
        step(set_rounded(args.lr / args.bias_correction1)),
        correction(set_rounded(1 / std::sqrt(args.bias_correction2))),
        eps(set_rounded(args.eps)),
        grad_scale(set_rounded(args.grad_scale)) {}
};

HWY_INLINE void update_block(const Factors& f, float* p, const float* grad, QuantizedMoment m, QuantizedMoment v,
                             int64_t count) {
  HWY_ALIGN float first[kDynamicBlock], second[kDynamicBlock];
  const MagnitudeMap &m_map = magnitude_map(DynamicMap::signed_values),
                     &v_map = magnitude_map(DynamicMap::unsigned_values);
  const BlockCodes m_codes(m.codes, count), v_codes(v.codes, count);
  const FloatVec m_scale = set(*m.scales), v_scale = set(*v.scales);
  FloatVec m_largest = hn::Zero(kFloat), v_largest = m_largest;
  for_vectors(count, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec g = hn::Mul(access.load(grad + i), f.grad_scale);
    const FloatVec m_old = hn::Mul(decode(m_codes.at + i, m_map.values), m_scale);
    const FloatVec v_old = hn::Mul(decode(v_codes.at + i, v_map.values), v_scale);
    const FloatVec m_new = access.keep(hn::MulAdd(f.beta1, m_old, hn::Mul(f.rest1, g)));
    const FloatVec v_new = access.keep(hn::MulAdd(f.beta2, v_old, hn::Mul(hn::Mul(f.rest2, g), g)));
    const FloatVec denominator = hn::MulAdd(hn::Sqrt(v_new), f.correction, f.eps);
    const FloatVec decayed = hn::Mul(access.load(p + i), f.decay);
    access.store(hn::NegMulAdd(f.step, hn::Div(m_new, denominator), decayed), p + i);
    hn::Store(m_new, kFloat, first + i);
    hn::Store(v_new, kFloat, second + i);
    m_largest = hn::Max(m_largest, hn::Abs(m_new));
    v_largest = hn::Max(v_largest, v_new);
  });
  *m.scales = hn::GetLane(hn::MaxOfLanes(kFloat, m_largest));
  *v.scales = hn::GetLane(hn::MaxOfLanes(kFloat, v_largest));
  const FloatVec m_unit = set(reciprocal_scale(*m.scales)), v_unit = set(reciprocal_scale(*v.scales));
  for (int64_t i = 0; i < count; i += lanes()) {
    encode_signed(m_map, hn::Mul(hn::Load(kFloat, first + i), m_unit), m_codes.at + i);
    encode_unsigned(v_map, hn::Mul(hn::Load(kFloat, second + i), v_unit), v_codes.at + i);
  }
  m_codes.write_back(m.codes, count);
  v_codes.write_back(v.codes, count);
}

void update_8bit(const AdamW& args, float* p, const float* grad, QuantizedMoment m, QuantizedMoment v, int64_t n) {
  const Factors factors(args);
  for (int64_t i = 0; i < n; i += kDynamicBlock, ++m.scales, ++v.scales)
    update_block(factors, p + i, grad + i, {m.codes + i, m.scales}, {v.codes + i, v.scales},
                 std::min(kDynamicBlock, n - i));
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(update_8bit);
}  // namespace

void adamw_8bit(const AdamW& args, float* p, const float* grad, QuantizedMoment m, QuantizedMoment v, int64_t n) {
  HWY_DYNAMIC_DISPATCH(update_8bit)(args, p, grad, m, v, n);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
