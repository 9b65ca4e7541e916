#include "kernels/attention/cached_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/attention/attention_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;

// The cache of all positions, and queries of all positions, of which a shape takes the last few.
struct Cached {
  CachedAttentionShape shape;
  std::vector<int32_t> start;
  Guarded<float> q, k, v;
};

Cached problem(int64_t tokens, int64_t heads, int64_t kv_heads, int64_t dim, int64_t window,
               std::vector<int32_t> start) {
  CachedAttentionShape s;
  s.batch = static_cast<int64_t>(start.size());
  s.tokens = tokens;
  s.heads = heads;
  s.kv_heads = kv_heads;
  s.head_dim = dim;
  s.capacity = 430;
  s.q_row_stride = heads * dim + 5;
  s.out_row_stride = heads * dim;
  s.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  s.window = window;
  const int64_t cache = s.batch * kv_heads * s.capacity * dim;
  return {s, std::move(start), testing::normal_numbers(s.batch * tokens * s.q_row_stride, 1),
          testing::normal_numbers(cache, 2), testing::normal_numbers(cache, 3)};
}

Guarded<float> compute(const Cached& c, int threads) {
  const auto attention = CachedAttention::create(c.shape, threads).value();
  Guarded<float> out(c.shape.batch * c.shape.tokens * c.shape.out_row_stride);
  const size_t stride = attention->scratch_bytes() / sizeof(float) + 16;
  std::vector<float> scratch(stride * static_cast<size_t>(threads), NAN);
  ThreadPool(threads).run(attention->tiles(), [&](int64_t tile, int thread) {
    attention->run(tile, c.q.data(), c.k.data(), c.v.data(), c.start.data(), out.data(), thread,
                   reinterpret_cast<std::byte*>(scratch.data() + stride * static_cast<size_t>(thread)));
  });
  return out;
}

// One query at a time, over the positions that it sees.
std::vector<double> reference(const Cached& c) {
  const CachedAttentionShape& s = c.shape;
  std::vector<double> out(static_cast<size_t>(s.batch * s.tokens * s.out_row_stride));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t t = 0; t < s.tokens; ++t)
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t last = c.start[static_cast<size_t>(b)] + t;
        const int64_t first = s.window > 0 ? std::max<int64_t>(0, last - s.window + 1) : 0;
        const int64_t cache = (b * s.kv_heads + h / (s.heads / s.kv_heads)) * s.capacity * s.head_dim;
        const float* q = c.q.data() + (b * s.tokens + t) * s.q_row_stride + h * s.head_dim;
        std::vector<double> weights;
        double highest = -1e300, total = 0;
        for (int64_t j = first; j <= last; ++j) {
          double score = 0;
          for (int64_t i = 0; i < s.head_dim; ++i) score += double{q[i]} * c.k[cache + j * s.head_dim + i];
          score *= double{s.scale};
          weights.push_back(s.softcap > 0 ? s.softcap * std::tanh(score / double{s.softcap}) : score);
          highest = std::max(highest, weights.back());
        }
        for (double& weight : weights) total += weight = std::exp(weight - highest);
        for (int64_t j = first; j <= last; ++j)
          for (int64_t i = 0; i < s.head_dim; ++i)
            out[static_cast<size_t>((b * s.tokens + t) * s.out_row_stride + h * s.head_dim + i)] +=
                weights[static_cast<size_t>(j - first)] / total * c.v[cache + j * s.head_dim + i];
      }
  return out;
}

TEST(CachedAttention, AgreesWithTheReferenceOnEveryInstructionSet) {
  const struct {
    int64_t tokens, dim, window;
  } cases[] = {{1, 64, 0}, {1, 6, 7}, {3, 80, 0}, {3, 130, 260}, {5, 10, 0}, {40, 64, 7}, {140, 1, 0}, {140, 80, 100}};
  for (const auto& [tokens, dim, window] : cases) {
    const Cached c = problem(tokens, 4, 2, dim, window, {0, 17, 280});
    const std::vector<double> expected = reference(c);
    testing::on_each_instruction_set([&] { testing::expect_close(compute(c, 1), expected, 4e-6); });
  }
}

TEST(CachedAttention, CapsItsScoresSoftly) {
  for (const int64_t tokens : {1, 3, 140}) {  // row by row, and by tiles
    Cached c = problem(tokens, 4, 2, 32, 50, {0, 17, 280});
    const std::vector<double> uncapped = reference(c);
    c.shape.softcap = 0.6f;
    const std::vector<double> expected = reference(c);
    EXPECT_NE(expected, uncapped);
    testing::on_each_instruction_set([&] { testing::expect_close(compute(c, 1), expected, 4e-6); });
    c.shape.softcap = -1;
    EXPECT_FALSE(CachedAttention::create(c.shape, 1).ok());
  }
}

TEST(CachedAttention, OneKeyValueHeadForManyQueries) {
  const Cached c = problem(3, 32, 1, 16, 0, {290});
  testing::expect_close(compute(c, 1), reference(c), 4e-6);
}

TEST(CachedAttention, BitsDoNotDependOnTheNumberOfThreads) {
  for (int64_t tokens : {1, 200}) {
    const Cached c = problem(tokens, 6, 3, 32, 0, {5, 229});
    const Guarded<float> one = compute(c, 1);
    for (int threads : {2, 3, 5}) EXPECT_TRUE(one.same_bits(compute(c, threads)));
  }
}

TEST(CachedAttention, RefusesMoreTokensThanTheCacheHolds) {
  CachedAttentionShape s = problem(4, 2, 1, 8, 0, {0}).shape;
  s.capacity = 3;
  EXPECT_FALSE(CachedAttention::create(s, 1).ok());
}

}  // namespace
}  // namespace ingot::kernels
