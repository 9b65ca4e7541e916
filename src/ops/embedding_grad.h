// embedding_grad(ids i32 [...], dy [...,C], [accumulator [rows,C]]) -> [rows,C]: the rows of dy summed at their ids, in
// the order of the ids, on top of the accumulator (zeros without one).
#pragma once

#include "graph/builder.h"

namespace ingot {

struct EmbeddingGradAttributes {
  int64_t rows = 0;  // the table's
  bool accumulate = false;
  static constexpr auto fields = std::tuple(field("rows", &EmbeddingGradAttributes::rows),
                                            field("accumulate", &EmbeddingGradAttributes::accumulate));
  bool operator==(const EmbeddingGradAttributes&) const = default;
};

extern const OpDef kEmbeddingGrad;
// accumulator kNone: without one.
ValueId embedding_grad(Builder& builder, ValueId ids, ValueId dy, int64_t rows, ValueId accumulator = kNone);

}  // namespace ingot
