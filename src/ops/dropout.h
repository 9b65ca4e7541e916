// dropout(x): each element is zeroed with probability p, else scaled by 1/(1-p) (Srivastava et al., JMLR 15, 2014).
//
// What is dropped depends on the run's seed, the stream, the step and the element's place in the global batch alone
// (RandomState): element e of the global batch draws word e%4 of philox(stream_key(seed, stream), e/4, step) and is
// kept where uniform_from_bits(word) >= p. A second dropout with the same attributes drops the same elements; that is
// its gradient.
#pragma once

#include "graph/builder.h"

namespace ingot {

struct DropoutAttributes {
  double p = 0;        // in [0, 1)
  std::string stream;  // the stable path of the layer that draws
  static constexpr auto fields =
      std::tuple(field("p", &DropoutAttributes::p), field("stream", &DropoutAttributes::stream));
  bool operator==(const DropoutAttributes&) const = default;
};

extern const OpDef kDropout;
// Returns x itself where p is 0.
ValueId dropout(Builder& builder, ValueId x, double p, std::string stream);

}  // namespace ingot
