#include "kernels/reduce/reduce.h"

#include "kernels/reduce/reduce_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;

TEST(Reduce, SumsAndMagnitudesOfOddLengthsAgreeWithTheReference) {
  testing::on_each_instruction_set([] {
    for (int64_t n : testing::kOddSizes) {
      const Guarded<float> x = normal_numbers(n, 1, 10.0f);
      const std::vector<double> exact = testing::as_double(x);
      EXPECT_NEAR(sum(x.data(), n), reference::sum(exact.data(), n), 1e-10);
      EXPECT_NEAR(sum_squares(x.data(), n), reference::sum_squares(exact.data(), n), 1e-9);
      EXPECT_EQ(max_abs(x.data(), n), reference::max_abs(x.data(), n));
      EXPECT_EQ(first_nonfinite(x.data(), n), -1);
    }
    EXPECT_EQ(sum(nullptr, 0), 0);
    EXPECT_EQ(sum_squares(nullptr, 0), 0);
    EXPECT_EQ(max_abs(nullptr, 0), 0);
    EXPECT_EQ(first_nonfinite(nullptr, 0), -1);
  });
}

TEST(Reduce, SquaresBeyondTheRangeOfFp32AreSummed) {
  testing::on_each_instruction_set([] {
    Guarded<float> x(37);
    std::fill_n(x.data(), 37, 3e38f);
    EXPECT_NEAR(sum_squares(x.data(), 37) / (37 * 9e76), 1.0, 1e-6);
  });
}

TEST(Reduce, TheFirstNonFiniteElementIsFoundWhereverItIs) {
  testing::on_each_instruction_set([] {
    Guarded<float> x = normal_numbers(9001, 1);
    for (float bad : {NAN, INFINITY, -INFINITY}) {
      for (int64_t at : {9000, 8192, 5000, 4095, 17, 0}) {
        const float good = x[at];
        x[at] = bad;
        EXPECT_EQ(first_nonfinite(x.data(), 9001), at);
        EXPECT_FALSE(std::isfinite(max_abs(x.data(), 9001)));
        EXPECT_EQ(std::isnan(max_abs(x.data(), 9001)), std::isnan(bad));
        x[at] = good;
      }
    }
  });
}

TEST(Reduce, ColumnAndRowSumsOfStridedMatricesAgreeWithTheReference) {
  testing::on_each_instruction_set([] {
    for (int64_t columns : {1, 7, 64, 100, 1025, 2100}) {
      for (int64_t rows : {0, 1, 3, 4, 11}) {
        const int64_t stride = columns + 5;
        const Guarded<float> x = normal_numbers((rows + 2) * stride, 2);
        const std::vector<double> exact = testing::as_double(x);
        Guarded<float> by_column(columns), by_row(rows + 2);
        column_sums(x.data(), stride, columns, 1, rows + 1, by_column.data());
        row_sums(x.data(), stride, columns, 1, rows + 1, by_row.data());
        ASSERT_TRUE(by_column.intact() && by_row.intact());
        std::vector<float> expected(static_cast<size_t>(columns));
        reference::column_sums(x.data(), stride, columns, 1, rows + 1, expected.data());
        for (int64_t r = 1; r < rows + 1; ++r) {
          ASSERT_NEAR(by_row[r], reference::sum(exact.data() + r * stride, columns), 1e-4);
        }
        for (int64_t c = 0; c < columns; ++c) ASSERT_EQ(by_column[c], expected[static_cast<size_t>(c)]);
      }
    }
  });
}

TEST(Reduce, PartialsAreAddedInTheirOrderForAnyCut) {
  testing::on_each_instruction_set([] {
    const int64_t columns = 53;
    const Guarded<float> partials = normal_numbers(3 * columns, 1);
    const Guarded<float> before = normal_numbers(columns, 2);
    Guarded<float> fresh(columns), added = before, none(columns);
    add_partials(partials.data(), 3, columns, 0, 20, false, fresh.data());
    add_partials(partials.data(), 3, columns, 20, columns, false, fresh.data());
    add_partials(partials.data(), 3, columns, 0, columns, true, added.data());
    add_partials(partials.data(), 0, columns, 0, columns, false, none.data());
    ASSERT_TRUE(fresh.intact() && added.intact());
    for (int64_t c = 0; c < columns; ++c) {
      const float expected = partials[c] + partials[columns + c] + partials[2 * columns + c];
      ASSERT_EQ(fresh[c], expected);
      ASSERT_EQ(added[c], before[c] + expected);
      ASSERT_EQ(none[c], 0.0f);
    }
  });
}

TEST(Reduce, SumOverAnyAxesFollowsStrides) {
  const Guarded<float> x = normal_numbers(2 * 3 * 4 * 5, 1);
  Guarded<float> out(3 * 5);
  // [2, 3, 4, 5] summed over axes 0 and 2.
  strided_sum(x.data(), {{3, 5}, {20, 1}, {2, 4}, {60, 5}}, 0, 7, out.data());
  strided_sum(x.data(), {{3, 5}, {20, 1}, {2, 4}, {60, 5}}, 7, 15, out.data());
  ASSERT_TRUE(out.intact());
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t d = 0; d < 5; ++d) {
      double total = 0;
      for (int64_t a = 0; a < 2; ++a) {
        for (int64_t c = 0; c < 4; ++c) total += x[a * 60 + b * 20 + c * 5 + d];
      }
      EXPECT_NEAR(out[b * 5 + d], total, 1e-6);
    }
  }
  Guarded<float> all(1);
  strided_sum(x.data(), {{}, {}, {120}, {1}}, 0, 1, all.data());
  EXPECT_NEAR(all[0], sum(x.data(), 120), 1e-5);
}

}  // namespace
}  // namespace ingot::kernels
