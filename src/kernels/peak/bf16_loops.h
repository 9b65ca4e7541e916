// Loops of bf16 multiply-adds on registers, for peak.cc. Intrinsics in their own file: Highway 1.0.3 knows neither set.
#pragma once

#include <cstdint>

namespace ingot::kernels {

// Asks the system for the tile registers on first use; they then belong to the process.
bool has_amx_bf16();

// So many rounds; returns floating-point operations done.
double run_avx512_bf16(int64_t rounds);
double run_amx_bf16(int64_t rounds);

}  // namespace ingot::kernels
