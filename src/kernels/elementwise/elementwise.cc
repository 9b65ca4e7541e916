#include "kernels/elementwise/elementwise.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/elementwise/elementwise_plan.h"
#include "kernels/layout/layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/elementwise.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/elementwise/activation-inl.h"
#include "kernels/elementwise/dropout-inl.h"
#include "kernels/layout/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// The operands of one instruction on one chunk of n adjacent elements.
struct EwOperands {
  const float* a;
  const float* b;
  float* dst;
  int64_t n;
  float imm;
};

template <class Function>
HWY_INLINE void unary(const EwOperands& o, Function function) {
  const float* a = o.a;  // copies: the compiler must take vector stores to change what is read through a reference
  float* dst = o.dst;
  for_vectors(o.n, [&](int64_t i, auto access) HWY_ATTR { access.store(function(access.load(a + i)), dst + i); });
}
template <class Function>
HWY_INLINE void binary(const EwOperands& o, Function function) {
  for_vectors(o.n, [&](int64_t i, auto access)
                       HWY_ATTR { access.store(function(access.load(o.a + i), access.load(o.b + i)), o.dst + i); });
}
template <class Activation>
HWY_NOINLINE void activation(const EwOperands& o) {
  unary(o, [](FloatVec x) HWY_ATTR { return Activation::value(x); });
}
template <class Activation>
HWY_NOINLINE void activation_grad(const EwOperands& o) {
  binary(o, [](FloatVec x, FloatVec dy) HWY_ATTR {
    FloatVec value, slope;
    Activation::value_and_slope(x, value, slope);
    return hn::Mul(dy, slope);
  });
}

HWY_NOINLINE void unary_op(EwOp op, const EwOperands& o) {
  const FloatVec imm = set(o.imm);
  switch (op) {
    case EwOp::neg:
      return unary(o, [](FloatVec x) HWY_ATTR { return hn::Neg(x); });
    case EwOp::abs:
      return unary(o, [](FloatVec x) HWY_ATTR { return hn::Abs(x); });
    case EwOp::scale:
      return unary(o, [&](FloatVec x) HWY_ATTR { return hn::Mul(x, imm); });
    case EwOp::add_scalar:
      return unary(o, [&](FloatVec x) HWY_ATTR { return hn::Add(x, imm); });
    case EwOp::square:
      return unary(o, [](FloatVec x) HWY_ATTR { return hn::Mul(x, x); });
    case EwOp::sqrt:
      return unary(o, [](FloatVec x) HWY_ATTR { return hn::Sqrt(x); });
    case EwOp::rsqrt:
      return unary(o, [](FloatVec x) HWY_ATTR { return hn::Div(set(1.0f), hn::Sqrt(x)); });
    case EwOp::reciprocal:
      return unary(o, [](FloatVec x) HWY_ATTR { return hn::Div(set(1.0f), x); });
    case EwOp::exp:
      return unary(o, [](FloatVec x) HWY_ATTR { return vector_exp(x); });
    case EwOp::log:
      return unary(o, [](FloatVec x) HWY_ATTR { return vector_log(x); });
    case EwOp::erf:
      return unary(o, [](FloatVec x) HWY_ATTR { return vector_erf(x); });
    case EwOp::relu:
      return unary(o, [](FloatVec x) HWY_ATTR { return Relu::value(x); });
    case EwOp::round_bf16:
      return unary(o, [](FloatVec x) HWY_ATTR { return float_of_bf16(bf16_of(x)); });
    case EwOp::round_f16:
      return unary(o, [](FloatVec x) HWY_ATTR { return float_of_f16(f16_of(x)); });
    case EwOp::constant:
      return for_vectors(o.n, [&](int64_t i, auto to) HWY_ATTR { to.store(imm, o.dst + i); });
    case EwOp::tanh:
      return activation<Tanh>(o);
    case EwOp::sigmoid:
      return activation<Sigmoid>(o);
    case EwOp::gelu:
      return activation<Gelu>(o);
    case EwOp::gelu_tanh:
      return activation<GeluTanh>(o);
    case EwOp::silu:
      return activation<Silu>(o);
    default:
      return unary(o, [](FloatVec x) HWY_ATTR { return x; });
  }
}

