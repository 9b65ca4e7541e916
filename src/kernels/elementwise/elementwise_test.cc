#include "kernels/elementwise/elementwise.h"

#include <bit>

#include "base/check.h"
#include "kernels/elementwise/elementwise_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;
using testing::on_each_instruction_set;
using testing::ulp_error;

const std::vector<EwOp> kAllOps = {
#define INGOT_EW_LIST(name, operands) EwOp::name,
    INGOT_ELEMENTWISE_OPS(INGOT_EW_LIST)
#undef INGOT_EW_LIST
};

void run(const EwProgram& program, const EwTile& tile) {
  std::vector<float> scratch(static_cast<size_t>(elementwise_scratch_floats(registers_of(program))));
  run_elementwise(program, tile, scratch.data());
}

// y[i] = op(a[i], b[i]) over one row.
void run_op(EwOp op, const Guarded<float>& a, const Guarded<float>& b, float imm, Guarded<float>& y) {
  const int64_t n = y.size();
  const EwInstruction instruction{op, 2, 0, 1, imm, 0};
  const EwInput inputs[] = {{a.data(), n}, {b.data(), n}};
  const EwOutput outputs[] = {{y.data(), n, 2}};
  const EwStream streams[] = {{stream_key(1, "test"), 7, n}};
  run({{&instruction, 1}, inputs, outputs, streams}, {0, 1, 0, n});
}

double expected_op(EwOp op, const Guarded<float>& a, const Guarded<float>& b, float imm, int64_t i, int64_t n) {
  if (op == EwOp::dropout) return reference::dropout<double>(a[i], imm, {stream_key(1, "test"), 7, n}, 0, i);
  return reference::apply<double>(op, a[i], b[i], imm);
}

TEST(Elementwise, EveryOpAgreesWithItsReferenceAtOddSizes) {
  on_each_instruction_set([] {
    for (EwOp op : kAllOps) {
      SCOPED_TRACE(name_of(op));
      for (int64_t n : testing::kOddSizes) {
        Guarded<float> a = normal_numbers(n, 11, 2.0f), y(n);
        const Guarded<float> b = normal_numbers(n, 12);
        if (op == EwOp::sqrt || op == EwOp::rsqrt || op == EwOp::log) {
          for (int64_t i = 0; i < n; ++i) a[i] = std::abs(a[i]);
        }
        run_op(op, a, b, 0.25f, y);
        ASSERT_TRUE(y.intact()) << n;
        for (int64_t i = 0; i < n; ++i) {
          const double expected = expected_op(op, a, b, 0.25f, i, n);
          ASSERT_LE(std::abs(y[i] - expected), 1e-6 * std::max(1.0, std::abs(expected))) << "n " << n << " x " << a[i];
        }
      }
    }
  });
}

// Every 2003rd float of all bit patterns, so that each exponent and sign, infinities and NaN are met.
Guarded<float> floats_of_all_kinds() {
  std::vector<float> values = {0.0f,   -0.0f,       INFINITY,        -INFINITY,    NAN,       1.0f,     -1.0f,
                               0.625f, 0.92773438f, 88.72284f,       88.7229f,     -87.3366f, -103.97f, -104.1f,
                               1e-45f, -1e-45f,     1.17549435e-38f, 3.4028235e38f};
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 20029) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  // And densely where functions bend.
  for (int i = -40000; i <= 40000; ++i) values.push_back(static_cast<float>(i) * 0.0003f);
  Guarded<float> result(static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

TEST(Elementwise, FunctionsAreWithinFourUlpOverTheWholeRange) {
  const Guarded<float> x = floats_of_all_kinds();
  on_each_instruction_set([&] {
    for (EwOp op : {EwOp::exp, EwOp::log, EwOp::tanh, EwOp::sigmoid, EwOp::erf, EwOp::sqrt, EwOp::rsqrt}) {
      SCOPED_TRACE(name_of(op));
      Guarded<float> y(x.size());
      run_op(op, x, x, 0, y);
      for (int64_t i = 0; i < x.size(); ++i) {
        const double expected = reference::apply<double>(op, x[i], 0, 0);
        ASSERT_LE(ulp_error(y[i], expected), 4.0) << "x " << x[i] << " got " << y[i] << " expected " << expected;
      }
    }
  });
}

TEST(Elementwise, ActivationsAreFiniteForAnyFiniteInputAndKeepNaN) {
  const Guarded<float> x = floats_of_all_kinds();
  on_each_instruction_set([&] {
    for (EwOp op : {EwOp::relu, EwOp::gelu, EwOp::gelu_tanh, EwOp::silu}) {
      SCOPED_TRACE(name_of(op));
      Guarded<float> y(x.size());
      run_op(op, x, x, 0, y);
      for (int64_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i])) {
          ASSERT_TRUE(std::isnan(y[i]));
        } else if (std::isfinite(x[i])) {
          const double expected = reference::apply<double>(op, x[i], 0, 0);
          ASSERT_LE(std::abs(y[i] - expected), 1e-6 * std::max(1.0, std::abs(expected))) << x[i];
        }
      }
    }
  });
}

