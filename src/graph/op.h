// What an op is: its name, its traits (data that passes ask for, so that no pass names ops), the rule for its output
// types, its gradient (which builds nodes) and its reference evaluation in double precision. ops/ has one pair of files
// for each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace ingot {

class Builder;  // graph/builder.h

// A part of a tensor: elements from `start` on along `axis`.
struct PartOf {
  int64_t axis = 0;
  int64_t start = 0;
};

struct OpTraits {
  // Output and inputs have one shape up to broadcasting, and each output element depends on the inputs' elements at its
  // place alone.
  bool elementwise = false;
  bool commutative = false;
  // Output 0 is the same bytes as input 0, under another shape.
  bool view = false;
  // Output i is a part of input 0 (slice, split): which one.
  std::optional<PartOf (*)(const Attributes& attributes, int32_t output)> part = {};
  // Output 0 is the inputs one behind the other along an axis (concat): which axis.
  std::optional<int64_t (*)(const Attributes& attributes)> join = {};
  // The last outputs, so many of them, are kept for the gradient alone: no gradient flows back from them.
  int32_t saved_outputs = 0;
  // Draws random numbers (its attributes name the stream, so equal nodes draw equal numbers).
  bool random = false;
  // Output i may be written over the memory of input in_place[i] where nothing reads that input later. kNone: never.
  std::vector<int32_t> in_place = {};
  // Its time goes into products of matrices: too dear to be computed twice if it can be kept instead.
  bool product = false;
  // Made by a pass, never by a model; its gradient is that of what it stands for.
  bool fused = false;
  // Worth evaluating at compile time when all its inputs are constants.
  bool foldable = true;
};

// A tensor of the reference evaluation: every dtype is held in double, which is exact for all integers that occur.
struct RefTensor {
  Shape shape;
  std::vector<double> data;
};

// What random ops draw from, see base/rng.h: numbers depend on seed, stream, step and on the element's place in the
// global batch; the first row of this batch is the global sequence `first_sequence`.
struct RandomState {
  uint64_t seed = 0;
  uint64_t step = 0;
  int64_t first_sequence = 0;
  int64_t batch =
      1;  // sequences in this batch: an element's global index is first_sequence * (elements / batch) + its own

  bool operator==(const RandomState&) const = default;
};

struct EvalContext {
  const Graph& graph;
  const Node& node;
  std::span<const RefTensor* const> inputs;
  std::span<RefTensor> outputs;  // shapes are set and data is zero
  const RandomState& random;
};

struct GradientContext {
  Builder& builder;
  NodeId node;
  std::span<const ValueId> output_gradients;  // kNone: nothing flows back from that output
  std::vector<ValueId> input_gradients;       // to be set; kNone: none flows to that input

  const Node& op_node() const;
  ValueId input(size_t i) const { return op_node().inputs[i]; }
  ValueId output(size_t i) const { return op_node().outputs[i]; }
};

// An input for the automatic test of an op: its gradient against finite differences, its kernel against its reference.
struct OpExample {
  std::vector<Type> inputs;
  Attributes attributes;
  std::vector<std::vector<double>> values = {};  // for inputs that must not be random (indices, masks); empty: random
  double low = -1.0, high = 1.0;                 // the range of random values
};

struct OpDef {
  std::string_view name;
  OpTraits traits = {};
  // Types of the outputs, or what is wrong with the inputs.
  Result<std::vector<Type>> (*infer)(std::span<const Type> inputs, const Attributes& attributes) = nullptr;
  // nullptr: gradients stop here (integers, indices, ops that are gradients themselves).
  void (*gradient)(GradientContext& context) = nullptr;
  void (*evaluate)(const EvalContext& context) = nullptr;
  Result<Attributes> (*parse_attributes)(AttributeReader& in) = &ingot::parse_attributes<NoAttributes>;
  // At least one; odd shapes, every attribute's alternatives.
  std::vector<OpExample> (*examples)() = nullptr;
};

// Finds an op by name; what the parser and passes use. ops/registry.h makes the one that knows every op.
using OpLookup = std::function<const OpDef*(std::string_view)>;

}  // namespace ingot
