#include "kernels/elementwise/elementwise_plan.h"

#include "base/check.h"
#include "kernels/layout/layout.h"

namespace ingot::kernels {
namespace {

// A block's registers together should leave room in a 48 KiB L1 for the operands that are read in place.
constexpr int64_t kBlockFloats = 6144;
constexpr int64_t kMaxChunk = 1024, kMinChunk = 256;
// Keeps registers off the same cache sets and off one another's 4 KiB aliases.
constexpr int64_t kPitchPadding = 48;

int64_t chunk_of(int registers) {
  return std::clamp(kBlockFloats / std::max(registers, 1) / 64 * 64, kMinChunk, kMaxChunk);
}

int64_t offset_of(const EwInput& input, int64_t row, int64_t column) {
  return (row - input.row_origin) * input.row_stride + (column - input.column_origin) * input.column_stride;
}
int64_t offset_of(const EwOutput& output, int64_t row, int64_t column) {
  return (row - output.row_origin) * output.row_stride + (column - output.column_origin);
}

const std::byte* address(const EwInput& input, int64_t row, int64_t column) {
  return static_cast<const std::byte*>(input.data) +
         offset_of(input, row, column) * static_cast<int64_t>(size_of(input.dtype));
}
std::byte* address(const EwOutput& output, int64_t row, int64_t column) {
  return static_cast<std::byte*>(output.data) +
         offset_of(output, row, column) * static_cast<int64_t>(size_of(output.dtype));
}

// n adjacent elements of an input as floats.
void widen(const EwInput& input, const std::byte* from, int64_t n, float* to) {
  cast(from, input.dtype, to, DType::f32, n);
}

bool is_scalar(const EwInput& input) {
  return input.row_stride == 0 && input.column_stride == 0;
}
bool is_row(const EwInput& input) {
  return input.row_stride == 0 && input.column_stride == 1;
}

void check_program(const EwProgram& program) {
  const size_t inputs = program.inputs.size();
  INGOT_CHECK(inputs <= kMaxEwRegisters, "{} inputs, at most {}", inputs, kMaxEwRegisters);
  INGOT_CHECK(program.outputs.size() <= kMaxEwOutputs, "{} outputs, at most {}", program.outputs.size(), kMaxEwOutputs);
  for (const EwInstruction& i : program.instructions) {
    INGOT_CHECK(i.dst >= inputs && i.dst < kMaxEwRegisters, "register {} written; inputs are below {}, all below {}",
                i.dst, inputs, kMaxEwRegisters);
    INGOT_CHECK(i.a < kMaxEwRegisters && i.b < kMaxEwRegisters, "registers {} and {} read, of {}", i.a, i.b,
                kMaxEwRegisters);
    INGOT_CHECK(i.op != EwOp::dropout || i.stream < program.streams.size(), "stream {} of {}", i.stream,
                program.streams.size());
  }
  for (const EwOutput& o : program.outputs) INGOT_CHECK(o.reg < kMaxEwRegisters, "output of register {}", o.reg);
}

bool can_flatten(const EwProgram& program, const EwTile& tile) {
  const int64_t columns = tile.column_end - tile.column_begin;
  if (tile.column_begin != 0) return false;
  for (const EwInput& i : program.inputs) {
    const bool dense = i.row_stride == columns && i.column_stride == 1 && i.column_origin == 0;
    if (!dense && !is_scalar(i)) return false;
  }
  for (const EwOutput& o : program.outputs) {
    if (o.row_stride != columns || o.column_origin != 0) return false;
  }
  for (const EwStream& s : program.streams) {
    if (s.row_length != columns) return false;
  }
  return true;
}

bool reads(const EwInstruction& instruction, uint16_t reg) {
  const int operands = operands_of(instruction.op);
  return (operands >= 1 && instruction.a == reg) || (operands == 2 && instruction.b == reg);
}

// Whether memory of input `reg` is read after instruction k.
bool read_later(const EwProgram& program, uint16_t reg, size_t k) {
  for (size_t later = k + 1; later < program.instructions.size(); ++later) {
    if (reads(program.instructions[later], reg)) return true;
  }
  return std::any_of(program.outputs.begin(), program.outputs.end(), [&](const EwOutput& o) { return o.reg == reg; });
}

int32_t direct_writer(const EwPlan& plan, const EwOutput& output) {
  const EwProgram& program = *plan.program;
  const EwTile& tile = plan.tile;
  if (output.dtype != DType::f32) return -1;
  if (plan.block_rows > 1 && output.row_stride != tile.column_end - tile.column_begin) return -1;
  for (size_t k = program.instructions.size(); k-- > 0;) {
    if (program.instructions[k].dst != output.reg) continue;
    const std::byte* corner = address(output, tile.row_begin, tile.column_begin);
    for (size_t j = 0; j < program.inputs.size(); ++j) {
      const EwInput& input = program.inputs[j];
      const bool aliased = address(input, tile.row_begin, tile.column_begin) == corner;
      if (aliased && read_later(program, static_cast<uint16_t>(j), k)) return -1;
    }
    return static_cast<int32_t>(k);
  }
  return -1;  // an input is the output
}

void fill_constant_registers(const EwPlan& plan) {
  const EwTile& tile = plan.tile;
  const int64_t columns = tile.column_end - tile.column_begin;
  for (size_t j = 0; j < plan.program->inputs.size(); ++j) {
    const EwInput& input = plan.program->inputs[j];
    float* reg = plan.scratch + static_cast<int64_t>(j) * plan.pitch;
    if (is_scalar(input)) {
      float value = 0;
      widen(input, static_cast<const std::byte*>(input.data), 1, &value);
      std::fill_n(reg, std::min(plan.chunk, columns * (tile.row_end - tile.row_begin)), value);
    } else if (is_row(input) && plan.block_rows > 1) {
      const std::byte* from = address(input, tile.row_begin, tile.column_begin);
      for (int64_t r = 0; r < plan.block_rows; ++r) widen(input, from, columns, reg + r * columns);
    }
  }
}

// A block's elements of a broadcast or strided input, packed.
void gather(const EwInput& input, const EwBlock& block, float* to) {
  for (int64_t r = 0; r < block.rows; ++r, to += block.columns) {
    const std::byte* from = address(input, block.row + r, block.column);
    if (input.column_stride == 1) {
      widen(input, from, block.columns, to);
    } else if (input.column_stride == 0) {
      widen(input, from, 1, to);
      std::fill_n(to + 1, block.columns - 1, *to);
    } else {
      const int64_t step = input.column_stride * static_cast<int64_t>(size_of(input.dtype));
      for (int64_t c = 0; c < block.columns; ++c) widen(input, from + c * step, 1, to + c);
    }
  }
}

void ask_for(const std::byte* from, int64_t bytes, bool to_write) {
  constexpr int64_t kLine = 64;
  for (int64_t at = 0; at < bytes; at += kLine) {
    if (to_write)
      __builtin_prefetch(from + at, 1);
    else
      __builtin_prefetch(from + at, 0);
  }
}

}  // namespace

void ask_for_rows_after(const EwPlan& plan, const EwBlock& block) {
  constexpr int64_t kBlocksAhead = 3;
  const int64_t begin = block.row + kBlocksAhead * block.rows, end = std::min(begin + block.rows, plan.tile.row_end);
  const auto ask = [&](const auto& operand, bool to_write) {
    for (int64_t row = begin; row < end; ++row)
      ask_for(address(operand, row, block.column), block.columns * static_cast<int64_t>(size_of(operand.dtype)),
              to_write);
  };
  for (const EwInput& input : plan.program->inputs)
    if (input.column_stride == 1 && input.row_stride > block.columns) ask(input, false);
  for (const EwOutput& output : plan.program->outputs)
    if (output.row_stride > block.columns) ask(output, true);
}

std::string_view name_of(EwOp op) {
  static constexpr std::string_view kNames[] = {
#define INGOT_EW_NAME(name, operands) #name,
      INGOT_ELEMENTWISE_OPS(INGOT_EW_NAME)
#undef INGOT_EW_NAME
  };
  return kNames[static_cast<size_t>(op)];
}

int operands_of(EwOp op) {
  static constexpr int kOperands[] = {
#define INGOT_EW_OPERANDS(name, operands) operands,
      INGOT_ELEMENTWISE_OPS(INGOT_EW_OPERANDS)
#undef INGOT_EW_OPERANDS
  };
  return kOperands[static_cast<size_t>(op)];
}

int registers_of(const EwProgram& program) {
  int registers = static_cast<int>(program.inputs.size());
  for (const EwInstruction& i : program.instructions) registers = std::max(registers, i.dst + 1);
  return registers;
}

int64_t elementwise_scratch_floats(int registers) {
  return registers * (chunk_of(registers) + kPitchPadding);
}

EwPlan plan_elementwise(const EwProgram& program, const EwTile& tile, float* scratch) {
  check_program(program);
  EwPlan plan;
  plan.program = &program;
  plan.tile = tile;
  plan.scratch = scratch;
  plan.chunk = chunk_of(registers_of(program));
  plan.pitch = plan.chunk + kPitchPadding;
  const int64_t columns = tile.column_end - tile.column_begin;
  if (can_flatten(program, tile)) {
    plan.tile = {0, 1, tile.row_begin * columns, tile.row_end * columns};
  } else if (columns <= plan.chunk / 2) {
    plan.block_rows = std::min(plan.chunk / columns, tile.row_end - tile.row_begin);
  }
  for (size_t o = 0; o < program.outputs.size(); ++o) plan.direct[o] = direct_writer(plan, program.outputs[o]);
  fill_constant_registers(plan);
  return plan;
}

EwRegisters::EwRegisters(const EwPlan& plan, const EwBlock& block) : plan_(plan), block_(block), pointers_() {
  const EwProgram& program = *plan.program;
  for (size_t j = 0; j < program.inputs.size(); ++j) {
    const EwInput& input = program.inputs[j];
    float* reg = plan.scratch + static_cast<int64_t>(j) * plan.pitch;
    pointers_[j] = reg;
    if (is_scalar(input) || (is_row(input) && plan.block_rows > 1)) continue;
    const bool dense = input.column_stride == 1 && (block.rows == 1 || input.row_stride == block.columns);
    if (dense && input.dtype == DType::f32) {
      pointers_[j] = reinterpret_cast<const float*>(address(input, block.row, block.column));
    } else if (dense) {
      widen(input, address(input, block.row, block.column), block.elements(), reg);
    } else {
      gather(input, block, reg);
    }
  }
}

float* EwRegisters::destination(size_t k) {
  const EwProgram& program = *plan_.program;
  const uint16_t reg = program.instructions[k].dst;
  float* to = plan_.scratch + reg * plan_.pitch;
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    if (plan_.direct[o] != static_cast<int32_t>(k)) continue;
    to = reinterpret_cast<float*>(address(program.outputs[o], block_.row, block_.column));
    break;
  }
  pointers_[reg] = to;
  return to;
}

void EwRegisters::finish() const {
  const EwProgram& program = *plan_.program;
  const auto write = [&](size_t o) {
    const EwOutput& output = program.outputs[o];
    const float* from = pointers_[output.reg];
    for (int64_t r = 0; r < block_.rows; ++r, from += block_.columns) {
      std::byte* to = address(output, block_.row + r, block_.column);
      if (to != reinterpret_cast<const std::byte*>(from)) cast(from, DType::f32, to, output.dtype, block_.columns);
    }
  };
  // Outputs that are inputs go first: another output may overwrite that input's memory.
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    if (program.outputs[o].reg < program.inputs.size()) write(o);
  }
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    if (program.outputs[o].reg >= program.inputs.size()) write(o);
  }
}

}  // namespace ingot::kernels
