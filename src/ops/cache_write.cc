#include "ops/cache_write.h"

#include <algorithm>

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes&) {
  if (inputs.size() != 3) return failed_error("{} inputs, expected cache, new and start", inputs.size());
  const Shape &cache = inputs[0].shape, &fresh = inputs[1].shape;
  if (cache.rank() != 4 || fresh.rank() != 4 || fresh[0] != cache[0] || fresh[2] != cache[1] || fresh[3] != cache[3])
    return failed_error("cache {} and new {}, expected [B,Hkv,S,D] and [B,T,Hkv,D]", cache.to_string(),
                        fresh.to_string());
  if (!(inputs[2] == Type{DType::i32, {cache[0]}}))
    return failed_error("start {}, expected i32[{}]", inputs[2].to_string(), cache[0]);
  return std::vector<Type>{inputs[0]};
}

void evaluate(const EvalContext& context) {
  const Shape &cache = context.inputs[0]->shape, &fresh = context.inputs[1]->shape;
  auto& out = context.outputs[0].data;
  out = context.inputs[0]->data;
  for (int64_t b = 0; b < fresh[0]; ++b)
    for (int64_t t = 0; t < fresh[1]; ++t) {
      const int64_t position = static_cast<int64_t>(context.inputs[2]->data[static_cast<size_t>(b)]) + t;
      if (position < 0 || position >= cache[2]) continue;
      for (int64_t h = 0; h < fresh[2]; ++h)
        std::copy_n(context.inputs[1]->data.begin() + ((b * fresh[1] + t) * fresh[2] + h) * fresh[3], fresh[3],
                    out.begin() + ((b * cache[1] + h) * cache[2] + position) * cache[3]);
    }
}

}  // namespace

const OpDef kCacheWrite{
    .name = "cache_write",
    .traits = {.in_place = {0}},
    .infer = infer,
    .evaluate = evaluate,
    .examples =
        [] {
          return std::vector<OpExample>{
              {{{DType::f32, {2, 2, 7, 3}}, {DType::f32, {2, 1, 2, 3}}, {DType::i32, {2}}}, {}, {{}, {}, {4, 0}}},
              {{{DType::f32, {2, 1, 5, 3}}, {DType::f32, {2, 4, 1, 3}}, {DType::i32, {2}}}, {}, {{}, {}, {0, 3}}}};
        },
};

ValueId cache_write(Builder& builder, ValueId cache, ValueId fresh, ValueId start) {
  return builder.add(kCacheWrite, {cache, fresh, start});
}

}  // namespace ingot
