#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "kernels/attention/attention_reference.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/layout/layout.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::on_each_instruction_set;

constexpr AttentionDropout kDropout{0x1234567890abcdefu, 7};

// Scratch of every thread, not a number wherever it is read before it is written, between guards.
class Scratch {
 public:
  Scratch(size_t bytes, int threads) {
    for (int i = 0; i < threads; ++i) {
      auto& one = memory_.emplace_back(static_cast<int64_t>((bytes + 63) / 64 * 64));
      std::memset(one.data(), 0xff, static_cast<size_t>(one.size()));
    }
  }
  std::byte* of(int thread) { return memory_[static_cast<size_t>(thread)].data(); }

 private:
  std::vector<Guarded<std::byte>> memory_;
};

Guarded<std::byte> stored_as(DType dtype, const Guarded<float>& values) {
  Guarded<std::byte> stored(values.size() * static_cast<int64_t>(size_of(dtype)));
  cast(values.data(), DType::f32, stored.data(), dtype, values.size());
  return stored;
}
Guarded<float> in_f32(DType dtype, const Guarded<std::byte>& stored) {
  Guarded<float> values(stored.size() / static_cast<int64_t>(size_of(dtype)));
  cast(stored.data(), dtype, values.data(), DType::f32, values.size());
  return values;
}
// The nearest that the dtype has.
Guarded<float> rounded_to(DType dtype, const Guarded<float>& values) {
  return in_f32(dtype, stored_as(dtype, values));
}

struct Case {
  AttentionShape shape;
  std::vector<int32_t> segment_start;
  const char* name = "";
  Bf16Product bf16 = Bf16Product::widened;
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

struct Outputs {  // widened
  Guarded<float> out, lse, gradient;
};

struct Problem {
  explicit Problem(const Case& c)
      : shape(c.shape),
        segment_start(c.segment_start),
        bf16(c.bf16),
        qkv(rounded_to(shape.qkv, testing::normal_numbers(shape.batch * shape.tokens * shape.q_row_stride, 1))),
        dout(rounded_to(shape.out, testing::normal_numbers(shape.batch * shape.tokens * shape.out_row_stride, 2))) {}
  int64_t k_offset() const { return shape.heads * shape.head_dim; }
  int64_t v_offset() const { return k_offset() + shape.kv_heads * shape.head_dim; }
  const int32_t* segments() const { return segment_start.empty() ? nullptr : segment_start.data(); }

