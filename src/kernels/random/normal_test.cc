#include "kernels/random/normal.h"

#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

TEST(FillNormal, AgreesWithThePlainForm) {
  testing::on_each_instruction_set([] {
    for (const int64_t begin : {int64_t{0}, int64_t{1}, int64_t{6}, int64_t{4095}, (int64_t{1} << 36) + 3}) {
      testing::Guarded<float> out(5000);
      fill_normal(77, begin, begin + out.size(), 0.5f, out.data());
      std::vector<double> expected;
      for (int64_t i = 0; i < out.size(); ++i)
        expected.push_back(0.5 * normal_at(77, static_cast<uint64_t>(begin + i)));
      testing::expect_close(out, expected, 1e-6);
    }
  });
}

TEST(FillNormal, GivesTheSameHoweverARangeIsCut) {
  testing::on_each_instruction_set([] {
    testing::Guarded<float> whole(3000), parts(3000);
    fill_normal(5, 10, 3010, 1.0f, whole.data());
    int64_t at = 0;
    for (const int64_t size : {0, 1, 2, 3, 5, 1021, 968, 1000}) {
      fill_normal(5, 10 + at, 10 + at + size, 1.0f, parts.data() + at);
      at += size;
    }
    ASSERT_EQ(at, 3000);
    EXPECT_TRUE(whole.same_bits(parts));
  });
}

// Moments of the standard normal distribution, and its tails: 2.6998e-3 of it lie beyond three deviations.
TEST(FillNormal, IsNormal) {
  constexpr int64_t kCount = 1 << 20;
  std::vector<float> x(kCount);
  fill_normal(stream_key(1, "w"), 0, kCount, 1.0f, x.data());
  double moments[5] = {}, beyond = 0, neighbours = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double value = x[static_cast<size_t>(i)];
    for (int power = 1; power <= 4; ++power) moments[power] += std::pow(value, power) / kCount;
    beyond += std::abs(value) > 3 ? 1.0 / kCount : 0;
    if (i > 0) neighbours += value * x[static_cast<size_t>(i - 1)] / kCount;
  }
  EXPECT_NEAR(moments[1], 0, 0.005);
  EXPECT_NEAR(moments[2], 1, 0.007);
  EXPECT_NEAR(moments[3], 0, 0.012);
  EXPECT_NEAR(moments[4], 3, 0.05);
  EXPECT_NEAR(beyond, 2.6998e-3, 2.5e-4);
  EXPECT_NEAR(neighbours, 0, 0.005);
}

}  // namespace
}  // namespace ingot::kernels
