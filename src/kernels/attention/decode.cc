#include <algorithm>
#include <cstdint>

#include "kernels/attention/decode_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/decode.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/elementwise/math-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

constexpr float kNothingYet = -1e30f;

// scores[j] = scale * q . k[j]
HWY_INLINE void dot_keys(int64_t keys, int64_t dim, const float* q, float scale, const float* k, float* scores) {
  for (int64_t j = 0; j < keys; ++j) {
    const float* key = k + j * dim;
    scores[j] = scale * sum_vectors(dim, [&](int64_t c, auto at) { return hn::Mul(at.load(q + c), at.load(key + c)); });
  }
}

// softcap * tanh(score / softcap) in place.
HWY_INLINE void cap_scores(int64_t keys, float softcap, float* scores) {
  for_vectors(keys, [&](int64_t j, auto at) {
    at.store(hn::Mul(vector_tanh(hn::Div(at.load(scores + j), set(softcap))), set(softcap)), scores + j);
  });
}

// sum[c] = sum[c] * factor + weights . v[:, c], four vectors of columns at a time.
HWY_INLINE void add_values(int64_t keys, int64_t dim, const float* weights, const float* v, float factor, float* sum) {
  const int64_t step = lanes();
  int64_t c = 0;
  for (; c + 4 * step <= dim; c += 4 * step) {
    FloatVec s0 = hn::Zero(kFloat), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t j = 0; j < keys; ++j) {
      const float* value = v + j * dim + c;
      const FloatVec weight = set(weights[j]);
      s0 = hn::MulAdd(weight, hn::LoadU(kFloat, value), s0);
      s1 = hn::MulAdd(weight, hn::LoadU(kFloat, value + step), s1);
      s2 = hn::MulAdd(weight, hn::LoadU(kFloat, value + 2 * step), s2);
      s3 = hn::MulAdd(weight, hn::LoadU(kFloat, value + 3 * step), s3);
    }
    const FloatVec old = set(factor);
    hn::StoreU(hn::MulAdd(hn::LoadU(kFloat, sum + c), old, s0), kFloat, sum + c);
    hn::StoreU(hn::MulAdd(hn::LoadU(kFloat, sum + c + step), old, s1), kFloat, sum + c + step);
    hn::StoreU(hn::MulAdd(hn::LoadU(kFloat, sum + c + 2 * step), old, s2), kFloat, sum + c + 2 * step);
    hn::StoreU(hn::MulAdd(hn::LoadU(kFloat, sum + c + 3 * step), old, s3), kFloat, sum + c + 3 * step);
  }
  for_vectors(dim - c, [&](int64_t rest, auto at) {
    FloatVec s = hn::Zero(kFloat);
    for (int64_t j = 0; j < keys; ++j) s = hn::MulAdd(set(weights[j]), at.load(v + j * dim + c + rest), s);
    at.store(hn::MulAdd(at.load(sum + c + rest), set(factor), s), sum + c + rest);
  });
}

// exp(score - highest) in place; their sum.
HWY_INLINE float exponentials(int64_t keys, float highest, float* scores) {
  return sum_vectors(keys, [&](int64_t j, auto at) {
    const FloatVec p = vector_exp(hn::Sub(at.load(scores + j), set(highest)));
    at.store(p, scores + j);
    return p;
  });
}

// Blocks of keys in the outer loop: a group's queries share one reading of keys and values from memory.
void decode_tile(const DecodeTile& tile, float* scratch) {
  const int64_t count = tile.count, dim = tile.dim;
  float *scores = scratch, *maximum = scores + kDecodeBlock, *total = maximum + count, *sums = total + count;
  std::fill_n(maximum, count, kNothingYet);
  std::fill_n(total, count, 0.0f);
  std::fill_n(sums, count * dim, 0.0f);
  int64_t begin = tile.rows[0].first, end = 0;
  for (int64_t r = 0; r < count; ++r) {
    begin = std::min(begin, tile.rows[r].first);
    end = std::max(end, tile.rows[r].last + 1);
  }
  for (int64_t block = begin; block < end; block += kDecodeBlock) {
    for (int64_t r = 0; r < count; ++r) {
      const int64_t from = std::max(block, tile.rows[r].first);
      const int64_t keys = std::min(block + kDecodeBlock, tile.rows[r].last + 1) - from;
      if (keys <= 0) continue;
      dot_keys(keys, dim, tile.rows[r].q, tile.scale, tile.k + from * dim, scores);
      if (tile.softcap > 0) cap_scores(keys, tile.softcap, scores);
      float highest = maximum[r];
      for (int64_t j = 0; j < keys; ++j) highest = scores[j] > highest ? scores[j] : highest;
      const float factor = hn::GetLane(vector_exp(set(maximum[r] - highest)));
      total[r] = total[r] * factor + exponentials(keys, highest, scores);
      maximum[r] = highest;
      add_values(keys, dim, scores, tile.v + from * dim, factor, sums + r * dim);
    }
  }
  for (int64_t r = 0; r < count; ++r) {
    const FloatVec inverse = set(total[r] != 0.0f ? 1.0f / total[r] : 0.0f);
    const float* from = sums + r * dim;
    float* to = tile.rows[r].out;
    for_vectors(dim, [&](int64_t c, auto at) { at.store(hn::Mul(at.load(from + c), inverse), to + c); });
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(decode_tile);
}  // namespace

size_t decode_scratch_bytes(int64_t rows, int64_t dim) {
  return static_cast<size_t>(kDecodeBlock + rows * (dim + 2)) * sizeof(float);
}

void run_decode(const DecodeTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(decode_tile)(tile, scratch);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
