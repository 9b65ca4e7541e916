#include "ops/matmul.h"

#include "graph/storage.h"
#include "ops/reshape.h"

namespace ingot {

Result<MatmulExtents> matmul_extents(const Shape& a, const Shape& b, const MatmulAttributes& attributes) {
  const auto wrong = [&](const char* what) {
    return failed_error("{}: {} and {}", what, a.to_string(), b.to_string());
  };
  if (a.rank() < 2 || b.rank() < 2) return wrong("both operands need two axes");
  MatmulExtents e;
  const bool shared = b.rank() == 2;
  if (shared && attributes.transpose_a && a.rank() != 2) return wrong("a transposed first operand needs two axes");
  if (!shared) {
    if (a.rank() != b.rank()) return wrong("the leading axes differ");
    for (int axis = 0; axis < a.rank() - 2; ++axis) {
      if (a[axis] != b[axis]) return wrong("the leading axes differ");
      e.batch *= a[axis];
    }
  }
  e.k = attributes.transpose_a ? a[-2] : a[-1];
  e.rows = attributes.transpose_a ? a[-1] : a[-2];
  if (shared)
    for (int axis = 0; axis < a.rank() - 2; ++axis) e.rows *= a[axis];
  const int64_t b_k = attributes.transpose_b ? b[-1] : b[-2];
  e.n = attributes.transpose_b ? b[-2] : b[-1];
  if (e.k != b_k) return wrong("the inner extents differ");
  return e;
}

namespace {

Result<std::vector<Type>> infer(std::span<const Type> inputs, const Attributes& attributes) {
  if (inputs.size() != 2) return failed_error("{} inputs, expected 2", inputs.size());
  const auto& flags = attributes.as<MatmulAttributes>();
  INGOT_ASSIGN(const MatmulExtents extents, matmul_extents(inputs[0].shape, inputs[1].shape, flags));
  Shape shape = inputs[0].shape;
  if (flags.transpose_a) shape[-2] = inputs[0].shape[-1];
  shape[-1] = extents.n;
  return std::vector<Type>{{computed(inputs[0]).dtype, shape}};
}

ValueId rows_of(Builder& builder, ValueId x) {
  const Shape& shape = builder.shape(x);
  return reshape(builder, x, {shape.elements() / std::max<int64_t>(shape[-1], 1), shape[-1]});
}

// With A' and B' the operands as multiplied: dA' = dY·B'^T and dB' = A'^T·dY; an operand given swapped gets the
// transpose.
void gradient(GradientContext& context) {
  Builder& builder = context.builder;
  const auto flags = context.op_node().attributes.as<MatmulAttributes>();
  const ValueId dy = context.output_gradients[0];
  ValueId a = context.input(0), b = context.input(1);
  context.input_gradients[0] = flags.transpose_a ? matmul(builder, b, dy, {flags.transpose_b, true})
                                                 : matmul(builder, dy, b, {false, !flags.transpose_b});
  ValueId d = dy;
  if (builder.shape(b).rank() == 2) {
    a = rows_of(builder, a);
    d = rows_of(builder, d);
  }
  context.input_gradients[1] = flags.transpose_b ? matmul(builder, d, a, {true, flags.transpose_a})
                                                 : matmul(builder, a, d, {!flags.transpose_a, false});
}

void evaluate(const EvalContext& context) {
  const auto& flags = context.node.attributes.as<MatmulAttributes>();
  const RefTensor &a = *context.inputs[0], &b = *context.inputs[1];
  const MatmulExtents e = matmul_extents(a.shape, b.shape, flags).value();
  for (int64_t batch = 0; batch < e.batch; ++batch) {
    const double* pa = a.data.data() + batch * e.rows * e.k;
    const double* pb = b.data.data() + batch * e.k * e.n;
    double* pc = context.outputs[0].data.data() + batch * e.rows * e.n;
    for (int64_t i = 0; i < e.rows; ++i)
      for (int64_t p = 0; p < e.k; ++p) {
        const double x = flags.transpose_a ? pa[p * e.rows + i] : pa[i * e.k + p];
        for (int64_t j = 0; j < e.n; ++j)
          pc[i * e.n + j] += x * (flags.transpose_b ? pb[j * e.k + p] : pb[p * e.n + j]);
      }
  }
}

std::vector<OpExample> examples() {
  const auto type = [](Shape shape) { return Type{DType::f32, shape}; };
  return {{{type({3, 5}), type({5, 7})}, MatmulAttributes{}},
          {{type({5, 3}), type({5, 7})}, MatmulAttributes{true, false}},
          {{type({3, 5}), type({7, 5})}, MatmulAttributes{false, true}},
          {{type({5, 3}), type({7, 5})}, MatmulAttributes{true, true}},
          {{type({2, 3, 5}), type({7, 5})}, MatmulAttributes{false, true}},
          {{type({2, 2, 3, 5}), type({2, 2, 5, 4})}, MatmulAttributes{}},
          {{type({2, 5, 3}), type({2, 4, 5})}, MatmulAttributes{true, true}}};
}

}  // namespace

const OpDef kMatmul{
    .name = "matmul",
    .traits = {.product = true},
    .infer = infer,
    .gradient = gradient,
    .evaluate = evaluate,
    .parse_attributes = &parse_attributes<MatmulAttributes>,
    .examples = examples,
};

ValueId matmul(Builder& builder, ValueId a, ValueId b, MatmulAttributes attributes) {
  return builder.add(kMatmul, {a, b}, attributes);
}

}  // namespace ingot
