// Cross-entropy of rows of logits with integer targets, and its gradient.
//
// logits fp32 [rows, vocab], rows `stride` elements apart; targets int32 [rows], kIgnoredTarget where the row does not
// count (loss 0, gradient 0). Serial over rows [row_begin, row_end), each row by itself. Stable for logits of any size.
// A target outside the vocabulary is a bug.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace ingot::kernels {

inline constexpr int32_t kIgnoredTarget = -100;

struct CrossEntropy {
  const float* logits = nullptr;
  int64_t stride = 0;
  int64_t vocab = 0;
  const int32_t* targets = nullptr;
  float* loss = nullptr;          // or null; [rows]: log_sum_exp(logits) - logits[target]
  float* grad = nullptr;          // or null; may be logits: (softmax(logits) - one_hot(target)) * scale
  DType grad_dtype = DType::f32;  // bf16 or f16: each row of grad, rounded, takes the first half of its memory
  int64_t grad_stride = 0;
  float scale = 1;  // of the gradient; usually 1 / counted tokens of the step
};
void cross_entropy(const CrossEntropy& args, int64_t row_begin, int64_t row_end);

// The same for a vocabulary cut over ranks. Each rank has logits [rows, vocab] of the ids from vocab_begin on and
// computes its log_sum_exp (softmax.h) and its target_logits (0 where the target is another rank's); over the ranks,
// the log-sum-exps are combined and the target logits added; then loss = lse - target_logit, and each rank makes its
// part of the gradient.
void target_logits(const float* logits, int64_t stride, int64_t vocab, int64_t vocab_begin, const int32_t* targets,
                   float* out, int64_t row_begin, int64_t row_end);

struct CrossEntropyShardGrad {
  const float* logits = nullptr;
  int64_t stride = 0;
  int64_t vocab = 0, vocab_begin = 0;
  const int32_t* targets = nullptr;    // ids of the whole vocabulary
  const float* log_sum_exp = nullptr;  // [rows], of the whole vocabulary
  float* grad = nullptr;               // may be logits
  int64_t grad_stride = 0;
  float scale = 1;
};
void cross_entropy_shard_grad(const CrossEntropyShardGrad& args, int64_t row_begin, int64_t row_end);

}  // namespace ingot::kernels
