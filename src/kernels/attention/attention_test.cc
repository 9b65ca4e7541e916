#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "kernels/attention/attention_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::on_each_instruction_set;

constexpr AttentionDropout kDropout{0x1234567890abcdefu, 7};

// Scratch of every thread, not a number wherever it is read before it is written.
class Scratch {
 public:
  Scratch(size_t bytes, int threads)
      : stride_((bytes + 63) / 64 * 64), memory_(stride_ * static_cast<size_t>(threads) + 64, std::byte{0xff}) {}
  std::byte* of(int thread) {
    const auto address = (reinterpret_cast<uintptr_t>(memory_.data()) + 63) / 64 * 64;
    return reinterpret_cast<std::byte*>(address) + stride_ * static_cast<size_t>(thread);
  }

 private:
  size_t stride_;
  std::vector<std::byte> memory_;
};

struct Case {
  AttentionShape shape;
  std::vector<int32_t> segment_start;
  const char* name = "";
};

// Queries, keys and values beside each other in rows of one buffer, as one product with three weights leaves them.
AttentionShape shape_of(int64_t batch, int64_t tokens, int64_t heads, int64_t kv_heads, int64_t dim) {
  AttentionShape s;
  s.batch = batch;
  s.tokens = tokens;
  s.heads = heads;
  s.kv_heads = kv_heads;
  s.head_dim = dim;
  s.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  s.q_row_stride = s.k_row_stride = s.v_row_stride = (heads + 2 * kv_heads) * dim;
  s.out_row_stride = heads * dim;
  return s;
}

struct Outputs {
  Guarded<float> out, lse, gradient;
};

struct Problem {
  explicit Problem(const Case& c)
      : shape(c.shape),
        segment_start(c.segment_start),
        qkv(testing::normal_numbers(c.shape.batch * c.shape.tokens * c.shape.q_row_stride, 1)),
        dout(testing::normal_numbers(c.shape.batch * c.shape.tokens * c.shape.out_row_stride, 2)) {}
  int64_t k_offset() const { return shape.heads * shape.head_dim; }
  int64_t v_offset() const { return k_offset() + shape.kv_heads * shape.head_dim; }
  const int32_t* segments() const { return segment_start.empty() ? nullptr : segment_start.data(); }

  AttentionShape shape;
  std::vector<int32_t> segment_start;
  Guarded<float> qkv, dout;
};

Outputs compute(const Problem& p, int threads) {
  const AttentionShape& s = p.shape;
  const ThreadPool pool(threads);
  Outputs o{Guarded<float>(p.dout.size()), Guarded<float>(2 * s.batch * s.heads * s.tokens),
            Guarded<float>(p.qkv.size())};
  const AttentionInputs inputs{p.qkv.data(), p.qkv.data() + p.k_offset(), p.qkv.data() + p.v_offset(), p.segments(),
                               kDropout};
  const auto forward = AttentionForward::create(s, threads).value();
  Scratch scratch(forward->scratch_bytes(), threads);
  pool.run(forward->tiles(), [&](int64_t tile, int thread) {
    forward->run(tile, inputs, o.out.data(), o.lse.data(), thread, scratch.of(thread));
  });
  const auto backward = AttentionBackward::create(s, threads).value();
  Scratch backward_scratch(backward->scratch_bytes(), threads), workspace(backward->workspace_bytes(), 1);
  const AttentionGradients gradients{o.gradient.data(), o.gradient.data() + p.k_offset(),
                                     o.gradient.data() + p.v_offset()};
  for (int stage = 0; stage < backward->stages(); ++stage)
    pool.run(backward->tiles(stage), [&](int64_t tile, int thread) {
      backward->run(stage, tile, inputs, o.out.data(), o.lse.data(), p.dout.data(), gradients, workspace.of(0), thread,
                    backward_scratch.of(thread));
    });
  return o;
}

