#include "nn/attention.h"

#include "nn/dropout.h"
#include "nn/softcap.h"
#include "ops/cache_write.h"
#include "ops/cached_attention.h"
#include "ops/mask_scores.h"
#include "ops/matmul.h"
#include "ops/repeat_interleave.h"
#include "ops/reshape.h"
#include "ops/scale.h"
#include "ops/softmax.h"
#include "ops/transpose.h"

namespace ingot {
namespace {

ValueId attend_row(Builder& builder, ValueId q, ValueId k, ValueId v, ValueId first_visible,
                   const AttentionSettings& settings) {
  const int64_t group = builder.shape(q)[2] / builder.shape(k)[2];
  q = transpose(builder, q, {0, 2, 1, 3});  // [B,H,T,D]
  k = repeat_interleave(builder, transpose(builder, k, {0, 2, 1, 3}), 1, group);
  v = repeat_interleave(builder, transpose(builder, v, {0, 2, 1, 3}), 1, group);
  ValueId scores = scale(builder, matmul(builder, q, k, {false, true}), settings.scale);  // [B,H,T,T]
  scores = softcap(builder, scores, settings.softcap);
  MaskScoresAttributes mask;
  mask.window = settings.window;
  ValueId probabilities = softmax(builder, mask_scores(builder, scores, first_visible, mask));
  probabilities = named_dropout(builder, probabilities, settings.dropout, "attn_dropout");
  return transpose(builder, matmul(builder, probabilities, v), {0, 2, 1, 3});
}

// The cache of one layer with the new tokens' keys or values [B,T,Hkv,D] put in at start.
ValueId extended_cache(Builder& builder, const std::string& name, ValueId fresh, const AttentionContext& context) {
  const Type type = builder.type(fresh);
  const ValueId cache =
      builder.state(name, {type.dtype, {type.shape[0], type.shape[2], context.cache_capacity, type.shape[3]}});
  const ValueId extended = cache_write(builder, cache, fresh, context.start);
  builder.store(cache, extended);
  return extended;
}

}  // namespace

ValueId split_heads(Builder& builder, ValueId x, int64_t heads) {
  const Shape& shape = builder.shape(x);
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims.back() = heads;
  dims.push_back(shape[-1] / heads);
  return reshape(builder, x, Shape(dims));
}

ValueId merge_heads(Builder& builder, ValueId x) {
  const Shape& shape = builder.shape(x);
  std::vector<int64_t> dims(shape.begin(), shape.end() - 1);
  dims.back() *= shape[-1];
  return reshape(builder, x, Shape(dims));
}

ValueId attend(Builder& builder, ValueId q, ValueId k, ValueId v, const AttentionContext& context,
               const AttentionSettings& settings) {
  if (context.start == kNone) return attend_row(builder, q, k, v, context.first_visible, settings);
  const ValueId keys = extended_cache(builder, fmt::format("cache.k.{}", settings.layer), k, context);
  const ValueId values = extended_cache(builder, fmt::format("cache.v.{}", settings.layer), v, context);
  return cached_attention(builder, q, keys, values, context.start, {settings.scale, settings.window, settings.softcap});
}

}  // namespace ingot
