// An elementwise program: what several elementwise ops compute together, as data. Fused ops hold one as an attribute.
//
// Registers are numbered: first the op's inputs, all broadcast to one shape, then one for the result of each
// instruction. An instruction is any registered op with the trait `elementwise`; a new one needs no change here.
#pragma once

#include "graph/op.h"

namespace ingot {

struct ProgramInstruction {
  std::string op;               // "add"
  std::vector<int64_t> inputs;  // registers before this instruction's own
  std::string attributes;       // as the op prints them: "{factor=0.5}"
  static constexpr auto fields =
      std::tuple(field("op", &ProgramInstruction::op), field("inputs", &ProgramInstruction::inputs),
                 field("attributes", &ProgramInstruction::attributes));
  bool operator==(const ProgramInstruction&) const = default;
};
using Program = std::vector<ProgramInstruction>;

// The types of all registers, given those of the inputs (already broadcast: of one shape), or what is wrong.
Result<std::vector<Type>> infer_program(const Program& program, std::span<const Type> inputs);

// Whether each number names a register and none is listed twice.
Status check_program_outputs(const Program& program, size_t inputs, std::span<const int64_t> outputs);

// All registers by the ops' own reference evaluation; `inputs` are of one shape.
std::vector<RefTensor> evaluate_program(const Program& program, std::span<const Type> input_types,
                                        std::vector<RefTensor> inputs, const RandomState& random);

// `in` repeated to `shape`, as elementwise ops do with an input that is smaller.
RefTensor broadcast_reference(const RefTensor& in, const Shape& shape);

// Attributes of an instruction, parsed. The text must be one that its op printed.
Attributes instruction_attributes(const ProgramInstruction& instruction);

}  // namespace ingot