  AttentionShape shape;
  std::vector<int32_t> segment_start;
  Bf16Product bf16;
  Guarded<float> qkv, dout;
};

// The columns of dq, dk and dv, each from its own tensor of the size of all.
Guarded<float> joined(const Problem& p, const Guarded<float>& dq, const Guarded<float>& dk, const Guarded<float>& dv) {
  Guarded<float> all(p.qkv.size());
  for (int64_t i = 0; i < all.size(); ++i) {
    const int64_t column = i % p.shape.q_row_stride;
    all[i] = column < p.k_offset() ? dq[i] : column < p.v_offset() ? dk[i] : dv[i];
  }
  return all;
}

Outputs compute(const Problem& p, int threads) {
  const AttentionShape& s = p.shape;
  const ThreadPool pool(threads);
  const Guarded<std::byte> qkv = stored_as(s.qkv, p.qkv), dout = stored_as(s.out, p.dout);
  const auto buffer = [&](DType dtype) {
    return Guarded<std::byte>(p.qkv.size() * static_cast<int64_t>(size_of(dtype)));
  };
  Guarded<std::byte> out(dout.size()), dq = buffer(s.dq), dk = buffer(s.dk), dv = buffer(s.dv);
  Guarded<float> lse(2 * s.batch * s.heads * s.tokens);
  const auto element = [](const auto& bytes, DType dtype, int64_t at) {
    return const_cast<std::byte*>(bytes.data()) + at * static_cast<int64_t>(size_of(dtype));
  };
  const AttentionInputs inputs{qkv.data(), element(qkv, s.qkv, p.k_offset()), element(qkv, s.qkv, p.v_offset()),
                               p.segments(), kDropout};
  const auto forward = AttentionForward::create(s, threads, p.bf16).value();
  Scratch scratch(forward->scratch_bytes(), threads);
  pool.run(forward->tiles(), [&](int64_t tile, int thread) {
    forward->run(tile, inputs, out.data(), lse.data(), thread, scratch.of(thread));
  });
  const auto backward = AttentionBackward::create(s, threads, p.bf16).value();
  Scratch backward_scratch(backward->scratch_bytes(), threads), workspace(backward->workspace_bytes(), 1);
  const AttentionGradients gradients{dq.data(), element(dk, s.dk, p.k_offset()), element(dv, s.dv, p.v_offset())};
  for (int stage = 0; stage < backward->stages(); ++stage)
    pool.run(backward->tiles(stage), [&](int64_t tile, int thread) {
      backward->run(stage, tile, inputs, out.data(), lse.data(), dout.data(), gradients, workspace.of(0), thread,
                    backward_scratch.of(thread));
    });
  EXPECT_TRUE(out.intact() && lse.intact() && dq.intact() && dk.intact() && dv.intact())
      << "bytes outside the output were written";
  return {in_f32(s.out, out), lse, joined(p, in_f32(s.dq, dq), in_f32(s.dk, dk), in_f32(s.dv, dv))};
}

// What rounding to the dtype may add to an error of a result.
double rounding_of(DType dtype, double result) {
  const double unit = dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0;
  return unit * std::abs(result) + (dtype == DType::f16 ? 0x1p-25 : 0);
}

// |actual - expected| <= tolerance * max(1, |expected|), what else is allowed, and what rounding to the dtype adds.
void expect_close(const Guarded<float>& actual, const std::vector<double>& expected, double tolerance, DType dtype,
                  const std::vector<double>& allowed = {}) {
  ASSERT_EQ(static_cast<size_t>(actual.size()), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const double got = actual[static_cast<int64_t>(i)],
                 sums = tolerance * std::max(1.0, std::abs(expected[i])) + (allowed.empty() ? 0 : allowed[i]);
    ASSERT_LE(std::abs(got - expected[i]), sums + rounding_of(dtype, std::abs(expected[i]) + sums))
        << "element " << i << " is " << got << ", expected " << expected[i];
  }
}

// By how much out may be off where each weight is off by half of bf16's last place: the weights times |v| times that.
std::vector<double> allowed_for_rounded_weights(const Problem& p, const std::vector<double>& qkv) {
  std::vector<double> magnitudes = qkv, out(static_cast<size_t>(p.dout.size())),
                      lse(static_cast<size_t>(2 * p.shape.batch * p.shape.heads * p.shape.tokens));
  for (double& x : magnitudes) x = std::abs(x);
  attention_reference(p.shape, qkv.data(), qkv.data() + p.k_offset(), magnitudes.data() + p.v_offset(), p.segments(),
                      kDropout, out.data(), lse.data());
  for (double& x : out) x *= 0x1p-8;
  return out;
}

// What rounding of the gradients themselves may add, and of each weight and gradient of a score in their sums: of that
// sum of magnitudes, a part.
std::vector<double> allowed_for_rounded_gradients(const Problem& p, const std::vector<double>& expected,
                                                  const std::vector<double>& magnitudes) {
  std::vector<double> allowed;
  for (size_t i = 0; i < expected.size(); ++i) {
    const int64_t column = static_cast<int64_t>(i) % p.shape.q_row_stride;
    const DType dtype = column < p.k_offset() ? p.shape.dq : column < p.v_offset() ? p.shape.dk : p.shape.dv;
    const double terms = magnitudes.empty() ? 0 : magnitudes[i] * 0x1p-8;
    allowed.push_back(terms + rounding_of(dtype, std::abs(expected[i]) * (1 + 2e-5) + 2e-5 + terms));
  }
  return allowed;
}

void expect_right(const Case& c) {
  SCOPED_TRACE(std::string(c.name) + ", q, k and v in " + std::string(name_of(c.shape.qkv)) + ", out in " +
               std::string(name_of(c.shape.out)));
  const Problem p(c);
  const AttentionShape& s = p.shape;
  const auto qkv = testing::as_double(p.qkv), dout = testing::as_double(p.dout);
  std::vector<double> out(dout.size()), lse(static_cast<size_t>(2 * s.batch * s.heads * s.tokens)),
      gradient(qkv.size());
  const double *k = qkv.data() + p.k_offset(), *v = qkv.data() + p.v_offset();
  attention_reference(s, qkv.data(), k, v, p.segments(), kDropout, out.data(), lse.data());
  Outputs o = compute(p, 1);
  const std::vector<double> rounded = testing::as_double(o.out);
  const bool rounds_weights = c.bf16 != Bf16Product::widened && s.qkv == DType::bf16;
  const bool gives_exact_out = s.out == DType::f32 && !rounds_weights;
  const auto gradients = [&](std::vector<double>& to, auto part_of) {
    attention_gradient_reference(s, qkv.data(), k, v, p.segments(), kDropout,
                                 gives_exact_out ? nullptr : rounded.data(), dout.data(), to.data(),
                                 to.data() + p.k_offset(), to.data() + p.v_offset(), part_of);
  };
  gradients(gradient, std::identity());
  for (size_t i = 0; i < lse.size(); ++i) {
    if (!std::isinf(lse[i])) continue;
    EXPECT_EQ(o.lse[static_cast<int64_t>(i)], -std::numeric_limits<float>::infinity());
    lse[i] = o.lse[static_cast<int64_t>(i)] = 0;
  }
  const auto allowed = rounds_weights ? allowed_for_rounded_weights(p, qkv) : std::vector<double>();
  expect_close(o.out, out, 4e-6, s.out, allowed);
  expect_close(o.lse, lse, 4e-6, DType::f32);
  // Sums over up to all tokens of all heads of a group.
  const bool rounds_gradients = rounds_weights && s.out == DType::bf16;
  std::vector<double> magnitudes(rounds_gradients ? gradient.size() : 0);
  if (rounds_gradients) gradients(magnitudes, [](double term) { return std::abs(term); });
  expect_close(o.gradient, gradient, 2e-5, DType::f32, allowed_for_rounded_gradients(p, gradient, magnitudes));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int64_t tokens : {1, 2, 31, 33, 127, 129, 300}) all.push_back({shape_of(2, tokens, 2, 2, 8), {}, "tokens"});
  for (int64_t dim : {1, 6, 10, 64, 80, 128, 259}) all.push_back({shape_of(1, 70, 2, 1, dim), {}, "head sizes"});
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

struct Stored {
  DType qkv, out, dq, dk, dv;
};
constexpr DType kF32 = DType::f32, kBf16 = DType::bf16, kF16 = DType::f16;
constexpr Stored kAllBf16{kBf16, kBf16, kBf16, kBf16, kBf16}, kAllF16{kF16, kF16, kF16, kF16, kF16};
constexpr Stored kStored[] = {kAllBf16,
                              kAllF16,
                              {kBf16, kF32, kF32, kF32, kF32},
                              {kF32, kF16, kF32, kF32, kF32},
                              {kBf16, kBf16, kF32, kF32, kBf16},
                              {kF32, kBf16, kBf16, kF16, kF32}};

Case stored_in(Case c, const Stored& dtypes) {
  c.shape.qkv = dtypes.qkv;
  c.shape.out = dtypes.out;
  c.shape.dq = dtypes.dq;
  c.shape.dk = dtypes.dk;
  c.shape.dv = dtypes.dv;
  return c;
}

TEST(Attention, ValuesStoredIn16BitsAreWidenedAndResultsRoundedOnce) {
  on_each_instruction_set([] {
    for (const Stored& dtypes : kStored)
      for (const Case& c : cases()) expect_right(stored_in(c, dtypes));
  });
}

Case with_products(Case c, Bf16Product bf16) {
  c.bf16 = bf16;
  return c;
}

TEST(Attention, ProductsOfBf16AgreeWithTheReference) {
  on_each_instruction_set([] {
    for (const Stored& dtypes : {kStored[0], kStored[2], kStored[4]})
      for (const Case& c : cases()) expect_right(with_products(stored_in(c, dtypes), Bf16Product::portable_pairs));
  });
}

TEST(Attention, TheCpusProductsOfBf16AreRight) {
  if (best_bf16_product() != Bf16Product::cpu_pairs) GTEST_SKIP() << "no AVX512-BF16 on this CPU";
  for (const Stored& dtypes : {kStored[0], kStored[2], kStored[4]})
    for (const Case& c : cases()) expect_right(with_products(stored_in(c, dtypes), Bf16Product::cpu_pairs));
}

TEST(Attention, ProductsOfBf16ThatTheCpuLacksAreRefused) {
  AttentionShape s = shape_of(1, 4, 2, 2, 8);
  s.qkv = DType::bf16;
  ASSERT_TRUE(choose_instruction_set(all_instruction_sets().back()).ok());  // has no such instructions on any CPU
  EXPECT_FALSE(AttentionForward::create(s, 1, Bf16Product::cpu_pairs).ok());
  EXPECT_FALSE(AttentionBackward::create(s, 1, Bf16Product::cpu_pairs).ok());
  EXPECT_TRUE(AttentionForward::create(s, 1).ok());
  ASSERT_TRUE(choose_instruction_set(all_instruction_sets().front()).ok());
}

void expect_same_bits_on_any_threads(const Case& c) {
  const Problem p(c);
  const Outputs one = compute(p, 1);
  for (int threads : {2, 3, 5}) {
    const Outputs many = compute(p, threads);
    EXPECT_TRUE(one.out.same_bits(many.out) && one.lse.same_bits(many.lse) && one.gradient.same_bits(many.gradient));
  }
}

TEST(Attention, BitsDoNotDependOnTheNumberOfThreads) {
  for (Case c : {Case{shape_of(1, 530, 4, 2, 16), {}, ""}, Case{shape_of(3, 129, 5, 5, 10), {}, ""},
                 Case{shape_of(4, 140, 12, 6, 10), {}, ""}}) {
    c.shape.dropout_p = 0.1f;
    expect_same_bits_on_any_threads(c);
    for (const Stored& dtypes : kStored) expect_same_bits_on_any_threads(stored_in(c, dtypes));
    for (const Bf16Product bf16 : {Bf16Product::portable_pairs, best_bf16_product()})
      expect_same_bits_on_any_threads(with_products(stored_in(c, kAllBf16), bf16));
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
void expect_weights_that_sum_to_one(Case c) {
  for (const float scale : {1.0f, 1e3f, 1e5f, 1e7f, 1e12f}) {
    SCOPED_TRACE(scale);
    c.shape.scale = scale;
    Problem p(c);
    for (int64_t i = 0; i < p.dout.size(); ++i) p.dout[i] = i % 4 == 0 ? 1.0f : 0.0f;
    const Outputs o = compute(p, 1);
    double total = 0;
    for (int64_t j = 0; j < 200; ++j) total += o.gradient[j * p.shape.q_row_stride + p.v_offset()];
    EXPECT_NEAR(total, 200, 1e-3 + rounding_of(c.shape.dv, 200));
  }
}

TEST(Attention, BackwardsWeightsSumToOneForScoresOfAnySize) {
  on_each_instruction_set([] {
    const Case c{shape_of(1, 200, 1, 1, 4), {}, ""};
    expect_weights_that_sum_to_one(c);
    for (const Bf16Product bf16 : {Bf16Product::widened, Bf16Product::portable_pairs, best_bf16_product()})
      expect_weights_that_sum_to_one(with_products(stored_in(c, kAllBf16), bf16));
  });
}

TEST(Attention, OutputsBeyondTheRangeBecomeInfinite) {
  on_each_instruction_set([] {
    Case c = stored_in(Case{shape_of(1, 5, 1, 1, 10), {}, ""}, {kF32, kF16, kF32, kF32, kF32});
    Problem p(c);
    for (int64_t t = 0; t < 5; ++t) p.qkv[t * p.shape.q_row_stride + p.v_offset() + 9] = -70000.0f;
    const Outputs o = compute(p, 1);
    for (int64_t t = 0; t < 5; ++t) {
      EXPECT_EQ(o.out[t * 10 + 9], -std::numeric_limits<float>::infinity());
      EXPECT_TRUE(std::isfinite(o.out[t * 10 + 8]));
    }
  });
}

void expect_not_a_number_in_its_row(const Case& one) {
  Problem p(one);
  p.qkv[20 * p.shape.q_row_stride] = std::numeric_limits<float>::quiet_NaN();
  const Outputs o = compute(p, 1);
  for (int64_t c = 0; c < 8; ++c) {
    EXPECT_TRUE(std::isnan(o.out[20 * 8 + c]));
    EXPECT_FALSE(std::isnan(o.out[19 * 8 + c]));
    EXPECT_FALSE(std::isnan(o.out[21 * 8 + c]));
  }
}

TEST(Attention, NotANumberIsNotHidden) {
  const Case c{shape_of(1, 40, 1, 1, 8), {}, ""};
  expect_not_a_number_in_its_row(c);
  for (const Stored& dtypes : kStored) expect_not_a_number_in_its_row(stored_in(c, dtypes));
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

TEST(Attention, ValuesStoredIn16BitsTakeNoTensorsInF32WhereOneThreadSeesAWholeHead) {
  const Case c = stored_in(Case{shape_of(4, 1024, 12, 12, 64), {}, ""}, kAllBf16);
  EXPECT_LE(AttentionForward::create(c.shape, 1, c.bf16).value()->scratch_bytes(), size_t{240} << 10);
  const auto backward = AttentionBackward::create(c.shape, 1, c.bf16).value();
  EXPECT_EQ(backward->workspace_bytes(), 0u);
  EXPECT_EQ(backward->stages(), 1);
  EXPECT_LE(backward->scratch_bytes(), (size_t{416} << 10) + 2 * 1024 * 64 * sizeof(float));
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
  s = shape_of(1, 4, 2, 2, 8);
  s.out = DType::f64;
  EXPECT_FALSE(AttentionForward::create(s, 1).ok());
}

}  // namespace
}  // namespace ingot::kernels
