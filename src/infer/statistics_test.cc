#include "infer/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ingot {
namespace {

// Expected values by hand: s² = (3 · 0.25² + 0.75²) / 3 = 0.25, error = sqrt(0.25 / 4).
TEST(Statistics, TheErrorOfAMeanIsThatOfIndependentValues) {
  const Mean mean = mean_of(std::vector<double>{1, 0, 1, 1});
  EXPECT_DOUBLE_EQ(mean.mean, 0.75);
  EXPECT_DOUBLE_EQ(mean.standard_error, 0.25);
  EXPECT_EQ(mean.n, 4);
}

TEST(Statistics, OneValueHasNoErrorAndNoneNoMean) {
  const Mean one = mean_of(std::vector<double>{0.5});
  EXPECT_EQ(one.mean, 0.5);
  EXPECT_TRUE(std::isnan(one.standard_error));
  EXPECT_TRUE(std::isnan(mean_of({}).mean));
  EXPECT_TRUE(std::isnan(mean_of_means({}).mean));
}

TEST(Statistics, AMeanOfMeansCountsEachOnce) {
  const Mean both = mean_of_means(std::vector<Mean>{{0.75, 0.25, 4}, {0.5, 0.1, 100}});
  EXPECT_DOUBLE_EQ(both.mean, 0.625);
  EXPECT_NEAR(both.standard_error, 0.134629, 1e-6);  // sqrt(0.0625 + 0.01) / 2
  EXPECT_EQ(both.n, 104);
  EXPECT_TRUE(std::isnan(mean_of_means(std::vector<Mean>{{0.75, std::nan(""), 1}, {0.5, 0.1, 9}}).standard_error));
}

// Differences 0, 1, 0, -1: s² = 2/3, error = sqrt(2/3 / 4).
TEST(Statistics, PairsAreComparedOneByOne) {
  const Mean none = paired_difference(std::vector<double>{1, 0, 1, 1}, std::vector<double>{1, 1, 1, 0});
  EXPECT_DOUBLE_EQ(none.mean, 0);
  EXPECT_NEAR(none.standard_error, 0.408248, 1e-6);
  // A constant difference has no error, however far the pairs lie apart.
  const Mean constant = paired_difference(std::vector<double>{1, 20, 300}, std::vector<double>{0.5, 19.5, 299.5});
  EXPECT_DOUBLE_EQ(constant.mean, -0.5);
  EXPECT_DOUBLE_EQ(constant.standard_error, 0);
}

TEST(Statistics, OfEqualValuesTheFirstIsTheGreatest) {
  EXPECT_EQ(index_of_greatest(std::vector<double>{-3, -1, -1, -2}), 1u);
}

}  // namespace
}  // namespace ingot
