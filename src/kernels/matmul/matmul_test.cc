#include "kernels/matmul/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/instruction_set.h"
#include "kernels/matmul/matmul_reference.h"

namespace ingot::kernels {
namespace {

constexpr float kGuard = 12345.75f;

std::vector<float> random_floats(int64_t count, uint64_t key) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = uniform_from_bits(philox(key, i)[0]) - 0.5f;
  return values;
}

int64_t extent(int64_t rows, int64_t stride, int64_t width) {
  return rows == 0 ? 0 : (rows - 1) * stride + width;
}

struct Operands {
  std::vector<float> a, b, c;
};

// Operands of exactly the size that the shape reads and writes, C with guards in the gaps between its rows.
Operands operands_of(const MatmulShape& s) {
  const int64_t last = s.batch - 1;
  Operands o;
  o.a = random_floats(
      last * s.batch_stride_a + extent(s.transpose_a ? s.k : s.rows, s.lda, s.transpose_a ? s.rows : s.k), 1);
  o.b = random_floats(last * s.batch_stride_b + extent(s.transpose_b ? s.n : s.k, s.ldb, s.transpose_b ? s.k : s.n), 2);
  o.c.assign(static_cast<size_t>(last * s.batch_stride_c + extent(s.rows, s.ldc, s.n)), kGuard);
  const auto start = random_floats(static_cast<int64_t>(o.c.size()), 3);
  for (int64_t batch = 0; batch < s.batch; ++batch)
    for (int64_t i = 0; i < s.rows; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        const auto at = static_cast<size_t>(batch * s.batch_stride_c + i * s.ldc + j);
        o.c[at] = s.accumulate ? start[at] : NAN;
      }
  return o;
}

std::vector<float> product(const MatmulShape& s, const Operands& o, int threads) {
  auto created = Matmul::create(s, threads);
  EXPECT_TRUE(created.ok());
  if (!created.ok()) return {};
  const Matmul& matmul = **created;
  const ThreadPool pool(threads);
  const size_t scratch_bytes = (matmul.scratch_bytes() + 63) / 64 * 64;
  std::vector<std::byte> scratch(scratch_bytes * static_cast<size_t>(threads) + 64,
                                 std::byte{0xff});  // NaN wherever it is read
  auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  const auto scratch_of = [&](int thread) { return aligned + scratch_bytes * static_cast<size_t>(thread); };
  std::vector<float> packed(matmul.packed_b_bytes() / sizeof(float), NAN);
  const void* b = o.b.data();
  if (s.packed_b) {
    pool.run(matmul.pack_tiles(), [&](int64_t part, int thread) {
      matmul.pack_b(part, o.b.data(), reinterpret_cast<std::byte*>(packed.data()), thread, scratch_of(thread));
    });
    b = packed.data();
  }
  std::vector<float> c = o.c;
  pool.run(matmul.tiles(),
           [&](int64_t tile, int thread) { matmul.run(tile, o.a.data(), b, c.data(), thread, scratch_of(thread)); });
  return c;
}

void expect_right(const MatmulShape& s, const char* what) {
  const Operands o = operands_of(s);
  std::vector<double> a(o.a.begin(), o.a.end()), b(o.b.begin(), o.b.end()), expected(o.c.begin(), o.c.end());
  matmul_reference(s, a.data(), b.data(), expected.data());
  const std::vector<float> c = product(s, o, 1);
  ASSERT_EQ(c.size(), expected.size());
  const double tolerance = 1e-6 * (1.0 + std::sqrt(static_cast<double>(s.k)));  // sums of k products of at most 1/4
  for (size_t i = 0; i < c.size(); ++i)
    ASSERT_NEAR(c[i], expected[i], tolerance)
        << what << " rows " << s.rows << " n " << s.n << " k " << s.k << " transposed " << s.transpose_a
        << s.transpose_b << " accumulate " << s.accumulate << " packed " << s.packed_b << " at " << i;
}

MatmulShape shape_of(int64_t rows, int64_t n, int64_t k, int flags, int64_t gap) {
  MatmulShape s;
  s.rows = rows;
  s.n = n;
  s.k = k;
  s.transpose_a = flags & 1;
  s.transpose_b = flags & 2;
  s.accumulate = flags & 4;
  s.packed_b = flags & 8;
  s.lda = (s.transpose_a ? rows : k) + gap;
  s.ldb = (s.transpose_b ? k : n) + gap;
  s.ldc = n + gap;
  return s;
}

class MatmulOnEverySet : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(choose_instruction_set(GetParam()).ok()); }
  void TearDown() override { ASSERT_TRUE(choose_instruction_set(all_instruction_sets().front()).ok()); }
};
INSTANTIATE_TEST_SUITE_P(Kernels, MatmulOnEverySet, testing::ValuesIn(all_instruction_sets()));

