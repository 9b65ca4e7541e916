// Matrix products over tiles. C[rows,n] (+)= A[rows,k] * B[k,n], each operand row-major with a free row stride, A and B
// optionally transposed in memory. The product is cut into rectangles of C by shape alone; one tile is computed by one
// thread with its whole sum over k, so the bits of C depend on the shape and never on the number of threads, and a
// caller may apply an epilogue (bias, activation, residual) to a tile that was just written while it is in cache.
//
// Each operand is f32, bf16 or f16 in any mix. A and B are widened exactly to fp32 and summed in fp32; the result is
// rounded once, to nearest even, into C's dtype (a thread pool's threads take subnormal numbers of fp32 as zero). For
// two bf16 operands the CPU's own dot products may be used (AVX512-BF16, with the instruction set "AVX3"): per pair of
// steps of k they take subnormal operands and results as zero ("Intel 64 and IA-32 Architectures Software Developer's
// Manual", VDPBF16PS). Bits depend on the shape, the dtypes and the instruction set alone, which for two bf16 operands
// includes whether the CPU has AVX512-BF16.
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
  // Elements of the operand's own dtype between rows in memory; 0: dense (the memory's own width).
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool accumulate = false;  // C += A B instead of C = A B; for C in f32 only
  bool packed_b = false;    // run() reads the layout that pack_b() writes instead of B itself
  DType a = DType::f32, b = DType::f32, c = DType::f32;  // b: of the packed layout, where B is packed
  DType pack_source = DType::f32;                        // what pack_b() reads: b's dtype, or f32, which is rounded
  // Independent products of one shape (attention per head): elements between one product's operands and the next one's.
  int64_t batch = 1;
  int64_t batch_stride_a = 0, batch_stride_b = 0, batch_stride_c = 0;

  bool operator==(const MatmulShape&) const = default;
};

// Whether to pack B before the product, rather than leave it to the tiles: each packed element is used often enough.
bool pays_to_pack(const MatmulShape& shape);

enum class Bf16Product : uint8_t;  // matmul_tiles.h

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
  // The same with the choice of how two bf16 operands are multiplied, for tests. Error also: the CPU has it not.
  static Result<std::unique_ptr<Matmul>> create(const MatmulShape& shape, int threads, Bf16Product bf16);
  ~Matmul();

  const MatmulShape& shape() const;
  // Rectangles of C, none empty, every element in exactly one; none at all where C is empty. Numbered so that
  // the tiles of the same rows follow one another.
  int64_t tiles() const;
  Tile tile(int64_t index) const;
  int64_t max_tile_elements() const;  // rows times columns of the largest tile
  size_t scratch_bytes() const;       // that run() and pack_b() need, per thread; 64-byte aligned

  // The packed layout of B (panels.h) depends on k, n and the dtype alone: products of any number of rows share it.
  size_t packed_b_bytes() const;
  int64_t pack_tiles() const;
  // Packs one part of B. All parts must be there before the first run().
  void pack_b(int64_t part, const void* b, std::byte* packed, int thread, std::byte* scratch) const;

  // a, b and c point at the whole operands (b at the packed layout where shape().packed_b). Writes one tile of C.
  void run(int64_t tile, const void* a, const void* b, void* c, int thread, std::byte* scratch) const;
  // The same in fp32, not rounded, into memory of the caller's, for an epilogue that writes C: element (i, j) of the
  // tile to to[i * to_stride + j]. Not where the shape accumulates.
  void run_into(int64_t tile, const void* a, const void* b, float* to, int64_t to_stride, int thread,
                std::byte* scratch) const;

 private:
  struct Impl;
  explicit Matmul(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ingot::kernels
