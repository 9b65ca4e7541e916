// TensorView: a span of memory with a dtype and a shape. It owns nothing; the bytes are dense and row-major.
#pragma once

#include <cstddef>
#include <span>

#include "base/dtype.h"
#include "base/shape.h"

namespace ingot {

struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * size_of(dtype); }
  template <class T>
  T* as() const {
    INGOT_CHECK(sizeof(T) == size_of(dtype), "a tensor of {} read as elements of {} bytes", name_of(dtype), sizeof(T));
    return reinterpret_cast<T*>(data);
  }
  template <class T>
  std::span<T> span() const {
    return {as<T>(), static_cast<size_t>(shape.elements())};
  }
};

struct ConstTensorView {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  ConstTensorView() = default;
  ConstTensorView(const std::byte* bytes, DType type, Shape dims) : data(bytes), dtype(type), shape(dims) {}
  ConstTensorView(const TensorView& view)
      : data(view.data), dtype(view.dtype), shape(view.shape) {}  // NOLINT: adds const

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * size_of(dtype); }
  template <class T>
  const T* as() const {
    INGOT_CHECK(sizeof(T) == size_of(dtype), "a tensor of {} read as elements of {} bytes", name_of(dtype), sizeof(T));
    return reinterpret_cast<const T*>(data);
  }
  template <class T>
  std::span<const T> span() const {
    return {as<T>(), static_cast<size_t>(shape.elements())};
  }
};

}  // namespace ingot
