#include "kernels/norm/norm.h"

#include "kernels/elementwise/elementwise_reference.h"
#include "kernels/norm/norm_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::as_double;
using testing::Guarded;
using testing::normal_numbers;

void forward(bool centered, const NormForward& args, int64_t begin, int64_t end) {
  centered ? layer_norm(args, begin, end) : rms_norm(args, begin, end);
}
void backward(bool centered, const NormBackward& args, int64_t begin, int64_t end) {
  centered ? layer_norm_grad(args, begin, end) : rms_norm_grad(args, begin, end);
}

struct Problem {
  int64_t rows, n;
  Guarded<float> x, weight, bias, dy;
  Problem(int64_t r, int64_t columns)
      : rows(r),
        n(columns),
        x(normal_numbers(r * columns, 1, 3.0f)),
        weight(normal_numbers(columns, 2)),
        bias(normal_numbers(columns, 3)),
        dy(normal_numbers(r * columns, 4)) {
    for (int64_t i = 0; i < x.size(); ++i) x[i] += 2.0f;
  }
};

struct Expected {
  std::vector<double> y, mean, rstd, dx, d_weight, d_bias;
};
Expected reference_of(const Problem& p, bool centered, bool affine, double eps) {
  const auto size = static_cast<size_t>(p.rows * p.n), n = static_cast<size_t>(p.n);
  Expected e{std::vector<double>(size), {}, {}, std::vector<double>(size), std::vector<double>(n),
             std::vector<double>(n)};
  const std::vector<double> x = as_double(p.x), weight = as_double(p.weight), bias = as_double(p.bias),
                            dy = as_double(p.dy);
  for (int64_t r = 0; r < p.rows; ++r) {
    const double* row = x.data() + r * p.n;
    const double* w = affine ? weight.data() : nullptr;
    const auto s = reference::norm(row, w, affine ? bias.data() : nullptr, p.n, eps, centered, e.y.data() + r * p.n);
    e.mean.push_back(s.mean);
    e.rstd.push_back(s.rstd);
    reference::norm_grad(row, dy.data() + r * p.n, w, p.n, eps, centered, e.dx.data() + r * p.n, e.d_weight.data(),
                         e.d_bias.data());
  }
  return e;
}

TEST(Norm, ForwardAndGradientAgreeWithTheReference) {
  testing::on_each_instruction_set([] {
    for (bool centered : {true, false}) {
      for (bool affine : {true, false}) {
        for (int64_t n : testing::kOddSizes) {
          const Problem p(3, n);
          const Expected e = reference_of(p, centered, affine, 1e-3);
          Guarded<float> y(p.rows * n), mean(p.rows), rstd(p.rows), dx(p.rows * n), d_weight(n), d_bias(n);
          const float* weight = affine ? p.weight.data() : nullptr;
          NormForward f{.x = p.x.data(), .weight = weight, .bias = affine ? p.bias.data() : nullptr, .y = y.data()};
          f.mean = mean.data(), f.rstd = rstd.data(), f.n = n, f.eps = 1e-3f;
          forward(centered, f, 0, p.rows);
          testing::expect_close(y, e.y, 1e-5);
          testing::expect_close(rstd, e.rstd, 2e-6);
          if (centered) testing::expect_close(mean, e.mean, 1e-6);
          NormBackward b{.x = p.x.data(), .dy = p.dy.data(), .weight = weight, .mean = mean.data()};
          b.rstd = rstd.data(), b.dx = dx.data(), b.n = n;
          b.d_weight = d_weight.data(), b.d_bias = d_bias.data();
          backward(centered, b, 0, p.rows);
          // A row of one or two elements has rstd up to 30, which magnifies rounding.
          testing::expect_close(dx, e.dx, 1e-4);
          testing::expect_close(d_weight, e.d_weight, 1e-5);
          testing::expect_close(d_bias, e.d_bias, 1e-6);
        }
      }
    }
  });
}

TEST(Norm, ReferenceGradientIsTheSlopeOfTheReference) {
  const int64_t n = 7;
  for (bool centered : {true, false}) {
    std::vector<double> x(7), weight(7), bias(7, 0.5), dy(7), dx(7), dw(7), db(7);
    for (size_t i = 0; i < 7; ++i) {
      x[i] = normal_at(1, i), weight[i] = normal_at(2, i), dy[i] = normal_at(3, i);
    }
    const auto loss = [&] {
      std::vector<double> y(7);
      reference::norm(x.data(), weight.data(), bias.data(), n, 1e-5, centered, y.data());
      double sum = 0;
      for (size_t i = 0; i < 7; ++i) sum += y[i] * dy[i];
      return sum;
    };
    reference::norm_grad(x.data(), dy.data(), weight.data(), n, 1e-5, centered, dx.data(), dw.data(), db.data());
    const auto slope = [&](double& at) {
      const double value = at, h = 1e-6;
      at = value + h;
      const double above = loss();
      at = value - h;
      const double below = loss();
      at = value;
      return (above - below) / (2 * h);
    };
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_NEAR(dx[i], slope(x[i]), 1e-7);
      EXPECT_NEAR(dw[i], slope(weight[i]), 1e-7);
      EXPECT_NEAR(db[i], slope(bias[i]), 1e-7);
    }
  }
}