void expect_right(const Case& c) {
  SCOPED_TRACE(c.name);
  const Problem p(c);
  const AttentionShape& s = p.shape;
  const auto qkv = testing::as_double(p.qkv), dout = testing::as_double(p.dout);
  std::vector<double> out(dout.size()), lse(static_cast<size_t>(2 * s.batch * s.heads * s.tokens)),
      gradient(qkv.size());
  const double *k = qkv.data() + p.k_offset(), *v = qkv.data() + p.v_offset();
  attention_reference(s, qkv.data(), k, v, p.segments(), kDropout, out.data(), lse.data());
  attention_gradient_reference(s, qkv.data(), k, v, p.segments(), kDropout, dout.data(), gradient.data(),
                               gradient.data() + p.k_offset(), gradient.data() + p.v_offset());
  Outputs o = compute(p, 1);
  for (size_t i = 0; i < lse.size(); ++i) {
    if (!std::isinf(lse[i])) continue;
    EXPECT_EQ(o.lse[static_cast<int64_t>(i)], -std::numeric_limits<float>::infinity());
    lse[i] = o.lse[static_cast<int64_t>(i)] = 0;
  }
  testing::expect_close(o.out, out, 4e-6);
  testing::expect_close(o.lse, lse, 4e-6);
  testing::expect_close(o.gradient, gradient, 2e-5);  // sums over up to all tokens of all heads of a group
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int64_t tokens : {1, 2, 31, 33, 127, 129, 300}) all.push_back({shape_of(2, tokens, 2, 2, 8), {}, "tokens"});
  for (int64_t dim : {1, 6, 10, 64, 80, 128}) all.push_back({shape_of(1, 70, 2, 1, dim), {}, "head sizes"});
  all.push_back({shape_of(1, 150, 6, 2, 12), {}, "grouped"});
  for (int64_t window : {1, 5, 128, 140}) {
    Case c{shape_of(1, 290, 2, 1, 8), {}, "window"};
    c.shape.window = window;
    all.push_back(c);
  }
  Case documents{shape_of(2, 270, 2, 2, 8), {}, "documents"};
  for (int64_t i = 0; i < 2 * 270; ++i) {
    const int64_t token = i % 270;
    documents.segment_start.push_back(static_cast<int32_t>(token < 50 ? 0 : token < 53 ? 50 : token < 200 ? 53 : 200));
  }
  all.push_back(documents);
  documents.shape.window = 9;
  all.push_back(documents);
  Case blind{shape_of(2, 140, 2, 1, 8), {}, "rows that see nothing"};
  for (int64_t i = 0; i < 2 * 140; ++i)  // one in three of the first batch row; all of the second
    blind.segment_start.push_back(static_cast<int32_t>(i >= 140 || i % 3 == 0 ? 1000 : i % 140 / 2));
  all.push_back(blind);
  for (int64_t tokens : {64, 135, 141}) {
    Case dropout{shape_of(2, tokens, 2, 1, 8), {}, "dropout"};
    dropout.shape.dropout_p = 0.3f;
    all.push_back(dropout);
    dropout.shape.softcap = 0.8f;
    dropout.name = "softcap and dropout";
    all.push_back(dropout);
  }
  for (int64_t tokens : {1, 33, 290}) {
    Case capped{shape_of(2, tokens, 4, 2, 10), {}, "softcap"};
    capped.shape.softcap = 0.5f;
    capped.shape.window = 140;
    all.push_back(capped);
  }
  blind.shape.softcap = 2.0f;
  all.push_back(blind);
  return all;
}

TEST(Attention, AgreesWithTheReferenceOnEveryInstructionSet) {
  on_each_instruction_set([] {
    for (const Case& c : cases()) expect_right(c);
  });
}

