#include "kernels/softmax/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax/cross_entropy.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/elementwise/math-inl.h"
#include "kernels/layout/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// The sum of exp(x - max) over a row; the terms are kept in `to` where it is not null.
float sum_of_exponentials(const float* x, float max, int64_t n, float* to) {
  const FloatVec shift = set(max);
  if (to == nullptr) {
    return sum_vectors(n,
                       [&](int64_t i, auto access) HWY_ATTR { return vector_exp(hn::Sub(access.load(x + i), shift)); });
  }
  return sum_vectors(n, [&](int64_t i, auto access) HWY_ATTR {
    const FloatVec e = vector_exp(hn::Sub(access.load(x + i), shift));
    access.store(e, to + i);
    return e;
  });
}

// From exponentials and their sum, in their place. Rounded values take half the room of what is read, from the front.
void write_gradient(const CrossEntropy& args, float sum, int32_t target, float* grad) {
  const FloatVec factor = set(args.scale / sum);
  const float at_target = grad[target] * (args.scale / sum) - args.scale;
  if (args.grad_dtype == DType::f32) {
    for_vectors(args.vocab, [&](int64_t i, auto access)
                                HWY_ATTR { access.store(hn::Mul(access.load(grad + i), factor), grad + i); });
    grad[target] = at_target;
    return;
  }
  auto* halves = reinterpret_cast<uint16_t*>(grad);
  narrow_each(grad, args.grad_dtype, halves, args.vocab, [&](FloatVec e) HWY_ATTR { return hn::Mul(e, factor); });
  narrow(&at_target, args.grad_dtype, halves + target, 1);
}

void cross_entropy_rows(const CrossEntropy& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.logits + row * args.stride;
    float* grad = args.grad == nullptr ? nullptr : args.grad + row * args.grad_stride;
    const int32_t target = args.targets[row];
    if (target == kIgnoredTarget) {
      if (args.loss != nullptr) args.loss[row] = 0;
      if (grad != nullptr) std::fill_n(grad, args.vocab, 0.0f);
      continue;
    }
    const float max = max_vectors(args.vocab, [&](int64_t i, auto access) HWY_ATTR { return access.load(x + i); });
    const float distance = max - x[target];  // before the gradient may overwrite it
    const float sum = sum_of_exponentials(x, max, args.vocab, grad);
    if (args.loss != nullptr) args.loss[row] = distance + std::log(sum);
    if (grad == nullptr) continue;
    write_gradient(args, sum, target, grad);
  }
}

void shard_grad_rows(const CrossEntropyShardGrad& args, int64_t row_begin, int64_t row_end) {
  const FloatVec scale = set(args.scale);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = args.logits + row * args.stride;
    float* grad = args.grad + row * args.grad_stride;
    if (args.targets[row] == kIgnoredTarget) {
      std::fill_n(grad, args.vocab, 0.0f);
      continue;
    }
    const FloatVec shift = set(args.log_sum_exp[row]);
    for_vectors(args.vocab, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::Mul(vector_exp(hn::Sub(access.load(x + i), shift)), scale), grad + i);
    });
    const int64_t target = args.targets[row] - args.vocab_begin;
    if (target >= 0 && target < args.vocab) grad[target] -= args.scale;
  }
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(cross_entropy_rows);
HWY_EXPORT(shard_grad_rows);
}  // namespace

void cross_entropy(const CrossEntropy& args, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int32_t target = args.targets[row];
    INGOT_CHECK(target == kIgnoredTarget || (target >= 0 && target < args.vocab),
                "target {} in row {} of a vocabulary of {}", target, row, args.vocab);
  }
  HWY_DYNAMIC_DISPATCH(cross_entropy_rows)(args, row_begin, row_end);
}

void target_logits(const float* logits, int64_t stride, int64_t vocab, int64_t vocab_begin, const int32_t* targets,
                   float* out, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t target = targets[row] - vocab_begin;
    const bool here = targets[row] != kIgnoredTarget && target >= 0 && target < vocab;
    out[row] = here ? logits[row * stride + target] : 0.0f;
  }
}

void cross_entropy_shard_grad(const CrossEntropyShardGrad& args, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(shard_grad_rows)(args, row_begin, row_end);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
