// Products with operands in f32, bf16 and f16. matmul_test.cc has what is the same for every dtype.
#include <cmath>
#include <tuple>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_reference.h"
#include "kernels/matmul/matmul_tiles.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::on_each_instruction_set;

constexpr DType kDTypes[] = {DType::f32, DType::bf16, DType::f16};
constexpr int kTransposeA = 1, kTransposeB = 2, kPacked = 4, kAccumulate = 8;

float as_float(DType dtype, const void* at) {
  if (dtype == DType::f32) return *static_cast<const float*>(at);
  const uint16_t bits = *static_cast<const uint16_t*>(at);
  return dtype == DType::bf16 ? float_from_bf16(bits) : float_from_f16(bits);
}
float rounded_to(DType dtype, float value) {
  if (dtype == DType::bf16) return float_from_bf16(bf16_from_float(value));
  return dtype == DType::f16 ? float_from_f16(f16_from_float(value)) : value;
}

// Elements of one dtype between guards. Whatever is not set is a NaN in each dtype.
class Elements {
 public:
  Elements(DType dtype, int64_t n) : dtype_(dtype), bytes_(n * static_cast<int64_t>(size_of(dtype))) {
    std::memset(bytes_.data(), 0xff, static_cast<size_t>(bytes_.size()));
  }
  int64_t size() const { return bytes_.size() / static_cast<int64_t>(size_of(dtype_)); }
  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }
  float operator[](int64_t i) const { return as_float(dtype_, at(i)); }
  void set(int64_t i, float value) {
    const uint16_t half = dtype_ == DType::bf16 ? bf16_from_float(value) : f16_from_float(value);
    auto* to = const_cast<std::byte*>(at(i));
    std::memcpy(to, dtype_ == DType::f32 ? static_cast<const void*>(&value) : &half, size_of(dtype_));
  }
  bool intact() const { return bytes_.intact(); }
  bool same_bits(const Elements& other) const { return bytes_.same_bits(other.bytes_); }
  std::vector<double> doubles() const {
    std::vector<double> values;
    for (int64_t i = 0; i < size(); ++i) values.push_back((*this)[i]);
    return values;
  }

 private:
  const std::byte* at(int64_t i) const { return bytes_.data() + i * static_cast<int64_t>(size_of(dtype_)); }
  DType dtype_;
  Guarded<std::byte> bytes_;
};

int64_t extent(int64_t batch, int64_t batch_stride, int64_t rows, int64_t stride, int64_t width) {
  return (batch - 1) * batch_stride + (rows == 0 ? 0 : (rows - 1) * stride + width);
}

// visit(i) for the elements of `batch` matrices in memory, without the gaps between them.
template <class Visit>
void for_elements(int64_t batch, int64_t batch_stride, int64_t rows, int64_t stride, int64_t width, Visit visit) {
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < width; ++j) visit(b * batch_stride + i * stride + j);
}

MatmulShape shape_of(int64_t rows, int64_t n, int64_t k, int flags, int64_t gap) {
  MatmulShape s;
  s.rows = rows;
  s.n = n;
  s.k = k;
  s.transpose_a = flags & kTransposeA;
  s.transpose_b = flags & kTransposeB;
  s.packed_b = flags & kPacked;
  s.accumulate = flags & kAccumulate;
  s.lda = (s.transpose_a ? rows : k) + gap;
  s.ldb = (s.transpose_b ? k : n) + gap;
  s.ldc = n + gap;
  return s;
}

MatmulShape with_dtypes(MatmulShape s, DType a, DType b, DType c) {
  s.a = a;
  s.b = s.pack_source = b;
  s.c = c;
  return s;
}

using Numbers = float (*)(uint64_t key, uint64_t index);
float some_integer(uint64_t key, uint64_t index) {  // -8 to 8: exact in every dtype
  return static_cast<float>(static_cast<int>(philox(key, index)[0] % 17) - 8);
}
float some_number(uint64_t key, uint64_t index) {
  return uniform_from_bits(philox(key, index)[0]) - 0.5f;
}

