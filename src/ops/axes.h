// What ops along one axis share: a tensor seen as [outer, extent, inner] around that axis.
#pragma once

#include "base/result.h"
#include "base/shape.h"

namespace ingot {

struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
};
inline AxisView axis_view(const Shape& shape, int64_t axis) {
  AxisView view;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i < axis) view.outer *= shape[i];
    if (i == axis) view.extent = shape[i];
    if (i > axis) view.inner *= shape[i];
  }
  return view;
}

// The last `axes` axes as columns, the leading ones as rows.
struct RowsView {
  int64_t rows = 1, columns = 1;
};
inline RowsView rows_view(const Shape& shape, int64_t axes = 1) {
  RowsView view;
  for (int i = 0; i < shape.rank(); ++i) (i < shape.rank() - axes ? view.rows : view.columns) *= shape[i];
  return view;
}
// The shapes of the leading axes and of the trailing ones.
inline Shape leading_shape(const Shape& shape, int64_t axes = 1) {
  return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - axes)));
}
inline Shape trailing_shape(const Shape& shape, int64_t axes = 1) {
  return Shape(shape.dims().last(static_cast<size_t>(axes)));
}

inline Status check_axis(const Shape& shape, int64_t axis) {
  if (axis < 0 || axis >= shape.rank()) return failed_error("axis {} of a tensor of shape {}", axis, shape.to_string());
  return {};
}

}  // namespace ingot
