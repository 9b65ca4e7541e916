// How values are stored. A value's dtype is that of its elements in memory. Arithmetic is done in f32: an op widens
// what it reads in bf16 or f16, exactly, and its rule gives f32. Ops that only move elements (views, slices,
// transposes) give the dtype that they read. A node may store a result in bf16 or f16 where its op's rule gives f32;
// then it is rounded once, to nearest even, before anything else reads it. passes/lower_precision.h decides where.
#pragma once

#include "graph/graph.h"

namespace ingot {

// The 16-bit formats that f32 values may be stored in.
constexpr bool is_narrow(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16;
}

// What arithmetic on values of this type gives.
inline Type computed(Type type) {
  if (is_narrow(type.dtype)) type.dtype = DType::f32;
  return type;
}

// Whether `type` is what an op's rule gives, or a narrower way to store it.
inline bool is_stored_form(const Type& type, const Type& inferred) {
  return type == inferred || (is_narrow(type.dtype) && inferred.dtype == DType::f32 && computed(type) == inferred);
}

// The value as it comes back from memory.
inline double stored(double value, DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return static_cast<double>(float_from_bf16(bf16_from_float(static_cast<float>(value))));
    case DType::f16:
      return static_cast<double>(float_from_f16(f16_from_float(static_cast<float>(value))));
    default:
      return value;
  }
}

}  // namespace ingot