struct Operands {
  Elements a, b, c;
};

Operands operands_of(const MatmulShape& s, Numbers numbers) {
  const int64_t rows_a = s.transpose_a ? s.k : s.rows, width_a = s.transpose_a ? s.rows : s.k;
  const int64_t rows_b = s.transpose_b ? s.n : s.k, width_b = s.transpose_b ? s.k : s.n;
  const DType b_dtype = s.packed_b ? s.pack_source : s.b;
  Operands o{{s.a, extent(s.batch, s.batch_stride_a, rows_a, s.lda, width_a)},
             {b_dtype, extent(s.batch, s.batch_stride_b, rows_b, s.ldb, width_b)},
             {s.c, extent(s.batch, s.batch_stride_c, s.rows, s.ldc, s.n)}};
  const auto fill = [&](Elements& to, uint64_t key) {
    return [&to, key, numbers](int64_t i) { to.set(i, numbers(key, static_cast<uint64_t>(i))); };
  };
  for_elements(s.batch, s.batch_stride_a, rows_a, s.lda, width_a, fill(o.a, 1));
  for_elements(s.batch, s.batch_stride_b, rows_b, s.ldb, width_b, fill(o.b, 2));
  if (s.accumulate) for_elements(s.batch, s.batch_stride_c, s.rows, s.ldc, s.n, fill(o.c, 3));
  return o;
}

std::unique_ptr<Matmul> matmul_of(const MatmulShape& s, int threads, Bf16Product bf16) {
  auto created = Matmul::create(s, threads, bf16);
  INGOT_CHECK(created.ok(), "a product of the test is refused: {}", created.error().message);
  return std::move(*created);
}

// Scratch memory of each thread, NaN wherever it is read before it is written, a page that faults behind it.
std::vector<Guarded<std::byte>> scratch_of(const Matmul& matmul, int threads) {
  std::vector<Guarded<std::byte>> scratch;
  for (int i = 0; i < threads; ++i) {
    auto& one = scratch.emplace_back(static_cast<int64_t>((matmul.scratch_bytes() + 63) / 64 * 64));
    std::memset(one.data(), 0xff, static_cast<size_t>(one.size()));
  }
  return scratch;
}

Guarded<std::byte> packed_b(const Matmul& matmul, const Elements& b) {
  Guarded<std::byte> packed(static_cast<int64_t>(matmul.packed_b_bytes()));
  for (int64_t part = 0; part < matmul.pack_tiles(); ++part) matmul.pack_b(part, b.data(), packed.data(), 0, nullptr);
  EXPECT_TRUE(packed.intact());
  return packed;
}

// On 0 threads: on this one outside of any pool, where subnormal numbers are not taken as zero.
Elements product(const MatmulShape& s, const Operands& o, int threads, Bf16Product bf16) {
  const auto matmul = matmul_of(s, std::max(1, threads), bf16);
  auto scratch = scratch_of(*matmul, std::max(1, threads));
  const Guarded<std::byte> packed = packed_b(*matmul, o.b);
  Elements c = o.c;
  const auto run = [&](int64_t tile, int thread) {
    matmul->run(tile, o.a.data(), s.packed_b ? packed.data() : o.b.data(), c.data(), thread,
                scratch[static_cast<size_t>(thread)].data());
  };
  if (threads > 0) ThreadPool(threads).run(matmul->tiles(), run);
  for (int64_t tile = 0; tile < matmul->tiles() && threads == 0; ++tile) run(tile, 0);
  EXPECT_TRUE(c.intact());
  for (const auto& one : scratch) EXPECT_TRUE(one.intact());
  return c;
}

std::vector<double> reference(const MatmulShape& s, const Operands& o) {
  std::vector<double> c = o.c.doubles();
  matmul_reference(s, o.a.doubles().data(), o.b.doubles().data(), c.data());
  return c;
}

