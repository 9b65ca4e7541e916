// Products and lookups with weights of 8 bits: weight[j, p] = scales[j, p / group] * values[j, p], symmetric (no zero
// point), one scale for each `group` neighbouring inputs of an output, as GGML's Q8_0 has it. Only weights are rounded;
// activations and sums stay fp32.
//
// values i8 [outputs, inputs], scales f32 [outputs, groups_of(inputs, group)], both dense. Nothing is allocated.
#pragma once

#include <cstdint>

namespace ingot::kernels {

constexpr int64_t groups_of(int64_t inputs, int64_t group) {
  return (inputs + group - 1) / group;
}

struct QuantizedMatrix {
  int64_t outputs = 0, inputs = 0;
  int64_t group = 0;  // a multiple of 16
  const int8_t* values = nullptr;
  const float* scales = nullptr;
};

// y [rows, outputs] = x [rows, inputs] times the matrix's transpose.
struct QuantizedProduct {
  QuantizedMatrix matrix;
  int64_t rows = 0;
  const float* x = nullptr;
  float* y = nullptr;
};
// The outputs [begin, end) of every row. Results do not depend on the cut.
void quantized_product(const QuantizedProduct& args, int64_t begin, int64_t end);

// out [rows, inputs]: the matrix's rows ids[r], rows [begin, end) of out.
void quantized_rows(const QuantizedMatrix& matrix, const int32_t* ids, float* out, int64_t begin, int64_t end);

// Rounds the weights of the outputs [begin, end) to the nearest: scale = largest magnitude of the group / 127. Element
// (j, p) is read at weight[j * output_stride + p * input_stride]. A weight that is not finite is not: false, and what
// was written is not to be used.
bool quantize(const float* weight, int64_t output_stride, int64_t input_stride, int64_t inputs, int64_t group,
              int8_t* values, float* scales, int64_t begin, int64_t end);

}  // namespace ingot::kernels