TEST(Elementwise, MaxAndMinKeepNaNOfEitherOperand) {
  on_each_instruction_set([] {
    for (EwOp op : {EwOp::max, EwOp::min}) {
      Guarded<float> a(33), b(33), y(33);
      for (int64_t i = 0; i < 33; ++i) {
        a[i] = i % 3 == 0 ? NAN : 1.0f;
        b[i] = i % 5 == 0 ? NAN : 2.0f;
      }
      run_op(op, a, b, 0, y);
      for (int64_t i = 0; i < 33; ++i) EXPECT_EQ(std::isnan(y[i]), i % 3 == 0 || i % 5 == 0) << i;
    }
  });
}

// A cluster with every kind of broadcast: y = dropout(gelu(x * row + bias) / s), z = x * row.
struct Cluster {
  int64_t rows, columns;
  Guarded<float> x, bias, row, scalar;
  std::vector<EwInstruction> instructions = {{EwOp::mul, 4, 0, 2},
                                             {EwOp::add, 5, 4, 1},
                                             {EwOp::gelu, 5, 5},
                                             {EwOp::div, 5, 5, 3},
                                             {EwOp::dropout, 6, 5, 0, 0.3f, 0}};
  EwStream stream;
  std::vector<EwInput> inputs;

  Cluster(int64_t r, int64_t c)
      : rows(r),
        columns(c),
        x(normal_numbers(r * c, 1)),
        bias(normal_numbers(c, 2)),
        row(normal_numbers(r, 3)),
        scalar(1),
        stream{stream_key(3, "cluster"), 5, c} {
    scalar[0] = 1.5f;
    inputs = {{x.data(), c}, {bias.data(), 0}, {row.data(), 1, 0}, {scalar.data(), 0, 0}};
  }
  EwProgram program(std::span<const EwOutput> outputs) const { return {instructions, inputs, outputs, {&stream, 1}}; }
};

TEST(Elementwise, ClustersWithBroadcastsAgreeWithTheReferenceForAnyShape) {
  on_each_instruction_set([] {
    for (auto [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {5, 3}, {37, 17}, {3, 64}, {2, 700}, {7, 1000}, {2, 2049}, {300, 1}}) {
      const Cluster c(rows, columns);
      Guarded<float> y(rows * columns), z(rows * columns);
      const EwOutput outputs[] = {{y.data(), columns, 6}, {z.data(), columns, 4}};
      run(c.program(outputs), {0, rows, 0, columns});
      ASSERT_TRUE(y.intact() && z.intact());
      for (int64_t i = 0; i < rows * columns; ++i) {
        const double expected = reference::evaluate<double>(c.program(outputs), 0, i / columns, i % columns);
        ASSERT_NEAR(y[i], expected, 1e-6 * std::max(1.0, std::abs(expected))) << rows << "x" << columns << " at " << i;
        ASSERT_EQ(z[i], c.x[i] * c.row[i / columns]);
      }
    }
  });
}

TEST(Elementwise, AnyCutIntoTilesGivesTheSameBits) {
  on_each_instruction_set([] {
    for (int64_t columns : {23, 300, 1500}) {
      const int64_t rows = 9;
      const Cluster c(rows, columns);
      Guarded<float> whole(rows * columns), tiled(rows * columns);
      const EwOutput to_whole[] = {{whole.data(), columns, 6}}, to_tiled[] = {{tiled.data(), columns, 6}};
      run(c.program(to_whole), {0, rows, 0, columns});
      for (int64_t row = 0; row < rows; row += 4) {
        for (int64_t column = 0; column < columns; column += 7 + columns / 3) {
          run(c.program(to_tiled), {row, std::min(rows, row + 4), column, std::min(columns, column + 7 + columns / 3)});
        }
      }
      EXPECT_TRUE(whole.same_bits(tiled)) << columns;
    }
  });
}

