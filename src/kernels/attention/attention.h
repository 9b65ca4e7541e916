// Fused causal attention over tiles: out = dropout(softmax(cap(scale * Q K^T) + mask)) V for each batch row and head,
// without a T x T matrix. Forward keeps the log-sum-exp of each row; backward recomputes the probabilities from it (Dao
// et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022). It is kept as two
// numbers whose sum it is, in units of log2: the row's largest score and the log of the sum of 2^(score - largest).
// Backward computes the scores of forward again to the last bit, so that the probabilities are right however large
// scores are.
//
// Masks are spans: key j is visible to query t iff max(segment_start[t], t - window + 1, 0) <= j <= t. Key blocks that
// no row of a query tile sees are skipped. A row that sees nothing yields zeros, and its lse is -infinity and 0.
// Grouped queries: head h reads key/value head h / (heads / kv_heads). Dropout keeps probability (b, h, i, j) iff
// uniform >= dropout_p and scales it by 1 / (1 - dropout_p), where uniform is word e % 4 of philox(key, e / 4,
// counter), e = ((b * heads + h) * tokens + i) * tokens + j. Backward draws the same.
//
// q, k and v are f32, bf16 or f16, all in one of these; so is out with its gradient, and each of the other gradients.
// What is read is widened exactly, a tile at a time; arithmetic and sums are in fp32; what is written is rounded once,
// to nearest even.
//
// Where q, k and v are bf16, the CPU's own dot products of bf16 may be used for Q K^T; where out is bf16 too, also for
// backward's product of dout and V^T and for forward's with V. All of these operands are bf16 as they are, but the last
// one's weights: each block's 2^(score - largest so far), after dropout, are then rounded to bf16 (their sum, which
// they are divided by, is not). matmul.h says what such products do.
//
// Work is cut by shape alone and summed in a fixed order: the same bits for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/dtype.h"
#include "base/result.h"

namespace ingot::kernels {

struct AttentionShape {
  int64_t batch = 1, tokens = 0, heads = 1, kv_heads = 1, head_dim = 0;
  // Elements between one token and the next; q is [batch,tokens,heads,head_dim], k and v
  // [batch,tokens,kv_heads,head_dim], out [batch,tokens,heads,head_dim]. All may be slices of wider rows. 0: dense.
  // Gradients have their operand's stride.
  int64_t q_row_stride = 0, k_row_stride = 0, v_row_stride = 0, out_row_stride = 0;
  float scale = 1.0f;                        // usually 1 / sqrt(head_dim)
  float dropout_p = 0.0f;                    // [0, 1)
  float softcap = 0.0f;                      // cap(s) = softcap * tanh(s / softcap); 0: s
  int64_t window = 0;                        // a query sees this many keys at most, itself included; 0: no limit
  bool need_lse = true;                      // forward writes lse
  DType qkv = DType::f32, out = DType::f32;  // out: of its gradient too
  DType dq = DType::f32, dk = DType::f32, dv = DType::f32;  // backward writes

  bool operator==(const AttentionShape&) const = default;
};

struct AttentionDropout {
  uint64_t key = 0;         // stream_key(seed, path)
  uint64_t counter = 0;     // of the step
  int64_t first_batch = 0;  // where this batch begins in the global one: b counts from here
};

struct AttentionInputs {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const int32_t* segment_start = nullptr;  // [batch,tokens] or null: every row starts at 0
  AttentionDropout dropout;
};

enum class Bf16Product : uint8_t;  // matmul_tiles.h

// Immutable after create; any number of threads may call run at once, each with its own scratch.
class AttentionForward {
 public:
  static Result<std::unique_ptr<AttentionForward>> create(const AttentionShape& shape, int threads);
  // The same with the choice of how bf16 is multiplied, for tests. Error also: the CPU has it not.
  static Result<std::unique_ptr<AttentionForward>> create(const AttentionShape& shape, int threads, Bf16Product bf16);
  ~AttentionForward();

  const AttentionShape& shape() const;
  int64_t tiles() const;
  size_t scratch_bytes() const;  // per thread; 64-byte aligned
  // out as above; lse is [batch,heads,tokens,2], null where the shape does not need it.
  void run(int64_t tile, const AttentionInputs& inputs, void* out, float* lse, int thread, std::byte* scratch) const;

 private:
  struct Impl;
  explicit AttentionForward(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct AttentionGradients {
  void* dq = nullptr;  // [batch,tokens,heads,head_dim] with q's row stride
  void* dk = nullptr;  // [batch,tokens,kv_heads,head_dim] with k's row stride
  void* dv = nullptr;  // the same with v's row stride
};

// Backward runs in stages: all tiles of one stage must be done before the next one starts. It must multiply bf16 as
// forward did.
class AttentionBackward {
 public:
  static Result<std::unique_ptr<AttentionBackward>> create(const AttentionShape& shape, int threads);
  static Result<std::unique_ptr<AttentionBackward>> create(const AttentionShape& shape, int threads, Bf16Product bf16);
  ~AttentionBackward();

  const AttentionShape& shape() const;
  int stages() const;
  int64_t tiles(int stage) const;
  size_t scratch_bytes() const;    // per thread; 64-byte aligned
  size_t workspace_bytes() const;  // shared by all threads and stages; 64-byte aligned; no content expected
  // out and lse are forward's; dout has out's row stride. Overwrites the gradients.
  void run(int stage, int64_t tile, const AttentionInputs& inputs, const void* out, const float* lse, const void* dout,
           const AttentionGradients& gradients, std::byte* workspace, int thread, std::byte* scratch) const;

 private:
  struct Impl;
  explicit AttentionBackward(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ingot::kernels
