// mask_scores(scores [B,H,T,S], first_visible i32 [B,T]) with S = T: element j of row t is kept iff
//   max(first_visible[b,t], window > 0 ? t - window + 1 : 0) <= j <= t
// and is `fill` elsewhere. The gradient masks dy in the same way with 0.
#pragma once

#include <limits>

#include "graph/builder.h"

namespace ingot {

struct MaskScoresAttributes {
  int64_t window = 0;  // 0: no limit
  double fill = -std::numeric_limits<double>::infinity();
  static constexpr auto fields =
      std::tuple(field("window", &MaskScoresAttributes::window), field("fill", &MaskScoresAttributes::fill));
  bool operator==(const MaskScoresAttributes&) const = default;
};

extern const OpDef kMaskScores;
ValueId mask_scores(Builder& builder, ValueId scores, ValueId first_visible, MaskScoresAttributes attributes = {});

}  // namespace ingot
