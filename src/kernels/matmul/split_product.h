// A few rows times B as it lies in memory, [k, n]: all such a product costs is one reading of B, and memory gives most
// in long stretches. So parts of k, each with whole rows of B, are summed apart and then together. The parts are cut by
// the shape alone: the same bits for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/matmul.h"

namespace ingot::kernels {

// Immutable; any number of threads may call run at once. Two stages: every part, then every tile of C.
class SplitProduct {
 public:
  // Whether the shape is one for it: few rows, B plain and long enough, one product, f32.
  static bool fits(const MatmulShape& shape);
  // The shape fits; strides of 0 are dense.
  explicit SplitProduct(const MatmulShape& shape);

  size_t workspace_bytes() const;  // between the stages; 64-byte aligned
  int64_t parts() const { return parts_; }
  void run_part(int64_t part, const float* a, const float* b, std::byte* workspace) const;
  int64_t tiles() const;
  Matmul::Tile tile(int64_t index) const;
  // Writes one tile of C.
  void combine(int64_t tile, const std::byte* workspace, float* c) const;

 private:
  MatmulShape shape_;
  int64_t parts_ = 1;
};

}  // namespace ingot::kernels
