#include "kernels/rope/rope.h"

#include "kernels/rope/rope_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;

struct Tables {
  std::vector<double> frequencies;
  std::vector<float> cos, sin;
  Tables(int64_t half, int64_t positions) {
    for (int64_t i = 0; i < half; ++i) {
      frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half)));
    }
    cos.resize(static_cast<size_t>(half * positions));
    sin.resize(cos.size());
    rope_table(frequencies, 1.0, cos.data(), sin.data(), 0, positions);
  }
};

TEST(Rope, RotatesTheFirstHeadsByTheirPositionAndCopiesTheRest) {
  testing::on_each_instruction_set([] {
    for (int64_t half : {1, 3, 8, 16, 17, 32, 64}) {
      const int64_t rows = 5, heads = 3, rotated = 2, rotary = 2 * half, dim = rotary + 4, stride = heads * dim + 2;
      const Tables tables(half, 40);
      const std::vector<int32_t> positions = {0, 1, 39, 7, 7};
      const Guarded<float> x = normal_numbers(rows * stride, 1);
      Guarded<float> y = normal_numbers(rows * stride, 2);
      const Guarded<float> before = y;
      Rope args{.x = x.data(), .x_stride = stride, .y = y.data(), .y_stride = stride, .heads = heads};
      args.rotated_heads = rotated, args.head_dim = dim, args.rotary_dim = rotary, args.positions = positions.data();
      args.cos = tables.cos.data(), args.sin = tables.sin.data();
      rope(args, 0, 2);
      rope(args, 2, rows);
      ASSERT_TRUE(y.intact());
      for (int64_t at = 0; at < rows * stride; ++at) {
        const int64_t row = at / stride, column = at % stride, head = column / dim, i = column % dim;
        if (column >= heads * dim) {
          ASSERT_EQ(y[at], before[at]);
          continue;
        }
        if (head >= rotated || i >= rotary) {
          ASSERT_EQ(y[at], x[at]);
          continue;
        }
        std::vector<double> before64, after64(static_cast<size_t>(rotary));
        for (int64_t k = 0; k < rotary; ++k) before64.push_back(x[at - i + k]);
        reference::rope_head(before64.data(), tables.frequencies, positions[static_cast<size_t>(row)], false,
                             after64.data());
        const double turned = after64[static_cast<size_t>(i)];
        ASSERT_NEAR(y[at], turned, 1e-6 * 4);
      }
      Guarded<float> in_place = x;
      args.x = in_place.data(), args.y = in_place.data();
      rope(args, 0, rows);
      for (int64_t at = 0; at < rows * stride; ++at) {
        ASSERT_EQ(in_place[at], at % stride < heads * dim ? y[at] : x[at]);
      }
    }
  });
}

TEST(Rope, InverseTurnsBack) {
  testing::on_each_instruction_set([] {
    const Tables tables(12, 2000);
    const std::vector<int32_t> positions = {3, 1999};
    const Guarded<float> x = normal_numbers(2 * 48, 1);
    Guarded<float> y = x;
    Rope args{.x = y.data(), .x_stride = 48, .y = y.data(), .y_stride = 48, .heads = 2, .rotated_heads = 2};
    args.head_dim = 24, args.rotary_dim = 24, args.positions = positions.data();
    args.cos = tables.cos.data(), args.sin = tables.sin.data();
    rope(args, 0, 2);
    args.inverse = true;
    rope(args, 0, 2);
    testing::expect_close(y, testing::as_double(x), 1e-6);
  });
}

TEST(Rope, TableScalesAndFillsItsRowsOnly) {
  const std::vector<double> frequencies = {1.0, 0.01};
  Guarded<float> cos(8), sin(8);
  const Guarded<float> before = cos;
  rope_table(frequencies, 1.25, cos.data(), sin.data(), 1, 3);
  EXPECT_FLOAT_EQ(cos[2], static_cast<float>(1.25 * std::cos(1.0)));
  EXPECT_FLOAT_EQ(sin[5], static_cast<float>(1.25 * std::sin(0.02)));
  for (int64_t i : {0, 1, 6, 7}) EXPECT_EQ(std::memcmp(&cos[i], &before[i], sizeof(float)), 0);
}

}  // namespace
}  // namespace ingot::kernels
