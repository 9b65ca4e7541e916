// Matrix products over tiles. C[rows,n] (+)= A[rows,k] * B[k,n], each operand row-major with a free row stride, A and B
// optionally transposed in memory. The product is cut into rectangles of C by shape alone; one tile is computed by one
// thread with its whole sum over k, so the bits of C depend on the shape and never on the number of threads, and a
// caller may apply an epilogue (bias, activation, residual) to a tile that was just written while it is in cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/dtype.h"
#include "base/result.h"

namespace ingot::kernels {

struct MatmulShape {
  int64_t rows = 0, n = 0, k = 0;
  // In memory A is [rows,k], transposed [k,rows]; B is [k,n], transposed [n,k]; C is [rows,n].
  bool transpose_a = false, transpose_b = false;
  // Elements between rows in memory; 0: dense (the memory's own width).
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool accumulate = false;  // C += A B instead of C = A B
  bool packed_b = false;    // run() reads the layout that pack_b() writes instead of B itself
  DType a = DType::f32, b = DType::f32, c = DType::f32;  // b: of the packed layout, where B is packed
  DType pack_source = DType::f32;                        // what pack_b() reads
  // Independent products of one shape (attention per head): elements between one product's operands and the next one's.
  int64_t batch = 1;
  int64_t batch_stride_a = 0, batch_stride_b = 0, batch_stride_c = 0;

  bool operator==(const MatmulShape&) const = default;
};

// Immutable after create; any number of threads may call run at once, each with its own `thread` and scratch.
class Matmul {
 public:
  struct Tile {
    int64_t batch = 0;
    int64_t row_begin = 0, row_end = 0;
    int64_t column_begin = 0, column_end = 0;
    bool operator==(const Tile&) const = default;
  };

  // threads: run() will be called with thread in [0, threads). Error: the shape is inconsistent, or this CPU has no
  // such product for these dtypes.
  static Result<std::unique_ptr<Matmul>> create(const MatmulShape& shape, int threads);
  ~Matmul();

  const MatmulShape& shape() const;
  // Rectangles of C, none empty, every element in exactly one; none at all where C is empty. Numbered so that
  // the tiles of the same rows follow one another.
  int64_t tiles() const;
  Tile tile(int64_t index) const;
  size_t scratch_bytes() const;  // that run() and pack_b() need, per thread; 64-byte aligned

  // The packed layout of B depends on k, n, the dtype and the CPU alone: products of any number of rows share it.
  size_t packed_b_bytes() const;
  int64_t pack_tiles() const;
  // Packs one part of B. All parts must be there before the first run().
  void pack_b(int64_t part, const void* b, std::byte* packed, int thread, std::byte* scratch) const;

  // a, b and c point at the whole operands (b at the packed layout where shape().packed_b). Writes one tile of C.
  void run(int64_t tile, const void* a, const void* b, void* c, int thread, std::byte* scratch) const;

 private:
  struct Impl;
  explicit Matmul(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ingot::kernels
