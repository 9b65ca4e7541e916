// The optimizers' ops and clipping.
#include <algorithm>
#include <cmath>

#include "kernels/optimizer/adamw.h"
#include "kernels/optimizer/lion.h"
#include "ops/adamw.h"
#include "ops/clip_factor.h"
#include "ops/lion.h"
#include "runtime/bindings.h"

namespace ingot {
namespace {

KernelResult bind_clip_factor(const NodeView& node) {
  const auto& a = node.node.attributes.as<ClipFactorAttributes>();
  return make_kernel([members = a.members, max_norm = a.max_norm](const RunArguments& args) {
    double squares = 0;
    bool finite = true;
    for (size_t i = 0; i < args.inputs.size(); ++i) finite = finite && std::isfinite(*args.in(i));
    for (int64_t i : members) squares += *args.in(static_cast<size_t>(i));
    const double norm = std::sqrt(squares);
    float* out = args.out(0);
    const double scale = max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
    out[0] = finite ? static_cast<float>(scale) : 0.0f;
    out[1] = finite ? 0.0f : 1.0f;
    out[2] = static_cast<float>(norm);
  });
}

// Elements a tile: a fixed number, so that the cut follows from the shape.
constexpr int64_t kUpdateGrain = 65536;

// Inputs param, grad, m, v, control, clip; outputs param, m, v, usually in place.
KernelResult bind_adamw(const NodeView& node) {
  const auto& a = node.node.attributes.as<AdamwAttributes>();
  kernels::AdamW settings;
  settings.beta1 = a.beta1;
  settings.beta2 = a.beta2;
  settings.eps = a.eps;
  settings.weight_decay = a.weight_decay;
  const int64_t elements = node.output(0).shape.elements();
  return make_kernel([settings, elements, scale = a.learning_rate_scale](const RunArguments& args) {
    static constexpr size_t kState[] = {0, 2, 3};
    kernels::AdamW step = settings;
    const float *control = args.in(4), *clip = args.in(5);
    step.lr = control[0] * scale;
    step.bias_correction1 = control[1];
    step.bias_correction2 = control[2];
    step.grad_scale = clip[0];
    const bool skip = clip[1] != 0;
    for (size_t i = 0; i < 3; ++i) bring_to_output(args, args.in(kState[i]), args.out(i), elements);
    if (skip) return;
    for_ranges(args, elements, kUpdateGrain, [&](int64_t begin, int64_t end, int) {
      kernels::adamw(step, args.out(0) + begin, args.in(1) + begin, args.out(1) + begin, args.out(2) + begin,
                     end - begin);
    });
  });
}

// Inputs param, grad, m, control, clip; outputs param, m, usually in place.
KernelResult bind_lion(const NodeView& node) {
  const auto& a = node.node.attributes.as<LionAttributes>();
  kernels::Lion settings;
  settings.beta1 = a.beta1;
  settings.beta2 = a.beta2;
  settings.weight_decay = a.weight_decay;
  const int64_t elements = node.output(0).shape.elements();
  return make_kernel([settings, elements, scale = a.learning_rate_scale](const RunArguments& args) {
    kernels::Lion step = settings;
    const float *control = args.in(3), *clip = args.in(4);
    step.lr = control[0] * scale;
    step.grad_scale = clip[0];
    bring_to_output(args, args.in(0), args.out(0), elements);
    bring_to_output(args, args.in(2), args.out(1), elements);
    if (clip[1] != 0) return;
    for_ranges(args, elements, kUpdateGrain, [&](int64_t begin, int64_t end, int) {
      kernels::lion(step, args.out(0) + begin, args.in(1) + begin, args.out(1) + begin, end - begin);
    });
  });
}

}  // namespace

std::span<const Binding> optimizer_bindings() {
  static constexpr Binding kBindings[] = {
      {"adamw", bind_adamw}, {"clip_factor", bind_clip_factor}, {"lion", bind_lion}};
  return kBindings;
}

}  // namespace ingot
