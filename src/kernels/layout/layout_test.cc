#include "kernels/layout/layout.h"

#include <array>
#include <bit>

#include "base/check.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;

template <class T>
Guarded<T> counted(int64_t n) {
  Guarded<T> result(n);
  for (int64_t i = 0; i < n; ++i) result[i] = static_cast<T>(i + 1);
  return result;
}

template <class T>
void expect_transposed(int64_t rows, int64_t columns) {
  const int64_t from_stride = columns + 3, to_stride = rows + 2;
  const Guarded<T> from = counted<T>(rows * from_stride);
  Guarded<T> to(columns * to_stride);
  const Guarded<T> before = to;
  transpose(from.data(), from_stride, to.data(), to_stride, rows, columns, sizeof(T));
  ASSERT_TRUE(to.intact());
  for (int64_t at = 0; at < to.size(); ++at) {
    const int64_t c = at / to_stride, r = at % to_stride;
    ASSERT_EQ(to[at], r < rows ? from[r * from_stride + c] : before[at]) << rows << "x" << columns << " at " << at;
  }
}

TEST(Layout, TransposesOfAnyShapeTouchNothingElse) {
  testing::on_each_instruction_set([] {
    for (int64_t rows : {1, 3, 4, 8, 17, 64, 65, 130}) {
      for (int64_t columns : {1, 2, 5, 8, 16, 63, 129, 200}) {
        expect_transposed<uint32_t>(rows, columns);
        expect_transposed<uint16_t>(rows, columns);
      }
    }
  });
}

TEST(Layout, TransposesAroundTheCachesAreTheSame) {
  testing::on_each_instruction_set([] {
    for (int64_t rows : {64, 96}) {
      const int64_t columns = 70, from_stride = 71;
      const Guarded<uint32_t> from = counted<uint32_t>(rows * from_stride);
      Guarded<uint32_t> plain(columns * rows);
      transpose(from.data(), from_stride, plain.data(), rows, rows, columns, 4);
      alignas(64) std::array<uint32_t, 70 * 96 + 16> streamed{};
      transpose(from.data(), from_stride, streamed.data(), rows, rows, columns, 4, true);
      EXPECT_EQ(std::memcmp(streamed.data(), plain.data(), static_cast<size_t>(columns * rows) * 4), 0);
      EXPECT_EQ(streamed[static_cast<size_t>(columns * rows)], 0u);
      transpose(from.data(), from_stride, streamed.data() + 1, rows, rows, columns, 4, true);  // not aligned
      EXPECT_EQ(std::memcmp(streamed.data() + 1, plain.data(), static_cast<size_t>(columns * rows) * 4), 0);
    }
  });
}

template <class T>
void expect_permuted(const Shape& shape, const Shape& permutation) {
  const int64_t n = shape.elements();
  const Guarded<T> from = counted<T>(n);
  Guarded<T> to(n);
  const StridedCopy copy = permutation_copy(shape, permutation, sizeof(T));
  const int64_t rows = rows_of(copy);
  for (int64_t row = 0; row < rows; row += 7) {
    strided_copy(copy, from.data(), to.data(), row, std::min(rows, row + 7));
  }
  ASSERT_TRUE(to.intact());
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()), 0);
  for (int64_t at = 0; at < n; ++at) {  // index: of `to`, row-major
    int64_t rest = at, source = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      index[static_cast<size_t>(axis)] = rest % copy.shape[axis];
      rest /= copy.shape[axis];
    }
    for (int axis = 0; axis < shape.rank(); ++axis) {
      int to_axis = 0;
      while (permutation[to_axis] != axis) ++to_axis;
      source = source * shape[axis] + index[static_cast<size_t>(to_axis)];
    }
    ASSERT_EQ(to[at], from[source]) << "element " << at;
  }
}

TEST(Layout, PermutationsOfEveryKindAndSize) {
  testing::on_each_instruction_set([] {
    expect_permuted<uint32_t>({2, 5, 3, 16}, {0, 2, 1, 3});  // heads before positions
    expect_permuted<uint16_t>({2, 5, 3, 16}, {0, 2, 3, 1});  // and transposed
    expect_permuted<uint32_t>({19, 23}, {1, 0});
    expect_permuted<uint64_t>({4, 3, 5}, {2, 1, 0});
    expect_permuted<uint32_t>({4, 3, 5}, {2, 1, 0});
    expect_permuted<uint8_t>({2, 3, 2, 3, 2, 3}, {5, 3, 1, 0, 2, 4});
    expect_permuted<uint32_t>({7}, {0});
    expect_permuted<uint32_t>({}, {});
  });
}