TEST(Elementwise, DenseProgramsAreFlattenedAndStillDrawTheSameDropout) {
  on_each_instruction_set([] {
    const int64_t rows = 13, columns = 21;
    const Guarded<float> x = normal_numbers(rows * columns, 4);
    Guarded<float> y(rows * columns), tiled(rows * columns);
    const EwInstruction program[] = {{EwOp::silu, 1, 0}, {EwOp::dropout, 1, 1, 0, 0.5f, 0}};
    const EwInput inputs[] = {{x.data(), columns}};
    const EwOutput outputs[] = {{y.data(), columns, 1}}, to_tiled[] = {{tiled.data(), columns, 1}};
    const EwStream streams[] = {{99, uint64_t{1} << 40, columns}};
    run({program, inputs, outputs, streams}, {0, rows, 0, columns});
    ASSERT_TRUE(y.intact());
    for (int64_t i = 0; i < rows * columns; ++i) {
      const double expected =
          reference::evaluate<double>({program, inputs, outputs, streams}, 0, i / columns, i % columns);
      ASSERT_NEAR(y[i], expected, 1e-6) << i;
    }
    for (int64_t row = 0; row < rows; row += 3) {
      run({program, inputs, to_tiled, streams}, {row, std::min(rows, row + 3), 0, columns});
    }
    EXPECT_TRUE(y.same_bits(tiled));
  });
}

TEST(Elementwise, DropoutFollowsItsStreamBeyondThe32BitRange) {
  on_each_instruction_set([] {
    const int64_t n = 50, first_row = (int64_t{1} << 34) + 3, columns = 7;  // blocks cross 2^32
    const Guarded<float> x = normal_numbers(n * columns, 4);
    Guarded<float> y(n * columns);
    const EwInstruction program[] = {{EwOp::dropout, 1, 0, 0, 0.4f, 0}};
    const EwInput inputs[] = {{x.data(), columns, 1, first_row, 0}};
    const EwOutput outputs[] = {{y.data(), columns, 1, first_row, 0}};
    const EwStream streams[] = {{0xfedcba9876543210u, 0x123456789abcdef0u, columns}};
    run({program, inputs, outputs, streams}, {first_row, first_row + n, 0, columns});
    for (int64_t i = 0; i < n * columns; ++i) {
      const float expected = reference::dropout<float>(x[i], 0.4f, streams[0], first_row + i / columns, i % columns);
      ASSERT_NEAR(y[i], expected, 1e-6f * std::abs(expected)) << i;
    }
  });
}

TEST(Elementwise, DropoutOfProbabilityZeroKeepsAndOfOneDropsEverything) {
  on_each_instruction_set([] {
    const Guarded<float> x = normal_numbers(100, 4);
    Guarded<float> y(100);
    run_op(EwOp::dropout, x, x, 0.0f, y);
    EXPECT_TRUE(y.same_bits(x));
    run_op(EwOp::dropout, x, x, 1.0f, y);
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(y[i], 0.0f);
  });
}

TEST(Elementwise, OutputInPlaceOfAnInputThatIsReadAgainLaterIsRight) {
  on_each_instruction_set([] {
    for (int64_t columns : {5, 1300}) {
      const int64_t rows = 4, n = rows * columns;
      const Guarded<float> x = normal_numbers(n, 5);
      Guarded<float> in_place = x, sum(n);
      const EwInstruction program[] = {{EwOp::scale, 1, 0, 0, 2.0f}, {EwOp::add, 2, 1, 0}};
      const EwInput inputs[] = {{in_place.data(), columns}};
      const EwOutput outputs[] = {{in_place.data(), columns, 1}, {sum.data(), columns, 2}};
      run({program, inputs, outputs}, {0, rows, 0, columns});
      ASSERT_TRUE(in_place.intact() && sum.intact());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(in_place[i], x[i] * 2.0f);
        ASSERT_EQ(sum[i], x[i] * 2.0f + x[i]);
      }
    }
  });
}

TEST(Elementwise, InputCopiedToAnOutputBeforeItsMemoryIsOverwritten) {
  on_each_instruction_set([] {
    const int64_t n = 1700;
    const Guarded<float> x = normal_numbers(n, 5);
    Guarded<float> in_place = x, copy(n);
    const EwInstruction program[] = {{EwOp::neg, 1, 0}};
    const EwInput inputs[] = {{in_place.data(), n}};
    const EwOutput outputs[] = {{in_place.data(), n, 1}, {copy.data(), n, 0}};
    run({program, inputs, outputs}, {0, 1, 0, n});
    EXPECT_TRUE(copy.same_bits(x));
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(in_place[i], -x[i]);
  });
}

