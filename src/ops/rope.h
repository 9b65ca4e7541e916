// rope(x [B,T,H,D], positions i32 [B,T]): rotary position embedding (Su et al., arXiv:2104.09864) in the half-split
// pairing of Hugging Face's Llama: with angle = positions[b,t]·inv_freq[i], i < D/2,
//   y[i] = x[i]·cos - x[i+D/2]·sin,   y[i+D/2] = x[i+D/2]·cos + x[i]·sin
// for the first rotated_heads heads (all: -1); the others are copied. inverse: by the opposite angle, which is the
// gradient.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct RopeAttributes {
  std::vector<double> inv_freq;  // D/2 of them
  int64_t rotated_heads = -1;
  bool inverse = false;
  static constexpr auto fields =
      std::tuple(field("inv_freq", &RopeAttributes::inv_freq), field("rotated_heads", &RopeAttributes::rotated_heads),
                 field("inverse", &RopeAttributes::inverse));
  bool operator==(const RopeAttributes&) const = default;
};

extern const OpDef kRope;
ValueId rope(Builder& builder, ValueId x, ValueId positions, RopeAttributes attributes);

}  // namespace ingot
