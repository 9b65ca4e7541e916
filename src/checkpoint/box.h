// Box: a [start, stop) range in each dimension of a tensor. Checkpoints are made of boxes, so that any layout of ranks
// reads what any other wrote.
#pragma once

#include <optional>
#include <string>

#include "base/tensor.h"

namespace ingot {

struct Box {
  Shape start, stop;  // of the same rank

  static Box whole(const Shape& shape);
  int rank() const { return start.rank(); }
  int64_t extent(int axis) const { return stop[axis] - start[axis]; }
  Shape shape() const;
  bool operator==(const Box&) const = default;
  std::string to_string() const;  // "[0:4,2:8]"
};

// What both hold; none where that is empty. A scalar's box meets itself.
std::optional<Box> intersect(const Box& a, const Box& b);

// Copies `part` of a tensor. `source` holds source_box of it, `destination` destination_box; both contain `part`.
// Where the dtypes differ they must be convertible (checkpoint/convert.h). The memory must not overlap.
void copy_box(const Box& part, const ConstTensorView& source, const Box& source_box, const TensorView& destination,
              const Box& destination_box);

}  // namespace ingot
