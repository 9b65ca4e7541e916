#include "kernels/optimizer/lion.h"

#include "kernels/optimizer/lion_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;

TEST(Lion, StepsAgreeWithTheReferenceAndDoNotDependOnTheCut) {
  const Lion args{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .grad_scale = 0.5};
  testing::on_each_instruction_set([&] {
    for (int64_t n : testing::kOddSizes) {
      const Guarded<float> start = normal_numbers(n, 1);
      Guarded<float> p = start, m(n), cut_p = start, cut_m(n);
      std::fill_n(m.data(), n, 0.0f), std::fill_n(cut_m.data(), n, 0.0f);
      std::vector<double> p64 = testing::as_double(p), m64(p64.size());
      for (uint64_t step = 1; step <= 3; ++step) {
        const Guarded<float> grad = normal_numbers(n, 10 + step);
        lion(args, p.data(), grad.data(), m.data(), n);
        const int64_t half = n / 3;
        lion(args, cut_p.data(), grad.data(), cut_m.data(), half);
        lion(args, cut_p.data() + half, grad.data() + half, cut_m.data() + half, n - half);
        for (size_t i = 0; i < p64.size(); ++i)
          reference::lion(args, p64[i], double{grad[static_cast<int64_t>(i)]}, m64[i]);
      }
      testing::expect_close(p, p64, 1e-6);
      testing::expect_close(m, m64, 1e-6);
      EXPECT_TRUE(p.same_bits(cut_p) && m.same_bits(cut_m));
    }
  });
}

// By hand: 0.9·m + 0.1·g is 0, 0.9 - 1 and 0.9 + 1; the decay takes a quarter of p.
TEST(Lion, TakesStepsOfOneSizeAndNoneWhereTheDirectionIsZero) {
  testing::on_each_instruction_set([] {
    std::vector<float> p = {2, 2, 2}, m = {0, 1, 1};
    const std::vector<float> grad = {0, -10, 10};
    lion({.lr = 0.5, .beta1 = 0.9, .beta2 = 0.5, .weight_decay = 0.5}, p.data(), grad.data(), m.data(), 3);
    EXPECT_EQ(p, (std::vector<float>{1.5f, 2.0f, 1.0f}));
    EXPECT_EQ(m, (std::vector<float>{0.0f, -4.5f, 5.5f}));
  });
}

}  // namespace
}  // namespace ingot::kernels
