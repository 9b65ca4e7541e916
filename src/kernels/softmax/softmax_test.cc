#include "kernels/softmax/softmax.h"

#include <cmath>

#include "base/check.h"
#include "kernels/softmax/cross_entropy.h"
#include "kernels/softmax/softcap.h"
#include "kernels/softmax/softmax_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::as_double;
using testing::expect_close;
using testing::Guarded;
using testing::normal_numbers;
using testing::on_each_instruction_set;

TEST(Softmax, ValueGradientAndLogSumExpAgreeWithTheReference) {
  on_each_instruction_set([] {
    for (int64_t n : testing::kOddSizes) {
      const int64_t rows = 4;
      const Guarded<float> x = normal_numbers(rows * n, 1, 5.0f), dy = normal_numbers(rows * n, 2);
      Guarded<float> y(rows * n), lse(rows), lse_alone(rows), dx = dy, in_place = x;
      softmax({.x = x.data(),
               .x_stride = n,
               .y = y.data(),
               .y_stride = n,
               .n = n,
               .scale = 0.3f,
               .log_sum_exp = lse.data()},
              0, rows);
      softmax({.x = in_place.data(), .x_stride = n, .y = in_place.data(), .y_stride = n, .n = n, .scale = 0.3f}, 0,
              rows);
      EXPECT_TRUE(in_place.same_bits(y));
      softmax_grad({.y = y.data(),
                    .y_stride = n,
                    .dy = dx.data(),
                    .dy_stride = n,
                    .dx = dx.data(),
                    .dx_stride = n,
                    .n = n,
                    .scale = 0.3f},
                   0, rows);
      log_sum_exp(x.data(), n, n, lse_alone.data(), 0, rows);
      const std::vector<double> x64 = as_double(x), dy64 = as_double(dy);
      std::vector<double> y64(x64.size()), dx64(x64.size()), lse64, lse_alone64;
      const double scale = 0.3f;
      for (int64_t r = 0; r < rows; ++r) {
        reference::softmax(x64.data() + r * n, n, scale, 0, n - 1, y64.data() + r * n);
        reference::softmax_grad(y64.data() + r * n, dy64.data() + r * n, n, scale, dx64.data() + r * n);
        lse64.push_back(reference::log_sum_exp(x64.data() + r * n, n, scale));
        lse_alone64.push_back(reference::log_sum_exp(x64.data() + r * n, n));
      }
      expect_close(y, y64, 1e-6);
      expect_close(dx, dx64, 1e-6);
      expect_close(lse, lse64, 1e-6);
      expect_close(lse_alone, lse_alone64, 1e-6);
    }
  });
}

TEST(Softmax, SeesOnlyTheSpanAndARowThatSeesNothingIsZero) {
  on_each_instruction_set([] {
    const int64_t rows = 6, n = 37, stride = 40;
    const std::vector<int32_t> first = {0, 5, 36, 20, -3, 30}, last = {36, 5, 36, 19, 7, 1000};
    Guarded<float> x = normal_numbers(rows * stride, 1, 5.0f), y = x, lse(rows), dx = normal_numbers(rows * stride, 2);
    x[stride + 6] = NAN;  // what cannot be seen cannot harm
    const Guarded<float> dy = dx, before = y;
    softmax({.x = x.data(),
             .x_stride = stride,
             .y = y.data(),
             .y_stride = stride,
             .n = n,
             .scale = 1,
             .visible = {first.data(), last.data()},
             .log_sum_exp = lse.data()},
            0, rows);
    softmax_grad({.y = y.data(),
                  .y_stride = stride,
                  .dy = dx.data(),
                  .dy_stride = stride,
                  .dx = dx.data(),
                  .dx_stride = stride,
                  .n = n,
                  .scale = 1,
                  .visible = {first.data(), last.data()}},
                 0, rows);
    ASSERT_TRUE(y.intact() && dx.intact());
    const std::vector<double> x64 = as_double(x), dy64 = as_double(dy);
    std::vector<double> y64(37), dx64(37);
    for (int64_t r = 0; r < rows; ++r) {
      reference::softmax(x64.data() + r * stride, n, 1.0, first[static_cast<size_t>(r)], last[static_cast<size_t>(r)],
                         y64.data());
      reference::softmax_grad(y64.data(), dy64.data() + r * stride, n, 1.0, dx64.data());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(y[r * stride + i], y64[static_cast<size_t>(i)], 1e-6) << r << " " << i;
        ASSERT_NEAR(dx[r * stride + i], dx64[static_cast<size_t>(i)], 1e-6) << r << " " << i;
      }
      for (int64_t i = n; i < stride; ++i) ASSERT_EQ(y[r * stride + i], before[r * stride + i]);
    }
    EXPECT_EQ(lse[3], -INFINITY);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(y[3 * stride + i], 0.0f);
  });
}

