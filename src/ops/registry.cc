#include "ops/registry.h"

#include <algorithm>
#include <array>

#include "ops/adafactor.h"
#include "ops/adamw.h"
#include "ops/adamw_8bit.h"
#include "ops/add.h"
#include "ops/add_scalar.h"
#include "ops/attention.h"
#include "ops/attention_grad.h"
#include "ops/attention_packed.h"
#include "ops/attention_packed_grad.h"
#include "ops/broadcast_to.h"
#include "ops/cache_write.h"
#include "ops/cached_attention.h"
#include "ops/cast.h"
#include "ops/clip_factor.h"
#include "ops/cluster.h"
#include "ops/concat.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/cross_entropy_grad.h"
#include "ops/div.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/embedding_grad.h"
#include "ops/erf.h"
#include "ops/exp.h"
#include "ops/gelu.h"
#include "ops/gelu_grad.h"
#include "ops/gelu_tanh.h"
#include "ops/gelu_tanh_grad.h"
#include "ops/glu.h"
#include "ops/glu_grad.h"
#include "ops/layer_norm.h"
#include "ops/layer_norm_grad.h"
#include "ops/linear.h"
#include "ops/linear_cross_entropy.h"
#include "ops/linear_cross_entropy_grad.h"
#include "ops/lion.h"
#include "ops/log.h"
#include "ops/mask_scores.h"
#include "ops/matmul.h"
#include "ops/matmul_add.h"
#include "ops/mul.h"
#include "ops/muon.h"
#include "ops/neg.h"
#include "ops/quantized_embedding.h"
#include "ops/quantized_linear.h"
#include "ops/relu.h"
#include "ops/relu_grad.h"
#include "ops/repeat_interleave.h"
#include "ops/reshape.h"
#include "ops/residual_layer_norm.h"
#include "ops/residual_rms_norm.h"
#include "ops/rms_norm.h"
#include "ops/rms_norm_grad.h"
#include "ops/rope.h"
#include "ops/rsqrt.h"
#include "ops/scale.h"
#include "ops/sigmoid.h"
#include "ops/silu.h"
#include "ops/silu_grad.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/softmax_grad.h"
#include "ops/split.h"
#include "ops/sqrt.h"
#include "ops/square.h"
#include "ops/sub.h"
#include "ops/sum.h"
#include "ops/sum_squares.h"
#include "ops/tanh.h"
#include "ops/transpose.h"

namespace ingot {

// In alphabetical order.
std::span<const OpDef* const> all_ops() {
  static constexpr auto kAll = std::to_array<const OpDef*>({
      &kAdafactor,
      &kAdafactorVector,
      &kAdamw,
      &kAdamw8bit,
      &kAdd,
      &kAddScalar,
      &kAttention,
      &kAttentionGrad,
      &kAttentionPacked,
      &kAttentionPackedGrad,
      &kBroadcastTo,
      &kCacheWrite,
      &kCachedAttention,
      &kCast,
      &kClipFactor,
      &kCluster,
      &kConcat,
      &kConstant,
      &kCrossEntropy,
      &kCrossEntropyGrad,
      &kDiv,
      &kDropout,
      &kEmbedding,
      &kEmbeddingGrad,
      &kErf,
      &kExp,
      &kGelu,
      &kGeluGrad,
      &kGeluTanh,
      &kGeluTanhGrad,
      &kGlu,
      &kGluGrad,
      &kLayerNorm,
      &kLayerNormGrad,
      &kLinear,
      &kLinearCrossEntropy,
      &kLinearCrossEntropyGrad,
      &kLion,
      &kLog,
      &kMaskScores,
      &kMatmul,
      &kMatmulAdd,
      &kMul,
      &kMuon,
      &kMuonMomentum,
      &kNeg,
      &kQuantizedEmbedding,
      &kQuantizedLinear,
      &kRelu,
      &kReluGrad,
      &kRepeatInterleave,
      &kReshape,
      &kResidualLayerNorm,
      &kResidualRmsNorm,
      &kRmsNorm,
      &kRmsNormGrad,
      &kRope,
      &kRsqrt,
      &kScale,
      &kSigmoid,
      &kSilu,
      &kSiluGrad,
      &kSlice,
      &kSoftmax,
      &kSoftmaxGrad,
      &kSplit,
      &kSqrt,
      &kSquare,
      &kSub,
      &kSum,
      &kSumSquares,
      &kTanh,
      &kTranspose,
  });
  return kAll;
}

const OpDef* find_op(std::string_view name) {
  const auto ops = all_ops();
  const auto it = std::ranges::find(ops, name, &OpDef::name);
  return it == ops.end() ? nullptr : *it;
}

}  // namespace ingot