std::string described(const MatmulShape& s) {
  return fmt::format("{} x {} into {}, {} x {} x {}{}{}{}{}", name_of(s.a), name_of(s.b), name_of(s.c), s.rows, s.n,
                     s.k, s.transpose_a ? ", A transposed" : "", s.transpose_b ? ", B transposed" : "",
                     s.packed_b ? ", packed" : "", s.accumulate ? ", accumulated" : "");
}

// The sums of integers are exact in fp32 in any order, so each result has one right value: the sum rounded once. What
// lies between the rows of C stays a NaN.
void expect_exact(const MatmulShape& s, const Operands& o, const std::vector<double>& expected, Bf16Product bf16) {
  const Elements c = product(s, o, 1, bf16);
  for (int64_t i = 0; i < c.size(); ++i) {
    const float right = rounded_to(s.c, static_cast<float>(expected[static_cast<size_t>(i)]));
    ASSERT_TRUE(c[i] == right || (std::isnan(c[i]) && std::isnan(right)))
        << described(s) << " at " << i << ": " << c[i] << " instead of " << right;
  }
}

// |sum - exact| <= k 2^-24 sum of |products| (each of k additions and products rounds at most once), then one rounding.
void expect_close(MatmulShape s, Bf16Product bf16) {
  const Operands o = operands_of(s, some_number);
  const Elements c = product(s, o, 1, bf16);
  const std::vector<double> expected = reference(s, o);
  std::vector<double> a = o.a.doubles(), b = o.b.doubles(), magnitude = o.c.doubles();
  for (auto* values : {&a, &b, &magnitude})
    for (double& value : *values) value = std::abs(value);
  matmul_reference(s, a.data(), b.data(), magnitude.data());
  const double unit = s.c == DType::f32 ? 0x1p-24 : s.c == DType::bf16 ? 0x1p-8 : 0x1p-11;
  const double subnormal = s.c == DType::f16 ? 0x1p-25 : 0;
  for_elements(s.batch, s.batch_stride_c, s.rows, s.ldc, s.n, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    const double sums = (2.0 * static_cast<double>(s.k) + 2) * 0x1p-24 * magnitude[at];
    ASSERT_LE(std::abs(c[i] - expected[at]), sums + unit * (std::abs(expected[at]) + sums) + subnormal)
        << described(s) << " at " << i;
  });
}

// The ways in which products of these operands are computed on any CPU.
std::vector<Bf16Product> portable_ways(DType a, DType b) {
  if (a != DType::bf16 || b != DType::bf16) return {Bf16Product::widened};
  return {Bf16Product::widened, Bf16Product::portable_pairs};
}

constexpr int64_t kSizes[][3] = {{1, 1, 1},     {1, 33, 17},   {4, 67, 45}, {3, 5, 2},  {7, 31, 257}, {12, 32, 64},
                                 {13, 130, 65}, {98, 65, 259}, {17, 1, 9},  {5, 17, 0}, {30, 40, 3},  {26, 100, 1540}};

void expect_every_mix_exact(int64_t rows, int64_t n, int64_t k, int flags, int64_t gap) {
  std::vector<double> expected;
  for (const DType a : kDTypes)
    for (const DType b : kDTypes)
      for (const DType c : kDTypes) {
        if ((flags & kAccumulate) && c != DType::f32) continue;
        const MatmulShape s = with_dtypes(shape_of(rows, n, k, flags, gap), a, b, c);
        const Operands o = operands_of(s, some_integer);
        if (expected.empty()) expected = reference(s, o);
        for (const Bf16Product bf16 : portable_ways(a, b)) expect_exact(s, o, expected, bf16);
      }
}

TEST(MatmulDTypes, EveryMixOfDTypesSumsInFp32AndRoundsOnce) {
  on_each_instruction_set([] {
    for (const auto& [rows, n, k] : kSizes)
      for (int flags = 0; flags < 16; ++flags) expect_every_mix_exact(rows, n, k, flags, flags % 3);
  });
}

