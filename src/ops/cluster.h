// cluster(inputs…) -> outputs: an elementwise program in one pass over memory. Inputs broadcast to one shape, which
// every output has; values between instructions never reach memory.
#pragma once

#include "graph/builder.h"
#include "ops/program.h"

namespace ingot {

struct ClusterAttributes {
  Program program;
  std::vector<int64_t> outputs;  // registers that are written, in the order of the op's outputs
  static constexpr auto fields =
      std::tuple(field("program", &ClusterAttributes::program), field("outputs", &ClusterAttributes::outputs));
  bool operator==(const ClusterAttributes&) const = default;
};

extern const OpDef kCluster;

}  // namespace ingot
