#include "kernels/quantized/quantized.h"

#include "kernels/quantized/quantized_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;

struct Case {
  Case(int64_t outputs, int64_t inputs, int64_t group)
      : weight(testing::normal_numbers(outputs * inputs, 3)),
        values(outputs * inputs),
        scales(outputs * groups_of(inputs, group)),
        matrix{outputs, inputs, group, values.data(), scales.data()} {
    EXPECT_TRUE(quantize(weight.data(), inputs, 1, inputs, group, values.data(), scales.data(), 0, outputs));
  }
  Guarded<float> weight;
  Guarded<int8_t> values;
  Guarded<float> scales;
  QuantizedMatrix matrix;
};

TEST(Quantized, ProductsAgreeWithThePlainForm) {
  testing::on_each_instruction_set([] {
    for (const int64_t inputs : {1, 15, 16, 17, 64, 65, 100, 333})
      for (const int64_t outputs : {1, 3, 4, 9})
        for (const int64_t rows : {1, 2, 3, 5}) {
          SCOPED_TRACE(fmt::format("{} x {} x {}", rows, outputs, inputs));
          const Case c(outputs, inputs, inputs % 2 == 0 ? 32 : 64);
          const Guarded<float> x = testing::normal_numbers(rows * inputs, 4);
          Guarded<float> y(rows * outputs), cut(rows * outputs);
          const QuantizedProduct args{c.matrix, rows, x.data(), y.data()};
          quantized_product(args, 0, outputs);
          std::vector<double> expected;
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < outputs; ++j) expected.push_back(reference::quantized_product(args, i, j));
          testing::expect_close(y, expected, 1e-5);
          QuantizedProduct again = args;
          again.y = cut.data();
          for (int64_t j = 0; j < outputs; ++j) quantized_product(again, j, j + 1);
          EXPECT_TRUE(cut.same_bits(y));
        }
  });
}

TEST(Quantized, RowsAreTheWeights) {
  testing::on_each_instruction_set([] {
    for (const int64_t inputs : {1, 63, 64, 130}) {
      const Case c(7, inputs, 64);
      const std::vector<int32_t> ids{6, 0, 3, 3};
      Guarded<float> out(4 * inputs);
      quantized_rows(c.matrix, ids.data(), out.data(), 0, 1);
      quantized_rows(c.matrix, ids.data(), out.data(), 1, 4);
      std::vector<double> expected;
      for (const int32_t id : ids)
        for (int64_t p = 0; p < inputs; ++p) expected.push_back(reference::weight_at(c.matrix, id, p));
      testing::expect_close(out, expected, 1e-7);
    }
  });
}

TEST(Quantize, RoundsToHalfAStepOfEachGroup) {
  const int64_t outputs = 5, inputs = 150, group = 64;
  Case c(outputs, inputs, group);
  for (int64_t j = 0; j < outputs; ++j)
    for (int64_t p = 0; p < inputs; ++p) {
      const float scale = c.scales[j * 3 + p / group];
      EXPECT_LE(std::abs(reference::weight_at(c.matrix, j, p) - c.weight[j * inputs + p]), 0.5001 * scale);
    }
  // The same matrix read as its transpose in memory.
  Guarded<float> transposed(outputs * inputs), scales(outputs * 3);
  Guarded<int8_t> values(outputs * inputs);
  for (int64_t j = 0; j < outputs; ++j)
    for (int64_t p = 0; p < inputs; ++p) transposed[p * outputs + j] = c.weight[j * inputs + p];
  ASSERT_TRUE(quantize(transposed.data(), 1, outputs, inputs, group, values.data(), scales.data(), 0, outputs));
  EXPECT_TRUE(values.same_bits(c.values) && scales.same_bits(c.scales));
}

TEST(Quantize, KeepsZerosTinyAndHugeWeightsAndSaysWhatIsNotFinite) {
  std::vector<float> weight(64, 0.0f);
  std::vector<int8_t> values(64, 9);
  float scale = 9;
  const auto done = [&] { return quantize(weight.data(), 64, 1, 64, 64, values.data(), &scale, 0, 1); };
  ASSERT_TRUE(done());
  EXPECT_EQ(scale, 0.0f);
  EXPECT_EQ(values, std::vector<int8_t>(64, 0));
  for (const float size : {1e-35f, 1.0f, 3e38f}) {
    weight[5] = -size, weight[6] = size / 2;
    ASSERT_TRUE(done());
    EXPECT_EQ(values[5], -127);
    EXPECT_NEAR(values[6], 63.5, 0.5);
    EXPECT_NEAR(scale * -127.0f, -size, size * 1e-6f);
  }
  weight[5] = 1e-37f, weight[6] = 0;  // the scale would be no normal number
  ASSERT_TRUE(done());
  EXPECT_EQ(scale, 0.0f);
  EXPECT_EQ(values, std::vector<int8_t>(64, 0));
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    weight[7] = bad;
    EXPECT_FALSE(done());
  }
}

}  // namespace
}  // namespace ingot::kernels
