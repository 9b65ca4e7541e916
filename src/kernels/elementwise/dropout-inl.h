// Philox4x32-10 (base/rng.h) for many counters at once, and the dropout mask made of it.
#if defined(INGOT_KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_DROPOUT_INL_H_
#undef INGOT_KERNELS_DROPOUT_INL_H_
#else
#define INGOT_KERNELS_DROPOUT_INL_H_
#endif

#include "base/rng.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// Elements drawn in one go; a buffer of bits must hold kDropoutBits words.
inline constexpr int64_t kDropoutChunk = 1024;
inline constexpr int64_t kDropoutBits = kDropoutChunk + 4 * hn::MaxLanes(FloatTag()) + 8;

// The words of the blocks [first_block, first_block + blocks) to bits[4 * blocks], which may be overrun by up to two
// vectors.
HWY_INLINE void fill_philox(uint64_t key, uint64_t counter, uint64_t first_block, int64_t blocks, uint32_t* bits) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < blocks; ++i) {
    const PhiloxBlock block = philox(key, first_block + static_cast<uint64_t>(i), counter);
    std::memcpy(bits + 4 * i, block.data(), sizeof(block));
  }
#else
  // One block a 64-bit lane. Only the low halves of the state's lanes mean anything; MulEven reads no other.
  const hn::ScalableTag<uint64_t> wide;
  const hn::RepartitionToNarrow<decltype(wide)> narrow;
  const int64_t step = static_cast<int64_t>(hn::Lanes(wide));
  const auto multiplier0 = hn::Set(narrow, 0xD2511F53u), multiplier1 = hn::Set(narrow, 0xCD9E8D57u);
  const auto low_half = hn::Set(wide, 0xffffffffu);
  const auto first_indices = hn::Iota(wide, first_block);
  for (int64_t i = 0; i < blocks; i += step) {
    const auto index = hn::Add(first_indices, hn::Set(wide, static_cast<uint64_t>(i)));
    auto c0 = hn::BitCast(narrow, index);
    auto c1 = hn::BitCast(narrow, hn::ShiftRight<32>(index));
    auto c2 = hn::BitCast(narrow, hn::Set(wide, counter));
    auto c3 = hn::BitCast(narrow, hn::Set(wide, counter >> 32));
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto p0 = hn::MulEven(c0, multiplier0), p1 = hn::MulEven(c2, multiplier1);
      c0 = hn::Xor3(hn::BitCast(narrow, hn::ShiftRight<32>(p1)), c1, hn::Set(narrow, k0));
      c2 = hn::Xor3(hn::BitCast(narrow, hn::ShiftRight<32>(p0)), c3, hn::Set(narrow, k1));
      c1 = hn::BitCast(narrow, p1);
      c3 = hn::BitCast(narrow, p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const auto pair0 = hn::Or(hn::And(hn::BitCast(wide, c0), low_half), hn::ShiftLeft<32>(hn::BitCast(wide, c1)));
    const auto pair1 = hn::Or(hn::And(hn::BitCast(wide, c2), low_half), hn::ShiftLeft<32>(hn::BitCast(wide, c3)));
    hn::StoreInterleaved2(pair0, pair1, wide, reinterpret_cast<uint64_t*>(bits + 4 * i));
  }
#endif
}

// Bits for the elements [first, first + count) of a stream, count <= kDropoutChunk; the first element's are at the
// result.
HWY_INLINE const uint32_t* draw_bits(uint64_t key, uint64_t counter, int64_t first, int64_t count, uint32_t* buffer) {
  const int64_t block = first / 4, end = (first + count + 3) / 4;
  fill_philox(key, counter, static_cast<uint64_t>(block), end - block, buffer);
  return buffer + (first - 4 * block);
}

// x * scale where the uniform number is at least p, else 0. Reads a whole vector of bits, also for part of a vector.
HWY_INLINE FloatVec apply_dropout(FloatVec x, const uint32_t* bits, FloatVec p, FloatVec scale) {
  const hn::RebindToUnsigned<FloatTag> words;
  const auto top = hn::BitCast(hn::RebindToSigned<FloatTag>(), hn::ShiftRight<8>(hn::LoadU(words, bits)));
  const FloatVec uniform = hn::Mul(hn::ConvertTo(kFloat, top), set(0x1p-24f));
  return hn::IfThenElseZero(hn::Ge(uniform, p), hn::Mul(x, scale));
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // INGOT_KERNELS_DROPOUT_INL_H_