TEST(Norm, ResidualWithDropoutWritesTheSumAndNormalisesIt) {
  testing::on_each_instruction_set([] {
    for (bool centered : {true, false}) {
      for (float p : {0.0f, 0.3f}) {
        for (int64_t n : {5, 130, 2500}) {
          const int64_t rows = 4;
          const Problem q(rows, n);
          const Guarded<float> delta = normal_numbers(rows * n, 9);
          const ResidualDropout dropout{{77, 3, n}, p};
          Guarded<float> sum(rows * n), y(rows * n), plain(rows * n);
          NormForward f{.x = q.x.data(), .weight = q.weight.data(), .y = y.data(), .n = n};
          f.delta = delta.data(), f.sum = sum.data(), f.dropout = dropout;
          forward(centered, f, 0, rows);
          ASSERT_TRUE(sum.intact() && y.intact());
          for (int64_t i = 0; i < rows * n; ++i) {
            const double kept =
                p == 0 ? delta[i] : reference::dropout<double>(delta[i], p, dropout.stream, i / n, i % n);
            ASSERT_NEAR(sum[i], q.x[i] + kept, 1e-5) << i;
          }
          forward(centered, {.x = sum.data(), .weight = q.weight.data(), .y = plain.data(), .n = n}, 0, rows);
          EXPECT_TRUE(plain.same_bits(y));
          // In place of its operands.
          Guarded<float> x = q.x, in_place = delta;
          f.x = x.data(), f.y = x.data(), f.delta = in_place.data(), f.sum = in_place.data();
          forward(centered, f, 0, rows);
          EXPECT_TRUE(x.same_bits(y) && in_place.same_bits(sum));
        }
      }
    }
  });
}

TEST(Norm, GradientAddsTheResidualAndDropsTheAddendsPart) {
  testing::on_each_instruction_set([] {
    const int64_t rows = 3, n = 1100;
    const Problem q(rows, n);
    const Guarded<float> residual = normal_numbers(rows * n, 9);
    const ResidualDropout dropout{{78, 3, n}, 0.25f};
    Guarded<float> mean(rows), rstd(rows), y(rows * n), plain(rows * n), dx = residual, d_delta(rows * n);
    layer_norm({.x = q.x.data(), .y = y.data(), .mean = mean.data(), .rstd = rstd.data(), .n = n}, 0, rows);
    NormBackward b{.x = q.x.data(), .dy = q.dy.data(), .mean = mean.data(), .rstd = rstd.data(), .dx = plain.data()};
    b.n = n;
    layer_norm_grad(b, 0, rows);
    b.dx = dx.data(), b.d_residual = dx.data(), b.d_delta = d_delta.data(), b.dropout = dropout;
    layer_norm_grad(b, 0, rows);
    ASSERT_TRUE(dx.intact() && d_delta.intact());
    for (int64_t i = 0; i < rows * n; ++i) {
      ASSERT_EQ(dx[i], plain[i] + residual[i]);
      ASSERT_NEAR(d_delta[i], reference::dropout<double>(dx[i], 0.25, dropout.stream, i / n, i % n), 1e-6);
    }
  });
}

TEST(Norm, HeadsInsideWiderRowsAreNormalisedInPlaceAndTheRestIsLeft) {
  testing::on_each_instruction_set([] {
    const int64_t tokens = 5, heads = 3, n = 20, stride = 100;  // q of 3 heads, then 40 elements of k and v
    const Guarded<float> before = normal_numbers(tokens * stride, 5);
    const Guarded<float> weight = normal_numbers(n, 6);
    Guarded<float> packed(tokens * heads * n), qkv = before;
    const RowLayout rows{heads, stride};
    rms_norm({.x = before.data(), .weight = weight.data(), .y = packed.data(), .n = n, .x_rows = rows}, 0,
             tokens * heads);
    rms_norm({.x = qkv.data(), .weight = weight.data(), .y = qkv.data(), .n = n, .x_rows = rows, .y_rows = rows}, 0,
             tokens * heads);
    ASSERT_TRUE(packed.intact() && qkv.intact());
    for (int64_t i = 0; i < qkv.size(); ++i) {
      const int64_t t = i / stride, c = i % stride;
      ASSERT_EQ(qkv[i], c < heads * n ? packed[t * heads * n + c] : before[i]);
    }
  });
}

TEST(Norm, RowsDoNotDependOnTheCutAndAnEmptyRangeHasZeroSums) {
  testing::on_each_instruction_set([] {
    const Problem q(7, 61);
    Guarded<float> whole(7 * 61), cut(7 * 61), sums(61);
    layer_norm({.x = q.x.data(), .y = whole.data(), .n = 61}, 0, 7);
    layer_norm({.x = q.x.data(), .y = cut.data(), .n = 61}, 0, 2);
    layer_norm({.x = q.x.data(), .y = cut.data(), .n = 61}, 2, 7);
    EXPECT_TRUE(whole.same_bits(cut));
    NormBackward b{.x = q.x.data(), .dy = q.dy.data(), .dx = cut.data(), .n = 61};
    b.d_weight = sums.data();
    rms_norm_grad(b, 3, 3);
    for (int64_t i = 0; i < 61; ++i) EXPECT_EQ(sums[i], 0.0f);
  });
}

TEST(Norm, LargeOffsetsDoNotSpoilTheVariance) {
  testing::on_each_instruction_set([] {
    const int64_t n = 768;
    Guarded<float> x = normal_numbers(n, 8), y(n);
    for (int64_t i = 0; i < n; ++i) x[i] += 1000.0f;
    std::vector<double> expected(static_cast<size_t>(n));
    const std::vector<double> exact = as_double(x);
    reference::norm<double>(exact.data(), nullptr, nullptr, n, 1e-5, true, expected.data());
    layer_norm({.x = x.data(), .y = y.data(), .n = n}, 0, 1);
    testing::expect_close(y, expected, 2e-4);  // the mean itself has an error of 1000 * 2^-24
  });
}

}  // namespace
}  // namespace ingot::kernels