HWY_NOINLINE void binary_op(EwOp op, const EwOperands& o) {
  switch (op) {
    case EwOp::add:
      return binary(o, [](FloatVec a, FloatVec b) HWY_ATTR { return hn::Add(a, b); });
    case EwOp::sub:
      return binary(o, [](FloatVec a, FloatVec b) HWY_ATTR { return hn::Sub(a, b); });
    case EwOp::mul:
      return binary(o, [](FloatVec a, FloatVec b) HWY_ATTR { return hn::Mul(a, b); });
    case EwOp::div:
      return binary(o, [](FloatVec a, FloatVec b) HWY_ATTR { return hn::Div(a, b); });
    case EwOp::max:
      return binary(o, [](FloatVec a, FloatVec b) HWY_ATTR { return nan_kept(a, hn::IfThenElse(hn::Gt(a, b), a, b)); });
    case EwOp::min:
      return binary(o, [](FloatVec a, FloatVec b) HWY_ATTR { return nan_kept(a, hn::IfThenElse(hn::Lt(a, b), a, b)); });
    case EwOp::greater:
      return binary(o, [](FloatVec a, FloatVec b) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(a, b), set(1.0f)); });
    case EwOp::relu_grad:
      return binary(o, [](FloatVec x, FloatVec dy)
                           HWY_ATTR { return hn::IfThenElse(hn::Le(x, hn::Zero(kFloat)), hn::Zero(kFloat), dy); });
    case EwOp::gelu_grad:
      return activation_grad<Gelu>(o);
    case EwOp::gelu_tanh_grad:
      return activation_grad<GeluTanh>(o);
    case EwOp::silu_grad:
      return activation_grad<Silu>(o);
    case EwOp::sigmoid_grad:
      return activation_grad<Sigmoid>(o);
    default:
      return activation_grad<Tanh>(o);
  }
}

// The elements of one chunk that have adjacent indices in the stream; o.imm is the probability to drop.
HWY_NOINLINE void dropout_op(const EwOperands& o, const EwStream& stream, int64_t first) {
  HWY_ALIGN uint32_t buffer[kDropoutBits];
  const FloatVec p = set(o.imm), scale = set(1.0f / (1.0f - o.imm));
  for (int64_t begin = 0; begin < o.n; begin += kDropoutChunk) {
    const int64_t count = std::min(kDropoutChunk, o.n - begin);
    const uint32_t* bits = draw_bits(stream.key, stream.counter, first + begin, count, buffer);
    const float* a = o.a + begin;
    float* dst = o.dst + begin;
    for_vectors(count, [&](int64_t i, auto access)
                           HWY_ATTR { access.store(apply_dropout(access.load(a + i), bits + i, p, scale), dst + i); });
  }
}

void run_instruction(const EwInstruction& instruction, const EwBlock& block, const EwStream* stream, const float* a,
                     const float* b, float* dst) {
  const EwOperands operands{a, b, dst, block.elements(), instruction.imm};
  if (instruction.op != EwOp::dropout) {
    return operands_of(instruction.op) == 2 ? binary_op(instruction.op, operands) : unary_op(instruction.op, operands);
  }
  const int64_t first = stream->first + block.row * stream->row_length + block.column;
  if (block.columns == stream->row_length) return dropout_op(operands, *stream, first);
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t at = r * block.columns;
    dropout_op({a + at, nullptr, dst + at, block.columns, instruction.imm}, *stream, first + r * stream->row_length);
  }
}

void run_blocks(const EwPlan& plan, const EwTile& tile) {
  for_blocks(plan, tile, [&](const EwBlock& block) {
    ask_for_rows_after(plan, block);
    EwRegisters registers(plan, block);
    for (size_t k = 0; k < plan.program->instructions.size(); ++k) {
      const EwInstruction& instruction = plan.program->instructions[k];
      const float* a = registers[instruction.a];
      const float* b = registers[instruction.b];
      const EwStream* stream = instruction.op == EwOp::dropout ? &plan.program->streams[instruction.stream] : nullptr;
      run_instruction(instruction, block, stream, a, b, registers.destination(k));
    }
    registers.finish();
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(run_blocks);
}  // namespace

void run_elementwise(const EwProgram& program, const EwTile& tile, float* scratch) {
  if (tile.row_begin >= tile.row_end || tile.column_begin >= tile.column_end) return;
  const EwPlan plan = plan_elementwise(program, tile, scratch);
  HWY_DYNAMIC_DISPATCH(run_blocks)(plan, plan.tile);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
