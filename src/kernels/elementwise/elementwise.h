// Element-wise clusters: a small register program, evaluated chunk by chunk, so that intermediate values stay in L1.
//
// Values are matrices [rows, columns], fp32 in registers; inputs are widened and outputs rounded where memory holds
// them in bf16 or f16. Register i < inputs.size() is input i; the others are temporaries, which an instruction may
// write and write again. A program costs one pass over its inputs and outputs.
//
// Thread-safe: a call touches only its outputs' part of the tile and its own scratch. An element's result depends on
// its row and column alone, so tiles may be cut in any way. An output may be exactly an input (in place), else they
// must not overlap. Nothing is allocated. A malformed program is a bug (INGOT_CHECK).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/dtype.h"

namespace ingot::kernels {

// The list that the enumeration, names, kernels, reference and tests expand: X(name, operands).
// Gradients: a = x, b = dy, the result is dy * f'(x).
#define INGOT_ELEMENTWISE_OPS(X)                                                        \
  X(constant, 0) /* imm */                                                              \
  X(copy, 1)                                                                            \
  X(neg, 1)                                                                             \
  X(abs, 1)                                                                             \
  X(scale, 1)      /* a * imm */                                                        \
  X(add_scalar, 1) /* a + imm */                                                        \
  X(square, 1)                                                                          \
  X(sqrt, 1)                                                                            \
  X(rsqrt, 1)      /* 1 / sqrt(a) */                                                    \
  X(reciprocal, 1) /* 1 / a */                                                          \
  X(exp, 1)                                                                             \
  X(log, 1)                                                                             \
  X(tanh, 1)                                                                            \
  X(sigmoid, 1)                                                                         \
  X(erf, 1)                                                                             \
  X(relu, 1)                                                                            \
  X(gelu, 1)       /* x * Phi(x), by erf */                                             \
  X(gelu_tanh, 1)  /* its approximation by tanh (Hendrycks and Gimpel, 2016) */         \
  X(silu, 1)       /* x * sigmoid(x) */                                                 \
  X(round_bf16, 1) /* a as it comes back from bf16 */                                   \
  X(round_f16, 1)                                                                       \
  X(dropout, 1) /* a / (1 - imm) where the stream's uniform number is >= imm, else 0 */ \
  X(add, 2)                                                                             \
  X(sub, 2)                                                                             \
  X(mul, 2)                                                                             \
  X(div, 2)                                                                             \
  X(max, 2) /* NaN if either is */                                                      \
  X(min, 2)                                                                             \
  X(greater, 2) /* a > b ? 1 : 0 */                                                     \
  X(relu_grad, 2)                                                                       \
  X(gelu_grad, 2)                                                                       \
  X(gelu_tanh_grad, 2)                                                                  \
  X(silu_grad, 2)                                                                       \
  X(sigmoid_grad, 2)                                                                    \
  X(tanh_grad, 2)

enum class EwOp : uint8_t {
#define INGOT_EW_ENUM(name, operands) name,
  INGOT_ELEMENTWISE_OPS(INGOT_EW_ENUM)
#undef INGOT_EW_ENUM
};
std::string_view name_of(EwOp op);
int operands_of(EwOp op);

struct EwInstruction {
  EwOp op = EwOp::copy;
  uint16_t dst = 0, a = 0, b = 0;  // registers; b is ignored where the op has one operand
  float imm = 0;
  uint16_t stream = 0;  // dropout: which of the program's streams
  bool operator==(const EwInstruction&) const = default;
};

// A stride of 0 broadcasts: a bias has row_stride 0, a value per row column_stride 0, a scalar both. Strides in
// elements. `data` is the element at (row_origin, column_origin); a buffer that holds only a tile names the tile's
// corner here. dtype: f32, bf16 or f16.
struct EwInput {
  const void* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
  int64_t row_origin = 0, column_origin = 0;
  DType dtype = DType::f32;
};
struct EwOutput {
  void* data = nullptr;
  int64_t row_stride = 0;  // columns are adjacent
  uint16_t reg = 0;
  int64_t row_origin = 0, column_origin = 0;
  DType dtype = DType::f32;
};

// Random numbers of a dropout. The element at (row, column) has the index i = first + row * row_length + column and is
// drawn as philox(key, i / 4, counter)[i % 4] (base/rng.h), so a recomputed dropout is the same dropout.
struct EwStream {
  uint64_t key = 0;
  uint64_t counter = 0;
  int64_t row_length = 0;
  int64_t first = 0;  // index of the element at (0, 0): where this tensor begins in that of the global batch
};

struct EwProgram {
  std::span<const EwInstruction> instructions;
  std::span<const EwInput> inputs;
  std::span<const EwOutput> outputs;
  std::span<const EwStream> streams = {};
};

struct EwTile {
  int64_t row_begin = 0, row_end = 0;
  int64_t column_begin = 0, column_end = 0;
};

inline constexpr int kMaxEwRegisters = 64;
inline constexpr int kMaxEwOutputs = 16;

// Registers that the program names: inputs and temporaries.
int registers_of(const EwProgram& program);
// Scratch for a program of so many registers; the alignment of a float will do.
int64_t elementwise_scratch_floats(int registers);

void run_elementwise(const EwProgram& program, const EwTile& tile, float* scratch);

}  // namespace ingot::kernels