TEST(Attention, BitsDoNotDependOnTheNumberOfThreads) {
  for (Case c : {Case{shape_of(1, 530, 4, 2, 16), {}, ""}, Case{shape_of(3, 129, 5, 5, 10), {}, ""}}) {
    c.shape.dropout_p = 0.1f;
    const Problem p(c);
    const Outputs one = compute(p, 1);
    for (int threads : {2, 3, 5}) {
      const Outputs many = compute(p, threads);
      EXPECT_TRUE(one.out.same_bits(many.out) && one.lse.same_bits(many.lse) && one.gradient.same_bits(many.gradient));
    }
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Case c{shape_of(1, 140, 1, 1, 4), {}, ""};
  c.shape.scale = 3000.0f;
  for (const float softcap : {0.0f, 50.0f}) {
    c.shape.softcap = softcap;
    const Problem p(c);
    const Outputs o = compute(p, 1);
    for (const Guarded<float>* all : {&o.out, &o.lse, &o.gradient})
      for (int64_t i = 0; i < all->size(); ++i) ASSERT_TRUE(std::isfinite((*all)[i])) << i;
  }
}

// Whatever the scores, a query's weights sum to 1: with dout 1 in one component, so does each query's share of dv.
TEST(Attention, BackwardsWeightsSumToOneForScoresOfAnySize) {
  on_each_instruction_set([] {
    for (const float scale : {1.0f, 1e3f, 1e5f, 1e7f, 1e12f}) {
      SCOPED_TRACE(scale);
      Case c{shape_of(1, 200, 1, 1, 4), {}, ""};
      c.shape.scale = scale;
      Problem p(c);
      for (int64_t i = 0; i < p.dout.size(); ++i) p.dout[i] = i % 4 == 0 ? 1.0f : 0.0f;
      const Outputs o = compute(p, 1);
      double total = 0;
      for (int64_t j = 0; j < 200; ++j) total += o.gradient[j * p.shape.q_row_stride + p.v_offset()];
      EXPECT_NEAR(total, 200, 1e-3);
    }
  });
}

TEST(Attention, NotANumberIsNotHidden) {
  Problem p(Case{shape_of(1, 40, 1, 1, 8), {}, ""});
  p.qkv[20 * p.shape.q_row_stride] = std::numeric_limits<float>::quiet_NaN();
  const Outputs o = compute(p, 1);
  for (int64_t c = 0; c < 8; ++c) {
    EXPECT_TRUE(std::isnan(o.out[20 * 8 + c]));
    EXPECT_FALSE(std::isnan(o.out[19 * 8 + c]));
    EXPECT_FALSE(std::isnan(o.out[21 * 8 + c]));
  }
}

TEST(Attention, WorkspaceGrowsWithTokensNotWithTheirSquare) {
  for (int64_t tokens : {1024, 8192}) {
    const AttentionShape s = shape_of(1, tokens, 12, 12, 64);
    const auto forward = AttentionForward::create(s, 1).value();
    const auto backward = AttentionBackward::create(s, 1).value();
    EXPECT_LE(forward->scratch_bytes(), size_t{200} << 10);
    EXPECT_LE(backward->scratch_bytes(), size_t{400} << 10);
    EXPECT_LE(backward->workspace_bytes(), static_cast<size_t>(tokens) * 12 * 64 * 2 * sizeof(float));
  }
}

TEST(Attention, NoTokensHaveNoTiles) {
  const AttentionShape s = shape_of(2, 0, 2, 1, 8);
  EXPECT_EQ(AttentionForward::create(s, 1).value()->tiles(), 0);
  EXPECT_EQ(AttentionBackward::create(s, 1).value()->tiles(0), 0);
}

TEST(Attention, RefusesShapesThatMakeNoSense) {
  EXPECT_FALSE(AttentionForward::create(shape_of(1, 4, 3, 2, 8), 1).ok());
  AttentionShape s = shape_of(1, 4, 2, 2, 8);
  s.dropout_p = 1.0f;
  EXPECT_FALSE(AttentionForward::create(s, 1).ok());
  s = shape_of(1, 4, 2, 2, 8);
  s.softcap = -1.0f;
  EXPECT_FALSE(AttentionForward::create(s, 1).ok());
  s = shape_of(1, 4, 2, 2, 8);
  s.q_row_stride = 15;
  EXPECT_FALSE(AttentionBackward::create(s, 1).ok());
}

}  // namespace
}  // namespace ingot::kernels