TEST(Layout, SlicesConcatenationsAndBroadcastsAreStridedCopies) {
  const Guarded<float> x = normal_numbers(4 * 10, 1);
  Guarded<float> joined(4 * 9), broadcast(3 * 4);
  // Columns [2, 6) and then [5, 10) of x, side by side.
  strided_copy({{4, 4}, {10, 1}, {9, 1}, 4}, x.data() + 2, joined.data(), 0, 4);
  strided_copy({{4, 5}, {10, 1}, {9, 1}, 4}, x.data() + 5, joined.data() + 4, 0, 4);
  strided_copy({{3, 4}, {0, 10}, {4, 1}, 4}, x.data(), broadcast.data(), 0, 3);
  ASSERT_TRUE(joined.intact() && broadcast.intact());
  for (int64_t i = 0; i < 36; ++i) ASSERT_EQ(joined[i], x[i / 9 * 10 + (i % 9 < 4 ? i % 9 + 2 : i % 9 + 1)]);
  for (int64_t i = 0; i < 12; ++i) ASSERT_EQ(broadcast[i], x[i % 4 * 10]);
}

TEST(Layout, CastsRoundLikeTheScalarFunctionsForEveryKindOfFloat) {
  Guarded<float> x((int64_t{1} << 32) / 65521 + 40);
  for (int64_t i = 0; i < x.size(); ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>(i * 65521));
  // Ties, overflow and what lies around them.
  const uint32_t special[] = {0x3f808000, 0x3f818000, 0x7f7fffff, 0x7f7f8000, 0x7f7f7fff, 0x477ff000, 0x477fefff,
                              0x33000000, 0x33000001, 0x387fe000, 0x3f801000, 0x3f803000, 0x7f800001, 0xffc00000};
  for (size_t i = 0; i < std::size(special); ++i) x[static_cast<int64_t>(i)] = std::bit_cast<float>(special[i]);
  testing::on_each_instruction_set([&] {
    Guarded<uint16_t> bf16(x.size()), f16(x.size());
    Guarded<float> from_bf16(x.size()), from_f16(x.size());
    cast(x.data(), DType::f32, bf16.data(), DType::bf16, x.size());
    cast(x.data(), DType::f32, f16.data(), DType::f16, x.size());
    cast(bf16.data(), DType::bf16, from_bf16.data(), DType::f32, x.size());
    cast(f16.data(), DType::f16, from_f16.data(), DType::f32, x.size());
    ASSERT_TRUE(bf16.intact() && f16.intact() && from_bf16.intact() && from_f16.intact());
    for (int64_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(from_bf16[i]) && std::isnan(from_f16[i])) << i;
        continue;
      }
      ASSERT_EQ(bf16[i], bf16_from_float(x[i])) << x[i];
      ASSERT_EQ(f16[i], f16_from_float(x[i])) << x[i];
      ASSERT_EQ(from_bf16[i], float_from_bf16(bf16[i]));
      ASSERT_EQ(from_f16[i], float_from_f16(f16[i]));
    }
  });
}

TEST(Layout, CastsOfOddLengthsWriteOnlyTheirElements) {
  testing::on_each_instruction_set([] {
    for (int64_t n : testing::kOddSizes) {
      const Guarded<float> x = normal_numbers(n, 1);
      Guarded<uint16_t> bf16(n), f16(n);
      Guarded<double> f64(n);
      Guarded<float> back(n);
      cast(x.data(), DType::f32, bf16.data(), DType::bf16, n);
      cast(bf16.data(), DType::bf16, f16.data(), DType::f16, n);
      cast(x.data(), DType::f32, f64.data(), DType::f64, n);
      cast(f64.data(), DType::f64, back.data(), DType::f32, n);
      ASSERT_TRUE(bf16.intact() && f16.intact() && f64.intact());
      EXPECT_TRUE(back.same_bits(x));
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(bf16[i], bf16_from_float(x[i]));
        ASSERT_EQ(f16[i], f16_from_float(float_from_bf16(bf16[i])));
      }
    }
  });
}

TEST(Layout, CastsBetweenIntegersAndFloatsAreRefused) {
  float x = 0;
  EXPECT_FALSE(can_cast(DType::f32, DType::i32));
  EXPECT_THROW(cast(&x, DType::f32, &x, DType::i32, 1), BugError);
}

TEST(Layout, FillWritesItsRange) {
  Guarded<float> x(37);
  fill(x.data(), 2.5f, 37);
  ASSERT_TRUE(x.intact());
  for (int64_t i = 0; i < 37; ++i) EXPECT_EQ(x[i], 2.5f);
}

}  // namespace
}  // namespace ingot::kernels
