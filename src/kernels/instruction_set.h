// Which instruction set the vector kernels of this process use. Every kernel that goes through Highway is compiled for
// each set in all_instruction_sets() and picks the chosen one at each call. Results of different sets differ by
// rounding (fused multiply-add, vector width), so the ranks of one run must agree on one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ingot::kernels {

// That this program has and this CPU can run, best first: on x86-64 a subset of "AVX3" (AVX-512), "AVX2", "SSE4",
// "SCALAR".
std::vector<std::string> all_instruction_sets();

// The one in use now: the best, unless choose_instruction_set said otherwise.
std::string instruction_set();

// From now on every kernel of the process uses `name`. Not to be called while kernels run. Error: unknown here.
Status choose_instruction_set(std::string_view name);

// Whether this CPU has the dot products of bf16 that belong to no set above (Highway 1.0.3 does not know them). Kernels
// use them with "AVX3" alone; ranks that compute in bf16 must agree on this too.
bool has_avx512_bf16();

}  // namespace ingot::kernels
