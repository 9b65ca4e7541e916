// The vector code of attention for a few new tokens, which is bound by reading keys and values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::kernels {

inline constexpr int64_t kDecodeBlock = 256;  // keys whose scores are kept at a time

// A query of dim floats, its output, and the keys [first, last] that it sees of k and v [.., dim], dense; none where
// first > last.
struct DecodeRow {
  const float* q = nullptr;
  float* out = nullptr;
  int64_t first = 0, last = 0;
};

struct DecodeTile {
  const DecodeRow* rows = nullptr;
  int64_t count = 0, dim = 0;
  float scale = 1.0f, softcap = 0.0f;  // softcap 0: none
  const float *k = nullptr, *v = nullptr;
};

size_t decode_scratch_bytes(int64_t rows, int64_t dim);
void run_decode(const DecodeTile& tile, float* scratch);

}  // namespace ingot::kernels
