// The optimizers' ops and clipping.
#include <algorithm>
#include <cmath>

#include "base/dynamic_map.h"
#include "kernels/optimizer/adamw.h"
#include "kernels/optimizer/adamw_8bit.h"
#include "kernels/optimizer/lion.h"
#include "kernels/optimizer/muon.h"
#include "ops/adamw.h"
#include "ops/adamw_8bit.h"
#include "ops/clip_factor.h"
#include "ops/lion.h"
#include "ops/muon.h"
#include "runtime/bindings.h"

namespace ingot {
namespace {

// Inputs the parts, gradient_scale.
KernelResult bind_clip_factor(const NodeView& node) {
  const auto& a = node.node.attributes.as<ClipFactorAttributes>();
  return make_kernel([members = a.members, max_norm = a.max_norm](const RunArguments& args) {
    double squares = 0;
    bool finite = true;
    const size_t parts = args.inputs.size() - 1;
    const double gradient_scale = *args.in(parts);
    for (size_t i = 0; i < parts; ++i) finite = finite && std::isfinite(*args.in(i));
    for (int64_t i : members) squares += *args.in(static_cast<size_t>(i));
    const double norm = std::sqrt(squares) / gradient_scale;
    float* out = args.out(0);
    const double scale = max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
    out[0] = finite ? static_cast<float>(scale / gradient_scale) : 0.0f;
    out[1] = finite ? 0.0f : 1.0f;
    out[2] = static_cast<float>(norm);
  });
}

// Elements a tile: a fixed number, so that the cut follows from the shape.
constexpr int64_t kUpdateGrain = 65536;

kernels::AdamW adamw_step(const AdamwAttributes& a, const float* control, const float* clip) {
  return {.lr = control[0] * a.learning_rate_scale,
          .beta1 = a.beta1,
          .beta2 = a.beta2,
          .eps = a.eps,
          .weight_decay = a.weight_decay,
          .bias_correction1 = control[1],
          .bias_correction2 = control[2],
          .grad_scale = clip[0]};
}

// Inputs param, grad, m, v, control, clip; outputs param, m, v, usually in place.
KernelResult bind_adamw(const NodeView& node) {
  const auto& a = node.node.attributes.as<AdamwAttributes>();
  const int64_t elements = node.output(0).shape.elements();
  return make_kernel([a, elements](const RunArguments& args) {
    static constexpr size_t kState[] = {0, 2, 3};
    const kernels::AdamW step = adamw_step(a, args.in(4), args.in(5));
    const bool skip = args.in(5)[1] != 0;
    for (size_t i = 0; i < 3; ++i) bring_to_output(args, args.in(kState[i]), args.out(i), elements);
    if (skip) return;
    for_ranges(args, elements, kUpdateGrain, [&](int64_t begin, int64_t end, int) {
      kernels::adamw(step, args.out(0) + begin, args.in(1) + begin, args.out(1) + begin, args.out(2) + begin,
                     end - begin);
    });
  });
}

// Inputs param, grad, m_codes, v_codes, m_scales, v_scales, control, clip; outputs param, codes and scales, usually in
// place.
KernelResult bind_adamw_8bit(const NodeView& node) {
  static_assert(kUpdateGrain % kDynamicBlock == 0);
  const auto& a = node.node.attributes.as<AdamwAttributes>();
  const int64_t elements = node.output(0).shape.elements();
  return make_kernel([a, elements](const RunArguments& args) {
    const kernels::AdamW step = adamw_step(a, args.in(6), args.in(7));
    bring_to_output(args, args.in(0), args.out(0), elements);
    for (size_t i = 1; i < 3; ++i) {
      bring_to_output(args, args.in<uint8_t>(i + 1), args.out<uint8_t>(i), elements);
      bring_to_output(args, args.in(i + 3), args.out(i + 2), dynamic_blocks(elements));
    }
    if (args.in(7)[1] != 0) return;
    for_ranges(args, elements, kUpdateGrain, [&](int64_t begin, int64_t end, int) {
      const auto moment = [&](size_t codes, size_t scales) {
        return kernels::QuantizedMoment{args.out<uint8_t>(codes) + begin, args.out(scales) + begin / kDynamicBlock};
      };
      kernels::adamw_8bit(step, args.out(0) + begin, args.in(1) + begin, moment(1, 3), moment(2, 4), end - begin);
    });
  });
}

// Inputs param, grad, m, control, clip; outputs param, m, usually in place.
KernelResult bind_lion(const NodeView& node) {
  const auto& a = node.node.attributes.as<LionAttributes>();
  const int64_t elements = node.output(0).shape.elements();
  return make_kernel([a, elements](const RunArguments& args) {
    const float *control = args.in(3), *clip = args.in(4);
    const kernels::Lion step{.lr = control[0] * a.learning_rate_scale,
                             .beta1 = a.beta1,
                             .beta2 = a.beta2,
                             .weight_decay = a.weight_decay,
                             .grad_scale = clip[0]};
    bring_to_output(args, args.in(0), args.out(0), elements);
    bring_to_output(args, args.in(2), args.out(1), elements);
    if (clip[1] != 0) return;
    for_ranges(args, elements, kUpdateGrain, [&](int64_t begin, int64_t end, int) {
      kernels::lion(step, args.out(0) + begin, args.in(1) + begin, args.out(1) + begin, end - begin);
    });
  });
}

// Inputs grad, m, clip; outputs m, usually in place, and the direction.
KernelResult bind_muon_momentum(const NodeView& node) {
  const double momentum = node.node.attributes.as<MuonMomentumAttributes>().momentum;
  const int64_t elements = node.output(0).shape.elements();
  return make_kernel([momentum, elements](const RunArguments& args) {
    bring_to_output(args, args.in(1), args.out(0), elements);
    const float* clip = args.in(2);
    for_ranges(args, elements, kUpdateGrain, [&](int64_t begin, int64_t end, int) {
      if (clip[1] != 0)
        std::fill(args.out(1) + begin, args.out(1) + end, 0.0f);
      else
        kernels::muon_momentum(momentum, clip[0], args.in(0) + begin, args.out(0) + begin, args.out(1) + begin,
                               end - begin);
    });
  });
}

// Inputs param, direction, control, clip; output param, usually in place.
KernelResult bind_muon(const NodeView& node) {
  const auto& a = node.node.attributes.as<MuonAttributes>();
  const int64_t elements = node.output(0).shape.elements();
  return make_kernel([a, elements](const RunArguments& args) {
    bring_to_output(args, args.in(0), args.out(0), elements);
    if (args.in(3)[1] != 0) return;
    const double rate = args.in(2)[0] * a.learning_rate_scale;
    for_ranges(args, elements, kUpdateGrain, [&](int64_t begin, int64_t end, int) {
      kernels::muon_apply(1 - rate * a.weight_decay, rate * a.scale, args.out(0) + begin, args.in(1) + begin,
                          end - begin);
    });
  });
}

}  // namespace

std::span<const Binding> optimizer_bindings() {
  static constexpr Binding kBindings[] = {{"adamw", bind_adamw},
                                          {"adamw_8bit", bind_adamw_8bit},
                                          {"clip_factor", bind_clip_factor},
                                          {"lion", bind_lion},
                                          {"muon", bind_muon},
                                          {"muon_momentum", bind_muon_momentum}};
  return kBindings;
}

}  // namespace ingot
