#include "passes/region.h"

#include <algorithm>
#include <limits>

#include "ops/elementwise.h"

namespace ingot {
namespace {

// What one kernel call holds of registers and outputs.
constexpr size_t kMostRegisters = 48;
constexpr size_t kMostNodes = 32;

bool is_view(const Node& node) {
  return node.op->traits.view;
}

}  // namespace

void Region::add_base(ValueId value) {
  base_.push_back(value);
  held_.insert(value);
}

ValueId Region::resolve(ValueId value) const {
  for (ValueId at = value; !holds(at);) {
    const NodeId from = rewriter_.producer(at);
    if (from == kNone || !is_view(rewriter_.node(from))) return value;
    at = rewriter_.node(from).inputs[0];
    if (holds(at)) return at;
  }
  return value;
}

std::vector<NodeId> Region::readers_of(ValueId value) const {
  std::vector<NodeId> result;
  for (NodeId reader : rewriter_.readers(value)) {
    if (!is_view(rewriter_.node(reader))) {
      result.push_back(reader);
      continue;
    }
    const auto behind = readers_of(rewriter_.node(reader).outputs[0]);
    result.insert(result.end(), behind.begin(), behind.end());
  }
  return result;
}

bool Region::escapes(ValueId value) const {
  if (rewriter_.escapes(value)) return true;
  return std::ranges::any_of(rewriter_.readers(value), [&](NodeId reader) {
    return is_view(rewriter_.node(reader)) && escapes(rewriter_.node(reader).outputs[0]);
  });
}

// An input from outside: as large as the node's result, or repeated along axes that the region's shape has too.
bool Region::fits_as_input(ValueId value, const Shape& shape) const {
  const Shape& own = rewriter_.shape(value);
  if (own == shape || shape == shape_) return true;
  int rank = own.rank();
  while (rank > 0 && own[own.rank() - rank] == 1) --rank;
  if (rank > shape_.rank() || rank > shape.rank()) return false;
  for (int axis = 1; axis <= rank; ++axis)
    if (shape_[-axis] != shape[-axis]) return false;
  return true;
}

bool Region::fits(NodeId id) const {
  const Node& node = rewriter_.node(id);
  if (!node.op->traits.elementwise || node.outputs.size() != 1 || nodes_.size() >= kMostNodes) return false;
  const Shape& shape = rewriter_.shape(node.outputs[0]);
  if (shape.elements() != shape_.elements() || !is_float(rewriter_.type(node.outputs[0]).dtype)) return false;
  for (ValueId input : node.inputs) {
    if (rewriter_.type(input).packed_bytes > 0 || !is_float(rewriter_.type(input).dtype)) return false;
    if (holds(resolve(input)) ? !(rewriter_.shape(input) == shape) : !fits_as_input(input, shape)) return false;
  }
  return outside_inputs().size() + node.inputs.size() + base_.size() + nodes_.size() + 1 <= kMostRegisters;
}

// Whether the value depends on a value of the region.
bool Region::reaches(ValueId value) const {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (ValueId held : held_) first = std::min(first, rewriter_.position(rewriter_.producer(held)));
  std::vector<ValueId> stack{value};
  std::set<NodeId> seen;
  while (!stack.empty()) {
    const ValueId at = stack.back();
    stack.pop_back();
    if (holds(at)) return true;
    const NodeId from = rewriter_.producer(at);
    if (from == kNone || rewriter_.position(from) < first || !seen.insert(from).second) continue;
    for (ValueId input : rewriter_.node(from).inputs) stack.push_back(input);
  }
  return false;
}

// The inputs from outside are there before anything else reads a value of the region.
bool Region::in_time(NodeId id) const {
  int64_t first = std::numeric_limits<int64_t>::max();
  const auto look_at = [&](ValueId value) {
    for (NodeId reader : readers_of(value))
      if (reader != id && !holds_node(reader)) first = std::min(first, rewriter_.position(reader));
  };
  for (ValueId held : held_) look_at(held);
  look_at(rewriter_.node(id).outputs[0]);
  for (ValueId input : rewriter_.node(id).inputs) {
    if (holds(resolve(input))) continue;
    const NodeId from = rewriter_.producer(input);
    if (from == kNone) continue;
    if (rewriter_.position(from) >= first || reaches(input)) return false;
  }
  return true;
}

bool Region::only_read_by(ValueId value, NodeId id) const {
  const auto readers = readers_of(value);
  return !escapes(value) && std::ranges::all_of(readers, [&](NodeId r) { return r == id || holds_node(r); });
}

bool Region::worth_it(NodeId id) const {
  int64_t last = -1;
  for (ValueId held : held_) last = std::max(last, rewriter_.position(rewriter_.producer(held)));
  for (ValueId input : rewriter_.node(id).inputs) {
    const ValueId value = resolve(input);
    if (holds(value) && only_read_by(value, id)) return true;
  }
  // Near: nothing but other elementwise nodes and views runs between.
  for (int64_t place = last + 1; place < rewriter_.position(id); ++place) {
    const NodeId between = rewriter_.node_at(place);
    if (between == kNone) continue;
    const OpTraits& traits = rewriter_.node(between).op->traits;
    if (!traits.elementwise && !traits.view && !traits.part.has_value()) return false;
  }
  return true;
}

bool Region::try_take(NodeId id) {
  if (holds_node(id) || !fits(id)) return false;
  if (!held_.empty() && (!in_time(id) || !worth_it(id))) return false;
  nodes_.insert(id);
  held_.insert(rewriter_.node(id).outputs[0]);
  return true;
}

void Region::take_readers() {
  for (bool again = true; again;) {
    std::vector<NodeId> candidates;
    for (ValueId held : held_)
      for (NodeId reader : readers_of(held))
        if (!holds_node(reader)) candidates.push_back(reader);
    std::ranges::sort(candidates, {}, [&](NodeId id) { return std::pair(rewriter_.position(id), id); });
    again = std::ranges::any_of(candidates, [&](NodeId id) { return try_take(id); });
  }
}

void Region::take_sources() {
  for (bool again = true; again;) {
    again = false;
    for (ValueId input : outside_inputs()) {
      const NodeId from = rewriter_.producer(input);
      // Its value is not held, so what only the region reads is asked for here.
      if (from == kNone || holds_node(from) || !only_read_by(input, kNone) || !fits(from) || !in_time(from)) continue;
      nodes_.insert(from);
      held_.insert(input);
      again = true;
      break;
    }
  }
}

std::vector<ValueId> Region::outside_inputs() const {
  std::vector<ValueId> result;
  for (NodeId id : nodes_)
    for (ValueId input : rewriter_.node(id).inputs)
      if (!holds(resolve(input)) && std::ranges::find(result, input) == result.end()) result.push_back(input);
  return result;
}

Region::Parts Region::build(Rewriter& rewriter, NodeId at) const {
  std::vector<NodeId> order(nodes_.begin(), nodes_.end());
  std::ranges::sort(order, {}, [&](NodeId id) { return std::pair(rewriter_.position(id), id); });
  // What may be written over stands first, then what is as large as the region.
  std::vector<ValueId> inputs = outside_inputs();
  std::ranges::stable_sort(inputs, {}, [&](ValueId input) {
    if (rewriter_.shape(input).elements() != shape_.elements()) return 2;
    return rewriter_.producer(input) != kNone && only_read_by(input, kNone) ? 0 : 1;
  });

  Parts parts;
  std::map<ValueId, int64_t> registers;
  for (ValueId value : base_) registers.emplace(value, static_cast<int64_t>(registers.size()));
  for (ValueId input : inputs) {
    registers.emplace(input, static_cast<int64_t>(registers.size()));
    const bool whole = rewriter.shape(input).elements() == shape_.elements();
    parts.inputs.push_back(whole ? rewriter.reshaped(input, shape_, at) : input);
  }
  for (NodeId id : order) {
    const Node& node = rewriter.node(id);
    ProgramInstruction instruction{std::string(node.op->name), {}, node.attributes.to_string()};
    for (ValueId input : node.inputs) instruction.inputs.push_back(registers.at(resolve(input)));
    parts.program.push_back(std::move(instruction));
    registers.emplace(node.outputs[0], static_cast<int64_t>(registers.size()));
  }
  const auto output = [&](ValueId value) {
    if (only_read_by(value, kNone)) return;
    parts.outputs.push_back(registers.at(value));
    parts.values.push_back(value);
  };
  for (ValueId value : base_) output(value);
  for (NodeId id : order) output(rewriter.node(id).outputs[0]);
  return parts;
}

void Region::replace(Rewriter& rewriter, const Parts& parts, NodeId fused) {
  for (size_t i = 0; i < parts.values.size(); ++i) {
    const Shape shape = rewriter.shape(parts.values[i]);
    rewriter.replace(parts.values[i], rewriter.reshaped(rewriter.node(fused).outputs[i], shape, fused));
  }
}

}  // namespace ingot
