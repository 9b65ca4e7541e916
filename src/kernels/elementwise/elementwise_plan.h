// How a program meets memory: what an element-wise call decides once (chunk, which operands are read and written in
// place) and does for each chunk (broadcast copies, pointers). Instruction sets share it; it does no arithmetic.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/elementwise/elementwise.h"

namespace ingot::kernels {

// A chunk: `rows` whole stretches of `columns` elements, packed one after another in registers.
struct EwBlock {
  int64_t row = 0, column = 0;
  int64_t rows = 0, columns = 0;
  int64_t elements() const { return rows * columns; }
};

struct EwPlan {
  const EwProgram* program = nullptr;
  EwTile tile;        // flattened to one row where every operand allows it
  int64_t chunk = 0;  // elements of a block at most
  int64_t pitch = 0;  // floats from one register to the next in scratch
  int64_t block_rows = 1;
  float* scratch = nullptr;
  // For each output: the instruction that may write straight into it, or -1 where its register is copied at the end.
  std::array<int32_t, kMaxEwOutputs> direct{};
};

// Checks the program, decides, and fills the registers of broadcast inputs that stay the same for all blocks.
EwPlan plan_elementwise(const EwProgram& program, const EwTile& tile, float* scratch);

// Asks for the memory of rows some blocks ahead into the caches, where rows are too short and too far apart for the
// hardware to see them coming.
void ask_for_rows_after(const EwPlan& plan, const EwBlock& block);

// Where each register is during one block.
class EwRegisters {
 public:
  EwRegisters(const EwPlan& plan, const EwBlock& block);
  const float* operator[](uint16_t reg) const { return pointers_[reg]; }
  // Where instruction k writes. From then on its register is there.
  float* destination(size_t k);
  // Copies to the outputs that no instruction wrote.
  void finish() const;

 private:
  const EwPlan& plan_;
  const EwBlock& block_;
  std::array<const float*, kMaxEwRegisters> pointers_;
};

template <class Body>
void for_blocks(const EwPlan& plan, const EwTile& tile, Body body) {
  const int64_t columns = tile.column_end - tile.column_begin;
  const int64_t width = std::min(columns, plan.chunk);
  for (int64_t row = tile.row_begin; row < tile.row_end; row += plan.block_rows) {
    const int64_t rows = std::min(plan.block_rows, tile.row_end - row);
    for (int64_t column = tile.column_begin; column < tile.column_end; column += width) {
      body(EwBlock{row, column, rows, std::min(width, tile.column_end - column)});
    }
  }
}

}  // namespace ingot::kernels