TEST(MatmulDTypes, RealNumbersAreWithinTheBoundOfFp32Sums) {
  on_each_instruction_set([] {
    for (const auto& [rows, n, k] : {std::tuple{4, 67, 45}, {13, 40, 65}, {66, 33, 259}})
      for (int flags = 0; flags < 8; ++flags)
        for (const DType a : kDTypes)
          for (const DType b : kDTypes)
            for (const Bf16Product bf16 : portable_ways(a, b))
              expect_close(with_dtypes(shape_of(rows, n, k, flags, 1), a, b, kDTypes[(flags + rows) % 3]), bf16);
  });
}

TEST(MatmulDTypes, TheCpusDotProductsOfBf16AreRight) {
  if (best_bf16_product() != Bf16Product::cpu_pairs) GTEST_SKIP() << "no AVX512-BF16 on this CPU";
  for (const auto& [rows, n, k] : kSizes)
    for (int flags = 0; flags < 16; ++flags) {
      const DType c = flags & kAccumulate ? DType::f32 : kDTypes[(flags + rows) % 3];
      const MatmulShape s = with_dtypes(shape_of(rows, n, k, flags, 1), DType::bf16, DType::bf16, c);
      const Operands o = operands_of(s, some_integer);
      expect_exact(s, o, reference(s, o), Bf16Product::cpu_pairs);
      expect_close(s, Bf16Product::cpu_pairs);
    }
}

TEST(MatmulDTypes, DotProductsThatTheCpuLacksAreRefused) {
  const MatmulShape s = with_dtypes(shape_of(4, 4, 4, 0, 0), DType::bf16, DType::bf16, DType::bf16);
  EXPECT_EQ(Matmul::create(s, 1, Bf16Product::cpu_pairs).ok(), best_bf16_product() == Bf16Product::cpu_pairs);
  ASSERT_TRUE(choose_instruction_set(all_instruction_sets().back()).ok());  // has no such instructions on any CPU
  EXPECT_FALSE(Matmul::create(s, 1, Bf16Product::cpu_pairs).ok());
  EXPECT_TRUE(Matmul::create(s, 1).ok());
  ASSERT_TRUE(choose_instruction_set(all_instruction_sets().front()).ok());
}

TEST(MatmulDTypes, BatchesAndStridesCountElementsOfEachDType) {
  on_each_instruction_set([] {
    for (int flags = 0; flags < 8; ++flags) {
      if (flags & kPacked) continue;
      for (const DType a : kDTypes)
        for (const DType b : kDTypes)
          for (const Bf16Product bf16 : portable_ways(a, b)) {
            MatmulShape s = with_dtypes(shape_of(19, 37, 21, flags, 0), a, b, kDTypes[flags % 3]);
            s.batch = 5;
            s.batch_stride_a = s.rows * s.k + 3;
            s.batch_stride_b = flags == 0 ? 0 : s.n * s.k + 1;
            s.batch_stride_c = s.rows * s.n + 2;
            const Operands o = operands_of(s, some_integer);
            expect_exact(s, o, reference(s, o), bf16);
          }
    }
  });
}

TEST(MatmulDTypes, BitsDoNotDependOnTheNumberOfThreads) {
  for (const auto& [a, b, c] : {std::tuple{DType::bf16, DType::bf16, DType::bf16},
                                {DType::f16, DType::f16, DType::f32},
                                {DType::bf16, DType::f32, DType::f16}})
    for (int flags = 0; flags < 8; ++flags)
      for (const Bf16Product bf16 : {Bf16Product::widened, Bf16Product::portable_pairs, best_bf16_product()}) {
        const MatmulShape s = with_dtypes(shape_of(400, 300, 261, flags, 1), a, b, c);
        const Operands o = operands_of(s, some_number);
        const Elements one = product(s, o, 1, bf16);
        for (int threads : {2, 3, 5}) ASSERT_TRUE(one.same_bits(product(s, o, threads, bf16))) << described(s);
      }
}

