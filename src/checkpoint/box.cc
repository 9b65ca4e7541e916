#include "checkpoint/box.h"

#include <algorithm>

#include "checkpoint/convert.h"

namespace ingot {

Box Box::whole(const Shape& shape) {
  Box box{shape, shape};
  for (int axis = 0; axis < shape.rank(); ++axis) box.start[axis] = 0;
  return box;
}

Shape Box::shape() const {
  Shape result = stop;
  for (int axis = 0; axis < rank(); ++axis) result[axis] = extent(axis);
  return result;
}

std::string Box::to_string() const {
  std::string text = "[";
  for (int axis = 0; axis < rank(); ++axis)
    text += fmt::format("{}{}:{}", axis == 0 ? "" : ",", start[axis], stop[axis]);
  return text + "]";
}

std::optional<Box> intersect(const Box& a, const Box& b) {
  INGOT_CHECK(a.rank() == b.rank(), "boxes {} and {} of different rank", a.to_string(), b.to_string());
  Box both = a;
  for (int axis = 0; axis < a.rank(); ++axis) {
    both.start[axis] = std::max(a.start[axis], b.start[axis]);
    both.stop[axis] = std::min(a.stop[axis], b.stop[axis]);
    if (both.start[axis] >= both.stop[axis]) return std::nullopt;
  }
  return both;
}

namespace {

// The element within a dense tensor that holds `box` at which position `at` of the whole tensor lies.
int64_t element_of(const Box& box, const Shape& at) {
  int64_t element = 0;
  for (int axis = 0; axis < box.rank(); ++axis) element = element * box.extent(axis) + (at[axis] - box.start[axis]);
  return element;
}

}  // namespace

void copy_box(const Box& part, const ConstTensorView& source, const Box& source_box, const TensorView& destination,
              const Box& destination_box) {
  // Trailing dimensions that `part` covers entirely on both sides are one contiguous run with the dimension before
  // them.
  int64_t run = 1;
  int outer = part.rank();
  bool contiguous = true;
  while (outer > 0 && contiguous) {
    --outer;
    run *= part.extent(outer);
    contiguous = part.extent(outer) == source_box.extent(outer) && part.extent(outer) == destination_box.extent(outer);
  }
  int64_t runs = 1;
  for (int axis = 0; axis < outer; ++axis) runs *= part.extent(axis);

  Shape at = part.start;
  for (int64_t i = 0; i < runs; ++i) {
    const auto from = static_cast<size_t>(element_of(source_box, at)),
               to = static_cast<size_t>(element_of(destination_box, at));
    convert_elements(source.dtype, source.data + from * size_of(source.dtype), destination.dtype,
                     destination.data + to * size_of(destination.dtype), static_cast<size_t>(run));
    for (int axis = outer - 1; axis >= 0; --axis) {  // the next row, as an odometer counts
      if (++at[axis] < part.stop[axis]) break;
      at[axis] = part.start[axis];
    }
  }
}

}  // namespace ingot
