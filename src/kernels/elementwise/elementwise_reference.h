// The scalar reference of element-wise ops, on float or double.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/elementwise/elementwise.h"

namespace ingot::kernels::reference {

template <class T>
T sigmoid(T x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
template <class T>
T normal_cdf(T x) {
  return std::erfc(-x / std::sqrt(T{2})) / 2;
}
template <class T>
T gelu_slope(T x) {
  return normal_cdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * T{3.14159265358979323846L});
}
// sqrt(2/pi) (x + 0.044715 x^3)
template <class T>
T gelu_tanh_argument(T x) {
  return std::sqrt(2 / T{3.14159265358979323846L}) * (x + T{0.044715L} * x * x * x);
}
template <class T>
T gelu_tanh_slope(T x) {
  const T t = std::tanh(gelu_tanh_argument(x));
  const T du = std::sqrt(2 / T{3.14159265358979323846L}) * (1 + 3 * T{0.044715L} * x * x);
  return (1 + t) / 2 + x * (1 - t * t) * du / 2;
}
template <class T>
T silu_slope(T x) {
  const T s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

template <class T>
T dropout(T x, double p, const EwStream& stream, int64_t row, int64_t column) {
  const auto index = static_cast<uint64_t>(stream.first + row * stream.row_length + column);
  const uint32_t bits = philox(stream.key, index / 4, stream.counter)[index % 4];
  return uniform_from_bits(bits) >= static_cast<float>(p) ? x * T(1 / (1 - p)) : T{0};
}

// Everything but dropout, which needs to know where it is.
template <class T>
T apply(EwOp op, T a, T b, T imm) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  switch (op) {
    case EwOp::constant:
      return imm;
    case EwOp::copy:
    case EwOp::dropout:
      return a;
    case EwOp::neg:
      return -a;
    case EwOp::abs:
      return std::abs(a);
    case EwOp::scale:
      return a * imm;
    case EwOp::add_scalar:
      return a + imm;
    case EwOp::square:
      return a * a;
    case EwOp::sqrt:
      return std::sqrt(a);
    case EwOp::rsqrt:
      return 1 / std::sqrt(a);
    case EwOp::reciprocal:
      return 1 / a;
    case EwOp::exp:
      return std::exp(a);
    case EwOp::log:
      return std::log(a);
    case EwOp::tanh:
      return std::tanh(a);
    case EwOp::sigmoid:
      return sigmoid(a);
    case EwOp::erf:
      return std::erf(a);
    case EwOp::relu:
      return a < 0 ? T{0} : a;
    case EwOp::gelu:
      return a * normal_cdf(a);
    case EwOp::gelu_tanh:
      return a * (1 + std::tanh(gelu_tanh_argument(a))) / 2;
    case EwOp::silu:
      return a * sigmoid(a);
    case EwOp::round_bf16:
      return T{float_from_bf16(bf16_from_float(static_cast<float>(a)))};
    case EwOp::round_f16:
      return T{float_from_f16(f16_from_float(static_cast<float>(a)))};
    case EwOp::add:
      return a + b;
    case EwOp::sub:
      return a - b;
    case EwOp::mul:
      return a * b;
    case EwOp::div:
      return a / b;
    case EwOp::max:
      return std::isnan(a) || std::isnan(b) ? nan : std::max(a, b);
    case EwOp::min:
      return std::isnan(a) || std::isnan(b) ? nan : std::min(a, b);
    case EwOp::greater:
      return a > b ? T{1} : T{0};
    case EwOp::relu_grad:
      return a <= 0 ? T{0} : b;
    case EwOp::gelu_grad:
      return b * gelu_slope(a);
    case EwOp::gelu_tanh_grad:
      return b * gelu_tanh_slope(a);
    case EwOp::silu_grad:
      return b * silu_slope(a);
    case EwOp::sigmoid_grad:
      return b * sigmoid(a) * (1 - sigmoid(a));
    case EwOp::tanh_grad:
      return b * (1 - std::tanh(a) * std::tanh(a));
  }
  return nan;
}

inline float element(const EwInput& in, int64_t at) {
  if (in.dtype == DType::bf16) return float_from_bf16(static_cast<const uint16_t*>(in.data)[at]);
  if (in.dtype == DType::f16) return float_from_f16(static_cast<const uint16_t*>(in.data)[at]);
  return static_cast<const float*>(in.data)[at];
}

// The program's value of output `output` at one element.
template <class T>
T evaluate(const EwProgram& program, size_t output, int64_t row, int64_t column) {
  std::vector<T> registers(kMaxEwRegisters, std::numeric_limits<T>::quiet_NaN());
  for (size_t j = 0; j < program.inputs.size(); ++j) {
    const EwInput& in = program.inputs[j];
    registers[j] = element(in, (row - in.row_origin) * in.row_stride + (column - in.column_origin) * in.column_stride);
  }
  for (const EwInstruction& i : program.instructions) {
    registers[i.dst] = i.op == EwOp::dropout ? dropout(registers[i.a], i.imm, program.streams[i.stream], row, column)
                                             : apply<T>(i.op, registers[i.a], registers[i.b], i.imm);
  }
  return registers[program.outputs[output].reg];
}

}  // namespace ingot::kernels::reference