// A column of the values times a row of ones, and the other way round.
void expect_elements_kept(DType dtype, const std::vector<float>& values) {
  const auto n = static_cast<int64_t>(values.size());
  for (int flags = 0; flags < 8; ++flags)
    for (const DType c : {DType::f32, dtype}) {
      MatmulShape s = with_dtypes(shape_of(n, n, 1, flags, 0), dtype, dtype, c);
      Operands o = operands_of(s, some_integer);
      for (const bool in_a : {true, false}) {
        for (int64_t i = 0; i < n; ++i) {
          o.a.set(i, in_a ? values[static_cast<size_t>(i)] : 1);
          o.b.set(i, in_a ? 1 : values[static_cast<size_t>(i)]);
        }
        const Elements result = product(s, o, 0, Bf16Product::widened);
        for (int64_t i = 0; i < n * n; ++i) {
          const float value = values[static_cast<size_t>(in_a ? i / n : i % n)];
          ASSERT_TRUE(result[i] == value || (std::isnan(result[i]) && std::isnan(value)))
              << described(s) << ": " << result[i] << " instead of " << value;
        }
      }
    }
}

TEST(MatmulDTypes, SubnormalsInfinitiesAndNaNsPass) {
  const float inf = std::numeric_limits<float>::infinity();
  on_each_instruction_set([&] {
    expect_elements_kept(DType::bf16, {0x1p-133f, -0x1p-130f, 0x1p-126f, inf, -inf, NAN, 0, 0x1.fep127f, 1, 2, 3});
    expect_elements_kept(DType::f16, {0x1p-24f, -0x1.8p-23f, 0x1p-14f, inf, -inf, NAN, 0, 65504, 1, 2, 3});
  });
}

TEST(MatmulDTypes, ResultsBeyondTheRangeBecomeInfiniteAndInfinityTimesZeroNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  on_each_instruction_set([&] {
    for (const DType dtype : {DType::bf16, DType::f16})
      for (int flags = 0; flags < 8; ++flags) {
        MatmulShape s = with_dtypes(shape_of(3, 2, 2, flags, 0), dtype, dtype, dtype);
        Operands o = operands_of(s, some_integer);
        const float large = dtype == DType::bf16 ? 0x1p100f : 0x1p10f;
        const float a[3][2] = {{large, 1}, {-large, 1}, {inf, 1}}, b[2][2] = {{large, 0}, {1, 5}};
        for (int i = 0; i < 3; ++i)
          for (int p = 0; p < 2; ++p) o.a.set(s.transpose_a ? p * 3 + i : i * 2 + p, a[i][p]);
        for (int p = 0; p < 2; ++p)
          for (int j = 0; j < 2; ++j) o.b.set(s.transpose_b ? j * 2 + p : p * 2 + j, b[p][j]);
        const Elements c = product(s, o, 1, Bf16Product::widened);
        EXPECT_EQ(c[0], inf) << described(s);
        EXPECT_EQ(c[1], 5) << described(s);
        EXPECT_EQ(c[2], -inf) << described(s);
        EXPECT_EQ(c[3], 5) << described(s);
        EXPECT_EQ(c[4], inf) << described(s);
        EXPECT_TRUE(std::isnan(c[5])) << described(s);
      }
  });
}

TEST(MatmulDTypes, PackingFromF32RoundsToNearestEven) {
  on_each_instruction_set([] {
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const int flags : {kPacked, kPacked | kTransposeB})
        for (const auto& [n, k] : {std::pair<int64_t, int64_t>{70, 131}, {1, 1}, {96, 64}, {5, 66}}) {
          const MatmulShape halves = with_dtypes(shape_of(9, n, k, flags, 1), DType::f32, dtype, DType::f32);
          MatmulShape floats = halves;
          floats.pack_source = DType::f32;
          const Operands exact = operands_of(floats, some_number);
          Operands rounded = operands_of(halves, some_number);
          // Ties, to an even mantissa below and above.
          Operands ties = exact;
          for (int64_t i = 0; i < exact.b.size(); i += 3) {
            const float unit = dtype == DType::bf16 ? 0x1p-8f : 0x1p-11f;
            ties.b.set(i, i % 2 == 0 ? 1 + unit : 1 + 3 * unit);
            rounded.b.set(i, i % 2 == 0 ? 1 : 1 + 4 * unit);
          }
          const auto of = [&](const MatmulShape& s, const Elements& b) {
            return packed_b(*matmul_of(s, 1, Bf16Product::widened), b);
          };
          ASSERT_TRUE(of(floats, ties.b).same_bits(of(halves, rounded.b))) << described(halves);
        }
  });
}

