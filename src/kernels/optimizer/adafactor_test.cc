#include "kernels/optimizer/adafactor.h"

#include "kernels/optimizer/adafactor_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;

constexpr double kScale = 0.5, kDecay = 0.99, kStep = 0.01;

double sum_of_squares(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

// The last step in ranges of rows, as a program cuts it.
TEST(Adafactor, MatricesAgreeWithTheReference) {
  testing::on_each_instruction_set([] {
    for (const int64_t columns : testing::kOddSizes) {
      const int64_t rows = 7, n = rows * columns;
      const Guarded<float> grad = normal_numbers(n, 1), start = normal_numbers(n, 2);
      Guarded<float> row_sums(rows), column_sums(columns), row_factors(rows), column_factors(columns), p = start;
      const std::vector<double> grad64 = testing::as_double(grad);
      std::vector<double> row_sums64, column_sums64, row_factors64, column_factors64;
      adafactor_squares(grad.data(), kScale, columns, 0, rows, row_sums.data(), column_sums.data());
      reference::adafactor_squares(grad64, kScale, rows, columns, row_sums64, column_sums64);
      testing::expect_close(row_sums, row_sums64, 1e-6);
      testing::expect_close(column_sums, column_sums64, 1e-6);

      for (int64_t r = 0; r < rows; ++r) row_factors[r] = 1 / std::sqrt(row_sums[r] + 0.1f);
      for (int64_t c = 0; c < columns; ++c) column_factors[c] = 1 / std::sqrt(column_sums[c] + 0.1f);
      const std::vector<double> u = reference::adafactor_update(grad64, kScale, testing::as_double(row_factors),
                                                                testing::as_double(column_factors));
      const double squares =
          adafactor_update_squares(grad.data(), kScale, row_factors.data(), column_factors.data(), columns, 0, rows);
      EXPECT_NEAR(squares, sum_of_squares(u), 1e-6 * squares);
      std::vector<double> p64 = testing::as_double(start);
      for (size_t i = 0; i < p64.size(); ++i) p64[i] = kDecay * p64[i] - kStep * u[i];
      for (const auto& [begin, end] : {std::pair{0, 3}, std::pair{3, 3}, std::pair{3, 7}})
        adafactor_apply(kDecay, kStep, p.data(), grad.data(), kScale, row_factors.data(), column_factors.data(),
                        columns, begin, end);
      testing::expect_close(p, p64, 1e-6);
    }
  });
}

TEST(Adafactor, AnEmptyRangeOfRowsHasSumsOfZero) {
  testing::on_each_instruction_set([] {
    Guarded<float> column_sums(5);
    adafactor_squares(nullptr, 1, 5, 3, 3, nullptr, column_sums.data());
    testing::expect_close(column_sums, std::vector<double>(5, 0.0), 0);
  });
}

TEST(Adafactor, VectorsAgreeWithTheReferenceAndDoNotDependOnTheCut) {
  testing::on_each_instruction_set([] {
    for (const int64_t n : testing::kOddSizes) {
      const Guarded<float> start = normal_numbers(n, 3);
      Guarded<float> p = start, v(n), cut_p = start, cut_v(n);
      std::fill_n(v.data(), n, 0.0f), std::fill_n(cut_v.data(), n, 0.0f);
      std::vector<double> p64 = testing::as_double(p), v64(p64.size()), u(p64.size());
      for (uint64_t step = 1; step <= 3; ++step) {
        const Guarded<float> grad = normal_numbers(n, 10 + step);
        const double beta2 = 1 - std::pow(static_cast<double>(step), -0.8);
        const double squares = adafactor_vector_moment(grad.data(), kScale, beta2, 1e-30, v.data(), n);
        adafactor_vector_apply(kDecay, kStep, p.data(), grad.data(), kScale, v.data(), n);
        const int64_t half = n / 3;
        for (const auto& [begin, end] : {std::pair{int64_t{0}, half}, std::pair{half, n}}) {
          adafactor_vector_moment(grad.data() + begin, kScale, beta2, 1e-30, cut_v.data() + begin, end - begin);
          adafactor_vector_apply(kDecay, kStep, cut_p.data() + begin, grad.data() + begin, kScale, cut_v.data() + begin,
                                 end - begin);
        }
        for (size_t i = 0; i < p64.size(); ++i) {
          u[i] = reference::adafactor_vector(double{grad[static_cast<int64_t>(i)]}, kScale, beta2, 1e-30, v64[i]);
          p64[i] = kDecay * p64[i] - kStep * u[i];
        }
        EXPECT_NEAR(squares, sum_of_squares(u), 1e-5 * squares);
      }
      testing::expect_close(p, p64, 1e-6);
      testing::expect_close(v, v64, 1e-6);
      EXPECT_TRUE(p.same_bits(cut_p) && v.same_bits(cut_v));
    }
  });
}

}  // namespace
}  // namespace ingot::kernels
