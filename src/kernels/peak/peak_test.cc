#include "kernels/peak/peak.h"

#include "kernels/instruction_set.h"
#include "kernels/peak/bf16_loops.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

// Wide bounds: they catch loops that the compiler removed and units that are wrong, on any machine and under any load.
TEST(Peak, FiguresArePlausible) {
  const ThreadPool pool(1);
  testing::on_each_instruction_set([&] {
    const double gflops = fp32_peak_gflops(pool);
    EXPECT_GT(gflops, 0.1);
    EXPECT_LT(gflops, 1000);
  });
  const double copy = copy_bandwidth(pool), read = read_bandwidth(pool);
  EXPECT_GT(copy, 0.2);
  EXPECT_LT(copy, 2000);
  EXPECT_GT(read, 0.1);
  EXPECT_LT(read, 2000);
}

TEST(Peak, Bf16IsMeasuredWhereTheCpuHasIt) {
  const Bf16Peak peak = bf16_peak(ThreadPool(2));
  EXPECT_EQ(peak.gflops > 0, has_avx512_bf16() || has_amx_bf16());
  EXPECT_EQ(peak.instructions.empty(), peak.gflops == 0);
  EXPECT_LT(peak.gflops, 20000);
}

TEST(Peak, MatrixProductsReachAPartOfThePeak) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    EXPECT_GT(matmul_gflops(ThreadPool(1), dtype), 0.1) << name_of(dtype);
}

}  // namespace
}  // namespace ingot::kernels
