#include "ops/cached_attention.h"

#include "graph/storage.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot {
namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 4) return failed_error("{} inputs, expected q, k_cache, v_cache and start", inputs.size());
  const Shape &q = inputs[0].shape, &k = inputs[1].shape;
  if (q.rank() != 4 || k.rank() != 4 || !(inputs[2].shape == k))
    return failed_error("q {}, k_cache {} and v_cache {}, expected [B,T,H,D] and twice [B,Hkv,S,D]", q.to_string(),
                        k.to_string(), inputs[2].shape.to_string());
  if (k[0] != q[0] || k[3] != q[3] || k[1] == 0 || q[2] % k[1] != 0)
    return failed_error("k_cache {} does not fit q {}", k.to_string(), q.to_string());
  if (!(inputs[3] == Type{DType::i32, {q[0]}}))
    return failed_error("start {}, expected i32[{}]", inputs[3].to_string(), q[0]);
  if (attributes.as<CachedAttentionAttributes>().window < 0) return failed_error("a negative window");
  if (attributes.as<CachedAttentionAttributes>().softcap < 0) return failed_error("a negative softcap");
  return std::vector<Type>{computed(inputs[0])};
}

// One query's row: q and out are [D], k and v the [S,D] of its head; sees the positions first to last.
void attend(const double* q, const double* k, const double* v, double* out, int64_t dim, int64_t first, int64_t last,
            double scale, double softcap) {
  std::vector<double> scores;
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (int64_t s = first; s <= last; ++s) {
    double dot = 0;
    for (int64_t d = 0; d < dim; ++d) dot += q[d] * k[s * dim + d];
    const double score = scale * dot;
    scores.push_back(softcap > 0 ? softcap * std::tanh(score / softcap) : score);
    largest = std::max(largest, scores.back());
  }
  for (double& score : scores) total += score = std::exp(score - largest);
  for (int64_t s = first; s <= last; ++s)
    for (int64_t d = 0; d < dim; ++d) out[d] += scores[static_cast<size_t>(s - first)] / total * v[s * dim + d];
}

void evaluate(const EvalContext& context) {
  const auto& a = context.node.attributes.as<CachedAttentionAttributes>();
  const Shape &q = context.inputs[0]->shape, &k = context.inputs[1]->shape;
  for (int64_t b = 0; b < q[0]; ++b)
    for (int64_t t = 0; t < q[1]; ++t)
      for (int64_t h = 0; h < q[2]; ++h) {
        const int64_t position = static_cast<int64_t>(context.inputs[3]->data[static_cast<size_t>(b)]) + t;
        const int64_t first = a.window > 0 ? std::max<int64_t>(0, position - a.window + 1) : 0;
        const int64_t row = ((b * q[1] + t) * q[2] + h) * q[3], head = (b * k[1] + h / (q[2] / k[1])) * k[2] * k[3];
        attend(context.inputs[0]->data.data() + row, context.inputs[1]->data.data() + head,
               context.inputs[2]->data.data() + head, context.outputs[0].data.data() + row, q[3], first,
               std::min(position, k[2] - 1), a.scale, a.softcap);
      }
}

std::vector<OpExample> examples() {
  const auto example = [](Shape q, Shape cache, std::vector<double> start, CachedAttentionAttributes attributes) {
    return OpExample{{{DType::f32, q}, {DType::f32, cache}, {DType::f32, cache}, {DType::i32, {q[0]}}},
                     attributes,
                     {{}, {}, {}, std::move(start)}};
  };
  return {example({2, 1, 4, 3}, {2, 2, 7, 3}, {4, 0}, {0.5, 0}), example({1, 3, 2, 5}, {1, 2, 6, 5}, {2}, {0.4, 2}),
          example({2, 2, 2, 3}, {2, 1, 5, 3}, {1, 3}, {1.0, 0}),
          example({1, 3, 2, 5}, {1, 2, 6, 5}, {2}, {2.0, 3, 0.7})};
}

}  // namespace

const OpDef kCachedAttention{
    .name = "cached_attention",
    .traits = {.product = true},
    .infer = infer,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<CachedAttentionAttributes>,
    .examples = examples,
};

ValueId cached_attention(Builder& builder, ValueId q, ValueId k_cache, ValueId v_cache, ValueId start,
                         CachedAttentionAttributes attributes) {
  return builder.add(kCachedAttention, {q, k_cache, v_cache, start}, attributes);
}

}  // namespace ingot
