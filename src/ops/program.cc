#include "ops/program.h"

#include "ops/elementwise.h"
#include "ops/interpret.h"
#include "ops/registry.h"

namespace ingot {
namespace {

// Reads the instruction's own text, which must outlive it.
AttributeReader reader_of(const ProgramInstruction& instruction) {
  return AttributeReader(instruction.attributes.empty() ? std::string_view("{}") : instruction.attributes);
}

Result<Type> infer_instruction(const ProgramInstruction& instruction, std::span<const Type> registers) {
  const OpDef* op = find_op(instruction.op);
  if (op == nullptr || !op->traits.elementwise) return failed_error("\"{}\" is no elementwise op", instruction.op);
  std::vector<Type> types;
  for (int64_t input : instruction.inputs) {
    if (input < 0 || input >= static_cast<int64_t>(registers.size()))
      return failed_error("{} reads register {} of {}", instruction.op, input, registers.size());
    types.push_back(registers[static_cast<size_t>(input)]);
  }
  AttributeReader in = reader_of(instruction);
  INGOT_ASSIGN(const Attributes attributes, op->parse_attributes(in));
  INGOT_ASSIGN(const std::vector<Type> result, op->infer(types, attributes));
  if (result.size() != 1) return failed_error("{} has {} results", instruction.op, result.size());
  return result[0];
}

}  // namespace

Attributes instruction_attributes(const ProgramInstruction& instruction) {
  const OpDef* op = find_op(instruction.op);
  INGOT_CHECK(op != nullptr, "no op named {}", instruction.op);
  AttributeReader in = reader_of(instruction);
  auto attributes = op->parse_attributes(in);
  INGOT_CHECK(attributes.ok(), "{}", attributes.error().message);
  return std::move(attributes).value();
}

Result<std::vector<Type>> infer_program(const Program& program, std::span<const Type> inputs) {
  std::vector<Type> registers(inputs.begin(), inputs.end());
  for (const ProgramInstruction& instruction : program) {
    INGOT_ASSIGN(Type type, infer_instruction(instruction, registers));
    registers.push_back(type);
  }
  return registers;
}

Status check_program_outputs(const Program& program, size_t inputs, std::span<const int64_t> outputs) {
  const auto registers = static_cast<int64_t>(inputs + program.size());
  if (outputs.empty()) return failed_error("a program without outputs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] < 0 || outputs[i] >= registers)
      return failed_error("output register {} of {}", outputs[i], registers);
    for (size_t k = 0; k < i; ++k)
      if (outputs[k] == outputs[i]) return failed_error("register {} is an output twice", outputs[i]);
  }
  return {};
}

RefTensor broadcast_reference(const RefTensor& in, const Shape& shape) {
  if (in.shape == shape) return in;
  RefTensor out{shape, std::vector<double>(static_cast<size_t>(shape.elements()))};
  const BroadcastIndex from(in.shape, shape);
  for (int64_t i = 0; i < shape.elements(); ++i)
    out.data[static_cast<size_t>(i)] = in.data[static_cast<size_t>(from(i))];
  return out;
}

std::vector<RefTensor> evaluate_program(const Program& program, std::span<const Type> input_types,
                                        std::vector<RefTensor> inputs, const RandomState& random) {
  const auto types = infer_program(program, input_types);
  INGOT_CHECK(types.ok(), "{}", types.error().message);
  std::vector<RefTensor> registers = std::move(inputs);
  for (const ProgramInstruction& instruction : program) {
    std::vector<Type> from_types;
    std::vector<RefTensor> from;
    for (int64_t input : instruction.inputs) {
      from_types.push_back((*types)[static_cast<size_t>(input)]);
      from.push_back(registers[static_cast<size_t>(input)]);
    }
    auto results = evaluate_op(*find_op(instruction.op), instruction_attributes(instruction), from_types, from, random);
    registers.push_back(std::move(results[0]));
  }
  return registers;
}

}  // namespace ingot
