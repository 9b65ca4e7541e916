#include "kernels/optimizer/adamw.h"

#include "kernels/optimizer/adamw_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;

AdamW at_step(int64_t step) {
  AdamW args{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
  args.bias_correction1 = adamw_bias_correction(args.beta1, step);
  args.bias_correction2 = adamw_bias_correction(args.beta2, step);
  return args;
}

TEST(AdamW, StepsAgreeWithTheReferenceAndDoNotDependOnTheCut) {
  testing::on_each_instruction_set([] {
    for (int64_t n : testing::kOddSizes) {
      const Guarded<float> start = normal_numbers(n, 1);
      Guarded<float> p = start, m(n), v(n), cut_p = start, cut_m(n), cut_v(n);
      std::fill_n(m.data(), n, 0.0f), std::fill_n(v.data(), n, 0.0f);
      std::fill_n(cut_m.data(), n, 0.0f), std::fill_n(cut_v.data(), n, 0.0f);
      std::vector<double> p64 = testing::as_double(p), m64(p64.size()), v64(p64.size());
      for (int64_t step = 1; step <= 3; ++step) {
        AdamW args = at_step(step);
        args.grad_scale = 0.5;
        const Guarded<float> grad = normal_numbers(n, 10 + static_cast<uint64_t>(step));
        adamw(args, p.data(), grad.data(), m.data(), v.data(), n);
        const int64_t half = n / 3;
        adamw(args, cut_p.data(), grad.data(), cut_m.data(), cut_v.data(), half);
        adamw(args, cut_p.data() + half, grad.data() + half, cut_m.data() + half, cut_v.data() + half, n - half);
        for (size_t i = 0; i < p64.size(); ++i) {
          reference::adamw(args, p64[i], double{grad[static_cast<int64_t>(i)]}, m64[i], v64[i]);
        }
      }
      testing::expect_close(p, p64, 1e-6);
      testing::expect_close(m, m64, 1e-6);
      testing::expect_close(v, v64, 1e-6);
      EXPECT_TRUE(p.same_bits(cut_p) && m.same_bits(cut_m) && v.same_bits(cut_v));
    }
  });
}

TEST(AdamW, ThreeStepsGiveWhatTorchGives) {
  // torch.optim.AdamW([p], lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1), PyTorch 1.13
  const float expected[3][3] = {{0.489500016f, -1.23874998f, 1.98800004f},
                                {0.479430646f, -1.22751129f, 1.97626126f},
                                {0.469506115f, -1.2162838f, 1.96521783f}};
  testing::on_each_instruction_set([&] {
    std::vector<float> p = {0.5f, -1.25f, 2.0f}, m(3, 0.0f), v(3, 0.0f);
    for (int step = 0; step < 3; ++step) {
      const std::vector<float> grad = {0.1f * static_cast<float>(step + 1), -0.02f, 3.0f - static_cast<float>(step)};
      adamw(at_step(step + 1), p.data(), grad.data(), m.data(), v.data(), 3);
      for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(p[i], expected[step][i], 3e-7) << "step " << step << " element " << i;
    }
  });
}

TEST(AdamW, ZeroGradientOnlyDecays) {
  testing::on_each_instruction_set([] {
    std::vector<float> p = {2.0f, -3.0f}, m(2, 0.0f), v(2, 0.0f);
    const std::vector<float> grad(2, 0.0f);
    adamw(at_step(1), p.data(), grad.data(), m.data(), v.data(), 2);
    EXPECT_FLOAT_EQ(p[0], 2.0f * 0.999f);
    EXPECT_FLOAT_EQ(p[1], -3.0f * 0.999f);
  });
}

}  // namespace
}  // namespace ingot::kernels