TEST(MatmulDTypes, ATileInFp32IsWhatIsRounded) {
  for (const auto& [a, b, c] : {std::tuple{DType::f32, DType::f32, DType::f32},
                                {DType::bf16, DType::bf16, DType::bf16},
                                {DType::f16, DType::bf16, DType::f16}})
    for (const auto& [rows, n, k] : kSizes)
      for (const Bf16Product bf16 : {Bf16Product::widened, Bf16Product::portable_pairs, best_bf16_product()}) {
        const MatmulShape s = with_dtypes(shape_of(rows, n, k, kPacked, 2), a, b, c);
        const Operands o = operands_of(s, some_number);
        const Elements whole = product(s, o, 1, bf16);
        const auto matmul = matmul_of(s, 1, bf16);
        auto scratch = scratch_of(*matmul, 1);
        const Guarded<std::byte> packed = packed_b(*matmul, o.b);
        for (int64_t index = 0; index < matmul->tiles(); ++index) {
          const Matmul::Tile tile = matmul->tile(index);
          const int64_t height = tile.row_end - tile.row_begin, width = tile.column_end - tile.column_begin;
          ASSERT_LE(height * width, matmul->max_tile_elements());
          const int64_t stride = width + 3;
          Elements to(DType::f32, (height - 1) * stride + width);
          matmul->run_into(index, o.a.data(), packed.data(), reinterpret_cast<float*>(to.data()), stride, 0,
                           scratch[0].data());
          ASSERT_TRUE(to.intact());
          for (int64_t at = 0; at < to.size(); ++at) {
            const int64_t i = at / stride, j = at % stride;
            if (j >= width) {
              ASSERT_TRUE(std::isnan(to[at])) << "between the rows";
              continue;
            }
            ASSERT_EQ(rounded_to(c, to[at]), whole[(tile.row_begin + i) * s.ldc + tile.column_begin + j]);
          }
        }
      }
}

TEST(MatmulDTypes, TheLargestTileIsOneOfThem) {
  for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{1, 50257}, {1000, 768}, {97, 33}, {400, 500}}) {
    const auto matmul = Matmul::create(shape_of(rows, n, 64, 0, 0), 1).value();
    int64_t largest = 0;
    for (int64_t i = 0; i < matmul->tiles(); ++i) {
      const Matmul::Tile tile = matmul->tile(i);
      largest = std::max(largest, (tile.row_end - tile.row_begin) * (tile.column_end - tile.column_begin));
    }
    EXPECT_GE(matmul->max_tile_elements(), largest);
    EXPECT_LE(matmul->max_tile_elements(), 2 * largest);
  }
}

TEST(MatmulDTypes, WhatIsNotThereIsRefused) {
  const MatmulShape plain = shape_of(4, 4, 4, 0, 0);
  MatmulShape s = with_dtypes(plain, DType::f32, DType::f32, DType::bf16);
  EXPECT_TRUE(Matmul::create(s, 1).ok());
  s.accumulate = true;
  const auto refused = Matmul::create(s, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("f32 only, not in bf16"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(Matmul::create(with_dtypes(plain, DType::f64, DType::f32, DType::f32), 1).ok());
  s = with_dtypes(plain, DType::f32, DType::bf16, DType::f32);
  s.packed_b = true;
  s.pack_source = DType::f16;
  EXPECT_FALSE(Matmul::create(s, 1).ok());
  s.pack_source = DType::f32;
  EXPECT_TRUE(Matmul::create(s, 1).ok());
  s = plain;
  s.accumulate = true;
  EXPECT_THROW((*Matmul::create(s, 1))->run_into(0, nullptr, nullptr, nullptr, 4, 0, nullptr), BugError);
}

}  // namespace
}  // namespace ingot::kernels