TEST(Elementwise, TileLocalBuffersAndStridedColumnsAreAddressedByTheirOrigin) {
  on_each_instruction_set([] {
    const int64_t rows = 6, columns = 40;
    const Guarded<float> x = normal_numbers(rows * columns, 5), transposed = normal_numbers(columns * rows, 6);
    Guarded<float> y(2 * 10);  // the tile of rows [3, 5), columns [20, 30) alone
    const EwInstruction program[] = {{EwOp::sub, 2, 0, 1}};
    const EwInput inputs[] = {{x.data(), columns}, {transposed.data(), 1, rows}};
    const EwOutput outputs[] = {{y.data(), 10, 2, 3, 20}};
    run({program, inputs, outputs}, {3, 5, 20, 30});
    ASSERT_TRUE(y.intact());
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t c = 0; c < 10; ++c) {
        ASSERT_EQ(y[r * 10 + c], x[(r + 3) * columns + c + 20] - transposed[(c + 20) * rows + r + 3]);
      }
    }
  });
}

// x, bias and the result in 16 bits: what is read is widened, what is written rounded once, in place or not.
TEST(Elementwise, NarrowInputsAreWidenedAndNarrowOutputsRounded) {
  on_each_instruction_set([] {
    for (DType dtype : {DType::bf16, DType::f16})
      for (auto [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {5, 3}, {37, 17}, {2, 1100}}) {
        const auto narrow = [&](float x) { return dtype == DType::bf16 ? bf16_from_float(x) : f16_from_float(x); };
        const Guarded<float> numbers = normal_numbers(rows * columns, 1), biases = normal_numbers(columns, 2);
        Guarded<uint16_t> x(rows * columns), bias(columns), y(rows * columns);
        Guarded<float> scalar(1), z(rows * columns);
        scalar[0] = 1.25f;
        for (int64_t i = 0; i < x.size(); ++i) x[i] = narrow(numbers[i]);
        for (int64_t i = 0; i < columns; ++i) bias[i] = narrow(biases[i]);
        const EwInput inputs[] = {
            {x.data(), columns, 1, 0, 0, dtype}, {bias.data(), 0, 1, 0, 0, dtype}, {scalar.data(), 0, 0}};
        const EwInstruction program[] = {{EwOp::mul, 3, 0, 2}, {EwOp::add, 4, 3, 1}, {EwOp::add, 5, 4, 0}};
        const EwOutput outputs[] = {{y.data(), columns, 4, 0, 0, dtype}, {z.data(), columns, 5}};
        run({program, inputs, outputs}, {0, rows, 0, columns});
        ASSERT_TRUE(y.intact() && z.intact());
        for (int64_t i = 0; i < x.size(); ++i) {
          const auto expected = [&](size_t output) {
            return reference::evaluate<float>({program, inputs, outputs}, output, i / columns, i % columns);
          };
          ASSERT_EQ(y[i], narrow(expected(0))) << i;
          ASSERT_EQ(z[i], expected(1)) << i;
        }
        const EwOutput in_place[] = {{x.data(), columns, 4, 0, 0, dtype}};
        run({program, inputs, in_place}, {0, rows, 0, columns});
        ASSERT_TRUE(x.same_bits(y));
      }
  });
}

TEST(Elementwise, EmptyTileTouchesNothing) {
  Guarded<float> y(4);
  const Guarded<float> before = y;
  const EwInstruction program[] = {{EwOp::constant, 0}};
  const EwOutput outputs[] = {{y.data(), 2, 0}};
  run({program, {}, outputs}, {1, 1, 0, 2});
  run({program, {}, outputs}, {0, 2, 1, 1});
  EXPECT_TRUE(y.same_bits(before));
}

TEST(Elementwise, ProgramThatWritesAnInputRegisterIsRefused) {
  Guarded<float> y(4);
  const EwInstruction program[] = {{EwOp::neg, 0, 0}};
  const EwInput inputs[] = {{y.data(), 4}};
  EXPECT_THROW(run({program, inputs, {}}, {0, 1, 0, 4}), BugError);
}

}  // namespace
}  // namespace ingot::kernels
