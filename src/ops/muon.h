// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024): momentum whose matrix is
// replaced by the nearest semi-orthogonal one. Two ops; between them stand plain products (optim/muon.h).
//
// muon_momentum(grad, m, clip) -> m', direction: with g = grad · clip[0],
//   m = momentum·m + (1 - momentum)·g;  direction = momentum·m + (1 - momentum)·g    (Nesterov's)
// Where clip's skip is not 0, m stays as it is and the direction is zero.
//
// muon(param, direction, control, clip) -> param': with lr = control[0] · learning_rate_scale,
//   param = (1 - lr · weight_decay)·param - lr · scale · direction
// Where clip's skip is not 0, param stays as it is.
//
// control is f32[3] whose first entry is the learning rate; clip is f32[3] {gradient scale, skip, norm} as clip_factor
// gives it.
#pragma once

#include <array>

#include "graph/builder.h"

namespace ingot {

struct MuonMomentumAttributes {
  double momentum = 0.95;
  static constexpr auto fields = std::tuple(field("momentum", &MuonMomentumAttributes::momentum));
  bool operator==(const MuonMomentumAttributes&) const = default;
};

struct MuonAttributes {
  double scale = 1.0, weight_decay = 0.0, learning_rate_scale = 1.0;
  static constexpr auto fields =
      std::tuple(field("scale", &MuonAttributes::scale), field("weight_decay", &MuonAttributes::weight_decay),
                 field("learning_rate_scale", &MuonAttributes::learning_rate_scale));
  bool operator==(const MuonAttributes&) const = default;
};

extern const OpDef kMuonMomentum;
extern const OpDef kMuon;
// {m', direction}
std::array<ValueId, 2> muon_momentum(Builder& builder, ValueId grad, ValueId m, ValueId clip,
                                     MuonMomentumAttributes attributes);
ValueId muon(Builder& builder, ValueId param, ValueId direction, ValueId control, ValueId clip,
             MuonAttributes attributes);

}  // namespace ingot