TEST(Softmax, HugeLogitsAreStableAndNaNSpreadsOverItsRowOnly) {
  on_each_instruction_set([] {
    const int64_t n = 19;
    Guarded<float> x(3 * n), y(3 * n), lse(3);
    for (int64_t i = 0; i < 3 * n; ++i) x[i] = i % 2 ? 3e38f : -3e38f;
    for (int64_t i = 0; i < n; ++i) x[n + i] = -INFINITY;
    x[2 * n + 4] = NAN;
    softmax({.x = x.data(), .x_stride = n, .y = y.data(), .y_stride = n, .n = n, .log_sum_exp = lse.data()}, 0, 3);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_NEAR(y[i], i % 2 ? 1.0f / 9 : 0.0f, 1e-6);
      EXPECT_EQ(y[n + i], 0.0f);
      EXPECT_TRUE(std::isnan(y[2 * n + i]));
    }
    EXPECT_EQ(lse[0], 3e38f);
    EXPECT_EQ(lse[1], -INFINITY);
    EXPECT_TRUE(std::isnan(lse[2]));
  });
}

TEST(Softcap, AgreesWithItsDefinitionThereAndBack) {
  on_each_instruction_set([] {
    for (int64_t n : testing::kOddSizes) {
      const Guarded<float> x = normal_numbers(n, 1, 40.0f), dy = normal_numbers(n, 2);
      Guarded<float> y(n), dx = dy, in_place = x;
      softcap(x.data(), 30.0f, n, y.data());
      softcap(in_place.data(), 30.0f, n, in_place.data());
      softcap_grad(y.data(), 30.0f, n, dx.data());
      ASSERT_TRUE(y.intact() && dx.intact() && in_place.intact());
      EXPECT_TRUE(y.same_bits(in_place));
      std::vector<double> y64, dx64;
      for (int64_t i = 0; i < n; ++i) {
        const double t = std::tanh(double{x[i]} / 30);
        y64.push_back(30 * t);
        dx64.push_back(dy[i] * (1 - t * t));
      }
      expect_close(y, y64, 1e-6);
      expect_close(dx, dx64, 1e-6);
    }
    Guarded<float> huge(3);
    huge[0] = 3e38f, huge[1] = -INFINITY, huge[2] = NAN;
    softcap(huge.data(), 5.0f, 3, huge.data());
    EXPECT_EQ(huge[0], 5.0f);
    EXPECT_EQ(huge[1], -5.0f);
    EXPECT_TRUE(std::isnan(huge[2]));
  });
}

TEST(CrossEntropy, LossAndGradientAgreeWithTheReferenceAlsoInPlace) {
  on_each_instruction_set([] {
    for (int64_t vocab : testing::kOddSizes) {
      const int64_t rows = 5, stride = vocab + 3;
      const Guarded<float> logits = normal_numbers(rows * stride, 1, 4.0f);
      Guarded<int32_t> targets(rows);
      for (int64_t r = 0; r < rows; ++r) targets[r] = static_cast<int32_t>((r * 7 + vocab - 1) % vocab);
      targets[2] = kIgnoredTarget;
      Guarded<float> loss(rows), loss_alone(rows), grad = logits;
      CrossEntropy args{.logits = grad.data(), .stride = stride, .vocab = vocab, .targets = targets.data()};
      args.loss = loss_alone.data();
      cross_entropy(args, 0, rows);
      args.loss = loss.data(), args.grad = grad.data(), args.grad_stride = stride, args.scale = 0.125f;
      cross_entropy(args, 0, rows);
      ASSERT_TRUE(loss.intact() && grad.intact());
      EXPECT_TRUE(loss.same_bits(loss_alone));
      const std::vector<double> logits64 = as_double(logits);
      std::vector<double> grad64 = logits64, loss64;
      for (int64_t r = 0; r < rows; ++r) {
        if (targets[r] == kIgnoredTarget) {
          std::fill_n(grad64.begin() + r * stride, vocab, 0.0);
          loss64.push_back(0);
          continue;
        }
        loss64.push_back(reference::cross_entropy(logits64.data() + r * stride, vocab, targets[r], 0.125,
                                                  grad64.data() + r * stride));
      }
      expect_close(loss, loss64, 1e-6);
      expect_close(grad, grad64, 1e-6);
    }
  });
}

