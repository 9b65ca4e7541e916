// adafactor(param, grad, rows, columns, control, clip) -> param', rows', columns': one step of Adafactor on a matrix
// [R,C] (Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018, algorithm 4),
// without momentum. rows f32[R] and columns f32[C] are moving averages of the means of squares:
//
//   g = grad · clip[0];  beta2 = control[1];  lr = control[0] · learning_rate_scale
//   rows = beta2·rows + (1 - beta2)·(mean over columns of g² + eps);  columns likewise with the mean over rows
//   v[i,j] = rows[i]·columns[j] / mean(rows);  u = g / sqrt(v);  u /= max(1, rms(u) / threshold)
//   param = (1 - lr · weight_decay)·param - lr · relative · u
//
// relative is 1, or with relative_step max(smallest_scale, rms(param)) of the parameter as it was.
//
// adafactor_vector(param, grad, v, control, clip) -> param', v': the same on a parameter of any shape with its second
// moment whole (algorithm 5): v = beta2·v + (1 - beta2)·(g² + eps).
//
// control is f32[3] {learning rate, beta2, 1 - beta2}; clip is f32[3] {gradient scale, skip, norm} as clip_factor gives
// it: where skip is not 0, all stays as it is.
#pragma once

#include <array>

#include "graph/builder.h"

namespace ingot {

struct AdafactorAttributes {
  double weight_decay = 0.0, learning_rate_scale = 1.0;
  bool relative_step = false;
  double eps = 1e-30, smallest_scale = 1e-3, threshold = 1.0;
  static constexpr auto fields =
      std::tuple(field("weight_decay", &AdafactorAttributes::weight_decay),
                 field("learning_rate_scale", &AdafactorAttributes::learning_rate_scale),
                 field("relative_step", &AdafactorAttributes::relative_step), field("eps", &AdafactorAttributes::eps),
                 field("smallest_scale", &AdafactorAttributes::smallest_scale),
                 field("threshold", &AdafactorAttributes::threshold));
  bool operator==(const AdafactorAttributes&) const = default;
};

struct AdafactorInputs {
  ValueId param, grad, rows, columns, control, clip;
};
struct AdafactorVectorInputs {
  ValueId param, grad, v, control, clip;
};

extern const OpDef kAdafactor;
extern const OpDef kAdafactorVector;
// {param', rows', columns'}
std::array<ValueId, 3> adafactor(Builder& builder, const AdafactorInputs& inputs, AdafactorAttributes attributes);
// {param', v'}
std::array<ValueId, 2> adafactor_vector(Builder& builder, const AdafactorVectorInputs& inputs,
                                        AdafactorAttributes attributes);

}  // namespace ingot
