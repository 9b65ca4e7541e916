// Normal numbers by Box and Muller's transform ("A Note on the Generation of Random Normal Deviates", 1958) of Philox's
// words: element i of a stream depends on its key and on i alone. base/rng.h has the same in plain double precision.
#pragma once

#include <cstdint>

namespace ingot::kernels {

// out[i - begin] = deviation * normal_at(key, i) for i in [begin, end), within 2e-6 * deviation.
void fill_normal(uint64_t key, int64_t begin, int64_t end, float deviation, float* out);

}  // namespace ingot::kernels
