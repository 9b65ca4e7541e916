// A parameter of a model on its way into a file of another layout: read, reordered and converted part by part.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "checkpoint/weight_source.h"

namespace ingot {

// How a tensor's rows come from those of the parameter.
enum class RowOrder {
  same,
  transposed,  // of a matrix
  // The rows of each head of D rows in the order 0, D/2, 1, D/2 + 1, …: Hugging Face's rotary positions turn rows i
  // and i + D/2 together, llama.cpp's "llama" rows 2i and 2i + 1.
  rotary_pairs
};

// The shape of a parameter of `shape` once stored in that order.
Shape stored_shape(const Shape& shape, RowOrder order);

struct StoredWeight {
  const SafetensorsModel::Tensor* source = nullptr;  // of at least one dimension
  RowOrder order = RowOrder::same;
  int64_t head_rows = 1;  // D, with rotary_pairs
  DType dtype = DType::f32;
};

// Hands all elements, row-major, to `sink` in parts of whole rows and of some megabytes; the bytes are gone after the
// call. Errors: input for what is read, failed for a number that the dtype cannot hold (`type` is its name in the
// message), and the sink's.
Status stream_weight(const WeightSource& source, const StoredWeight& weight, std::string_view type,
                     const std::function<Status(std::span<const std::byte>)>& sink);

}  // namespace ingot
