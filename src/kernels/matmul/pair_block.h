// The register-blocked core of products of two bf16 operands whose steps of k lie in pairs (panels.h), as the CPUs' dot
// products of bf16 take them: how it is called, and the one for AVX512-BF16, which Highway 1.0.3 does not know.
#pragma once

#include <cstdint>

#include "kernels/matmul/block.h"

namespace ingot::kernels {

// C[rows, columns] (+)= A[rows, steps pairs] * B[steps pairs, columns]. A is a group of rows, rows and steps so many
// bytes apart; B is at its first column of a panel [steps, kPanelColumns]; columns are at most what the block holds.
using PairBlock = void (*)(int64_t steps, const std::byte* a, int64_t row_bytes, int64_t step_bytes, const uint32_t* b,
                           const BlockTarget& target, int64_t columns, const Meanwhile& beside);

// Groups of kAvx512PairRows rows and kPanelColumns columns; 1 <= rows <= kAvx512PairRows. Only where has_avx512_bf16().
inline constexpr int kAvx512PairRows = 12;
PairBlock avx512_pair_block(int64_t rows);

}  // namespace ingot::kernels