TEST_P(MatmulOnEverySet, ProductsOfOddSizesAreRightWithEveryFlag) {
  const int64_t sizes[][3] = {{1, 1, 1},    {1, 33, 17},     {3, 5, 1},    {2, 64, 300},  {7, 31, 257},
                              {12, 32, 64}, {1, 203, 77},    {1, 70, 600}, {2, 131, 90},  {3, 71, 129},
                              {4, 67, 45},  {13, 33, 65},    {17, 1, 9},   {97, 130, 40}, {100, 65, 513},
                              {5, 17, 0},   {26, 100, 1540}, {8, 64, 1541}};
  for (const auto& [rows, n, k] : sizes)
    for (int flags = 0; flags < 16; ++flags)
      for (int64_t gap : {0, 3}) expect_right(shape_of(rows, n, k, flags, gap), GetParam().c_str());
}

TEST_P(MatmulOnEverySet, RowsAPageApartAreRight) {
  for (int flags = 0; flags < 8; ++flags) {
    MatmulShape s = shape_of(30, 70, 300, flags, 0);
    s.lda = 1024;
    expect_right(s, GetParam().c_str());
  }
}

TEST_P(MatmulOnEverySet, BatchesTakeTheirOwnOperands) {
  for (int flags = 0; flags < 8; ++flags) {
    MatmulShape s = shape_of(19, 37, 21, flags, 0);
    s.batch = 5;
    s.batch_stride_a = s.rows * s.k + 3;
    s.batch_stride_b = flags == 0 ? 0 : s.n * s.k + 1;
    s.batch_stride_c = s.rows * s.n + 2;
    expect_right(s, GetParam().c_str());
  }
}

TEST(Matmul, AVocabularyWideProductIsRight) {
  expect_right(shape_of(3, 50257, 24, 8, 0), "wide");
}

TEST(Matmul, BitsDoNotDependOnTheNumberOfThreads) {
  for (int flags = 0; flags < 16; ++flags) {
    const MatmulShape s = shape_of(200, 300, 530, flags, 1);
    const Operands o = operands_of(s);
    const std::vector<float> one = product(s, o, 1);
    for (int threads : {2, 3, 5}) {
      const std::vector<float> many = product(s, o, threads);
      ASSERT_EQ(0, std::memcmp(one.data(), many.data(), one.size() * sizeof(float))) << threads << " threads";
    }
  }
}

TEST(Matmul, TilesCoverEveryElementOnce) {
  for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{1, 50257}, {1024, 768}, {97, 33}, {8192, 64}, {17, 4000}}) {
    MatmulShape s = shape_of(rows, n, 8, 0, 0);
    s.batch = 2;
    const auto matmul = Matmul::create(s, 1).value();
    std::vector<int8_t> seen(static_cast<size_t>(2 * rows * n));
    for (int64_t t = 0; t < matmul->tiles(); ++t) {
      const Matmul::Tile tile = matmul->tile(t);
      ASSERT_LT(tile.row_begin, tile.row_end);
      ASSERT_LT(tile.column_begin, tile.column_end);
      for (int64_t i = tile.row_begin; i < tile.row_end; ++i)
        for (int64_t j = tile.column_begin; j < tile.column_end; ++j)
          ++seen[static_cast<size_t>((tile.batch * rows + i) * n + j)];
    }
    for (int8_t count : seen) ASSERT_EQ(count, 1);
  }
}

TEST(Matmul, PackedLayoutIsTheSameForAnyNumberOfRows) {
  const MatmulShape few = shape_of(1, 70, 40, 8, 0), many = shape_of(500, 70, 40, 8, 0);
  const auto b = random_floats(70 * 40, 2);
  std::vector<std::vector<float>> packed;
  for (const MatmulShape& s : {few, many}) {
    const auto matmul = Matmul::create(s, 1).value();
    auto& layout = packed.emplace_back(matmul->packed_b_bytes() / sizeof(float));
    for (int64_t part = 0; part < matmul->pack_tiles(); ++part)
      matmul->pack_b(part, b.data(), reinterpret_cast<std::byte*>(layout.data()), 0, nullptr);
  }
  EXPECT_EQ(packed[0], packed[1]);
}

TEST(Matmul, EmptyProductsHaveNoTiles) {
  EXPECT_EQ((*Matmul::create(shape_of(0, 5, 3, 0, 0), 1))->tiles(), 0);
  EXPECT_EQ((*Matmul::create(shape_of(5, 0, 3, 0, 0), 1))->tiles(), 0);
}

TEST(Matmul, RefusesWhatItCannotCompute) {
  MatmulShape s = shape_of(4, 4, 4, 0, 0);
  s.lda = 3;
  EXPECT_FALSE(Matmul::create(s, 1).ok());
  s = shape_of(4, 4, 4, 0, 0);
  s.a = DType::i32;
  EXPECT_FALSE(Matmul::create(s, 1).ok());
  s = shape_of(-1, 4, 4, 0, 0);
  EXPECT_FALSE(Matmul::create(s, 1).ok());
}

}  // namespace
}  // namespace ingot::kernels
