#include "export/weight_rows.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/convert.h"
#include "export/narrow.h"

namespace ingot {
namespace {

// That are worked on at a time, at least one row or head. A part of a transposed tensor is made of a piece of each of
// the source's rows, which must not be too short.
constexpr int64_t kElements = int64_t{1} << 18, kTransposedElements = int64_t{1} << 21;

class WeightRows {
 public:
  WeightRows(const WeightSource& source, const StoredWeight& weight) : source_(source), weight_(weight) {
    const Shape shape = stored_shape(weight.source->info.shape, weight.order);
    rows_ = shape[0];
    width_ = shape.elements() / std::max<int64_t>(rows_, 1);
    const int64_t unit = weight.order == RowOrder::rotary_pairs ? weight.head_rows : 1;
    const int64_t elements = weight.order == RowOrder::transposed ? kTransposedElements : kElements;
    step_ = std::min(rows_, std::max<int64_t>(elements / std::max<int64_t>(width_ * unit, 1), 1) * unit);
  }

  Status stream(std::string_view type, const std::function<Status(std::span<const std::byte>)>& sink) {
    for (int64_t row = 0; row < rows_; row += step_) {
      const int64_t rows = std::min(step_, rows_ - row);
      INGOT_TRY(read(row, rows));
      INGOT_TRY(convert(static_cast<size_t>(rows * width_), type));
      INGOT_TRY(sink(stored_));
    }
    return {};
  }

 private:
  size_t element_size() const { return size_of(weight_.source->info.dtype); }

  Status read(int64_t row, int64_t rows) {
    const bool transposed = weight_.order == RowOrder::transposed;
    Box box = Box::whole(weight_.source->info.shape);
    const int axis = transposed ? 1 : 0;
    box.start[axis] = row;
    box.stop[axis] = row + rows;
    raw_.resize(static_cast<size_t>(rows * width_) * element_size());
    INGOT_TRY(source_.read(*weight_.source, box, {raw_.data(), weight_.source->info.dtype, box.shape()}));
    if (transposed)
      reorder(
          rows * width_, [&](int64_t i) { return i % width_ * rows + i / width_; }, 1);
    if (weight_.order == RowOrder::rotary_pairs) {
      const int64_t head = weight_.head_rows;
      reorder(
          rows, [&](int64_t i) { return i / head * head + i % head / 2 + i % 2 * (head / 2); }, width_);
    }
    return {};
  }

  // Takes `count` parts of `elements` elements each, part i from where from(i) stands.
  template <class From>
  void reorder(int64_t count, From from, int64_t elements) {
    const size_t size = static_cast<size_t>(elements) * element_size();
    spare_.resize(raw_.size());
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(spare_.data() + static_cast<size_t>(i) * size, raw_.data() + static_cast<size_t>(from(i)) * size,
                  size);
    raw_.swap(spare_);
  }

  // raw_ in the dtype in which it is stored, in stored_.
  Status convert(size_t count, std::string_view type) {
    const DType from = weight_.source->info.dtype;
    if (const auto lost = first_overflow(from, raw_.data(), weight_.dtype, count))
      return overflow_error(weight_.source->info.name, *lost, type);
    stored_.resize(count * size_of(weight_.dtype));
    convert_elements(from, raw_.data(), weight_.dtype, stored_.data(), count);
    return {};
  }

  const WeightSource& source_;
  const StoredWeight& weight_;
  int64_t rows_ = 0, width_ = 0, step_ = 0;
  std::vector<std::byte> raw_, spare_, stored_;
};

}  // namespace

Shape stored_shape(const Shape& shape, RowOrder order) {
  return order == RowOrder::transposed ? Shape{shape[1], shape[0]} : shape;
}

Status stream_weight(const WeightSource& source, const StoredWeight& weight, std::string_view type,
                     const std::function<Status(std::span<const std::byte>)>& sink) {
  return WeightRows(source, weight).stream(type, sink);
}

}  // namespace ingot
