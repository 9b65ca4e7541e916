#include "kernels/optimizer/adamw_8bit.h"

#include "kernels/optimizer/adamw_8bit_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;

AdamW at_step(int64_t step) {
  AdamW args{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .grad_scale = 0.5};
  args.bias_correction1 = adamw_bias_correction(args.beta1, step);
  args.bias_correction2 = adamw_bias_correction(args.beta2, step);
  return args;
}

// Zeros as a run starts with.
template <class T>
Guarded<T> zeros(int64_t n) {
  Guarded<T> result(n);
  std::fill_n(result.data(), n, T{});
  return result;
}

struct Moment {
  explicit Moment(int64_t n)
      : codes(zeros<uint8_t>(n)), scales(zeros<float>((n + kDynamicBlock - 1) / kDynamicBlock)) {}
  QuantizedMoment from(int64_t i) { return {codes.data() + i, scales.data() + i / kDynamicBlock}; }
  Guarded<uint8_t> codes;
  Guarded<float> scales;
};

// The first step's gradients: of many magnitudes, with zeros among them.
Guarded<float> gradients(int64_t n, uint64_t step) {
  Guarded<float> grad = normal_numbers(n, 10 + step);
  for (int64_t i = 0; i < n; ++i) grad[i] *= i % 17 == 3 ? 0.0f : std::pow(10.0f, -static_cast<float>(i % 8));
  return grad;
}

// The moments are compared as they are stored: in fp32 and in double the nearest value may be another one where a
// number lies halfway between two, which the fixed numbers here do not.
TEST(Adamw8bit, StepsAgreeWithTheReferenceAndDoNotDependOnTheCut) {
  testing::on_each_instruction_set([] {
    std::vector<int64_t> sizes = testing::kOddSizes;
    sizes.insert(sizes.end(), {255, 256, 511, 512, 1000});
    for (const int64_t n : sizes) {
      const Guarded<float> start = normal_numbers(n, 1);
      Guarded<float> p = start, cut_p = start;
      Moment m(n), v(n), cut_m(n), cut_v(n);
      std::vector<double> p64 = testing::as_double(p), m_scales(4), v_scales(4);
      std::vector<uint8_t> m_codes(static_cast<size_t>(n)), v_codes(m_codes);
      for (uint64_t step = 1; step <= 3; ++step) {
        const AdamW args = at_step(static_cast<int64_t>(step));
        const Guarded<float> grad = gradients(n, step);
        adamw_8bit(args, p.data(), grad.data(), m.from(0), v.from(0), n);
        const int64_t cut = n / 2 / kDynamicBlock * kDynamicBlock;
        adamw_8bit(args, cut_p.data(), grad.data(), cut_m.from(0), cut_v.from(0), cut);
        adamw_8bit(args, cut_p.data() + cut, grad.data() + cut, cut_m.from(cut), cut_v.from(cut), n - cut);
        const std::vector<double> grad64 = testing::as_double(grad);
        for (int64_t i = 0; i < n; i += kDynamicBlock) {
          const auto block = static_cast<size_t>(i / kDynamicBlock);
          reference::adamw_8bit_block(args, p64.data() + i, grad64.data() + i, m_codes.data() + i, m_scales[block],
                                      v_codes.data() + i, v_scales[block], std::min(kDynamicBlock, n - i));
        }
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(m.codes[i], m_codes[static_cast<size_t>(i)]) << "step " << step << " m " << i << " of " << n;
          ASSERT_EQ(v.codes[i], v_codes[static_cast<size_t>(i)]) << "step " << step << " v " << i << " of " << n;
        }
      }
      testing::expect_close(p, p64, 1e-6);
      for (int64_t i = 0; i < m.scales.size(); ++i) {
        EXPECT_NEAR(m.scales[i], m_scales[static_cast<size_t>(i)], 1e-6 * m.scales[i]);
        EXPECT_NEAR(v.scales[i], v_scales[static_cast<size_t>(i)], 1e-6 * v.scales[i]);
      }
      EXPECT_TRUE(p.same_bits(cut_p) && m.codes.same_bits(cut_m.codes) && v.codes.same_bits(cut_v.codes));
      EXPECT_TRUE(m.scales.same_bits(cut_m.scales) && v.scales.same_bits(cut_v.scales));
    }
  });
}

// A second moment beside a far larger one must not be lost: its step would be m / eps.
TEST(Adamw8bit, ARowThatGetsNoMoreGradientsStopsMoving) {
  testing::on_each_instruction_set([] {
    Guarded<float> p = zeros<float>(256), grad = zeros<float>(256);
    Moment m(256), v(256);
    grad[0] = 1;
    grad[1] = 1e-4f;
    AdamW args = at_step(1);
    args.weight_decay = 0;
    adamw_8bit(args, p.data(), grad.data(), m.from(0), v.from(0), 256);
    grad[1] = 0;
    for (int64_t step = 2; step < 50; ++step) {
      args.bias_correction1 = args.bias_correction2 = 1;
      adamw_8bit(args, p.data(), grad.data(), m.from(0), v.from(0), 256);
      ASSERT_LT(std::abs(p[1]), 0.2f) << "step " << step;
    }
    EXPECT_EQ(p[2], 0.0f);
  });
}

TEST(Adamw8bit, ZeroGradientOnlyDecays) {
  testing::on_each_instruction_set([] {
    Guarded<float> p(2), grad = zeros<float>(2);
    p[0] = 2, p[1] = -3;
    Moment m(2), v(2);
    adamw_8bit(at_step(1), p.data(), grad.data(), m.from(0), v.from(0), 2);
    EXPECT_FLOAT_EQ(p[0], 2.0f * 0.999f);
    EXPECT_FLOAT_EQ(p[1], -3.0f * 0.999f);
    EXPECT_EQ(m.codes[0], 127);
    EXPECT_EQ(v.codes[0], 0);
  });
}

}  // namespace
}  // namespace ingot::kernels