TEST(CrossEntropy, HugeLogitsGiveTheirDistance) {
  on_each_instruction_set([] {
    const int64_t vocab = 21;
    Guarded<float> logits(vocab), loss(1), grad(vocab);
    for (int64_t i = 0; i < vocab; ++i) logits[i] = -1e30f;
    logits[3] = 2e30f;
    const int32_t wrong = 5, right = 3;
    CrossEntropy args{.logits = logits.data(), .stride = vocab, .vocab = vocab, .targets = &wrong, .loss = loss.data()};
    args.grad = grad.data(), args.grad_stride = vocab;
    cross_entropy(args, 0, 1);
    EXPECT_FLOAT_EQ(loss[0], 3e30f);
    EXPECT_EQ(grad[5], -1.0f);
    EXPECT_EQ(grad[3], 1.0f);
    args.targets = &right;
    cross_entropy(args, 0, 1);
    EXPECT_EQ(loss[0], 0.0f);
    for (int64_t i = 0; i < vocab; ++i) EXPECT_EQ(grad[i], 0.0f);
  });
}

TEST(CrossEntropy, ShardsOfTheVocabularyTogetherGiveTheWhole) {
  on_each_instruction_set([] {
    const int64_t rows = 4, vocab = 50, cut = 23;
    const Guarded<float> logits = normal_numbers(rows * vocab, 3, 3.0f);
    const std::vector<int32_t> targets = {0, 22, kIgnoredTarget, 49};
    Guarded<float> loss(rows), grad(rows * vocab), shard_grad(rows * vocab), lse(rows);
    CrossEntropy args{.logits = logits.data(), .stride = vocab, .vocab = vocab, .targets = targets.data()};
    args.loss = loss.data(), args.grad = grad.data(), args.grad_stride = vocab, args.scale = 0.5f;
    cross_entropy(args, 0, rows);
    Guarded<float> target0(rows), target1(rows), lse0(rows), lse1(rows);
    target_logits(logits.data(), vocab, cut, 0, targets.data(), target0.data(), 0, rows);
    target_logits(logits.data() + cut, vocab, vocab - cut, cut, targets.data(), target1.data(), 0, rows);
    log_sum_exp(logits.data(), vocab, cut, lse0.data(), 0, rows);
    log_sum_exp(logits.data() + cut, vocab, vocab - cut, lse1.data(), 0, rows);
    for (int64_t r = 0; r < rows; ++r) {
      lse[r] = static_cast<float>(std::log(std::exp(double{lse0[r]}) + std::exp(double{lse1[r]})));
      if (targets[static_cast<size_t>(r)] != kIgnoredTarget) {
        EXPECT_NEAR(lse[r] - (target0[r] + target1[r]), loss[r], 2e-6);
      }
    }
    CrossEntropyShardGrad shard{.logits = logits.data(), .stride = vocab, .vocab = cut, .vocab_begin = 0};
    shard.targets = targets.data(), shard.log_sum_exp = lse.data(), shard.scale = 0.5f;
    shard.grad = shard_grad.data(), shard.grad_stride = vocab;
    cross_entropy_shard_grad(shard, 0, rows);
    shard.logits += cut, shard.grad += cut, shard.vocab_begin = cut, shard.vocab = vocab - cut;
    cross_entropy_shard_grad(shard, 0, rows);
    expect_close(shard_grad, as_double(grad), 1e-6);
  });
}

TEST(CrossEntropy, TargetOutsideTheVocabularyIsRefused) {
  Guarded<float> logits = normal_numbers(4, 3), loss(1);
  for (int32_t target : {4, -1}) {
    const CrossEntropy args{.logits = logits.data(), .stride = 4, .vocab = 4, .targets = &target, .loss = loss.data()};
    EXPECT_THROW(cross_entropy(args, 0, 1), BugError);
  }
}

}  // namespace
}  // namespace ingot::kernels
