#include "passes/fuse_shared_input.h"

#include <algorithm>
#include <map>

#include "ops/add.h"
#include "ops/attention.h"
#include "ops/concat.h"
#include "ops/matmul.h"
#include "ops/split.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

constexpr std::string_view kPattern = "shared_input";

struct Product {
  NodeId matmul = kNone;
  NodeId bias_add = kNone;  // the only reader of the product, where that adds a parameter [n]
  ValueId bias = kNone;
  int64_t rank = 0;  // where its part should lie among the others

  NodeId last() const { return bias_add == kNone ? matmul : bias_add; }
};

void find_bias(const Rewriter& rewriter, Product& product) {
  const ValueId value = rewriter.node(product.matmul).outputs[0];
  const NodeId add = rewriter.only_reader(value);
  if (!rewriter.is(add, kAdd)) return;
  const auto& inputs = rewriter.node(add).inputs;
  const ValueId bias = inputs[0] == value ? inputs[1] : inputs[0];
  if (rewriter.parameter(bias) == nullptr || rewriter.readers(bias).size() != 1) return;
  if (!(rewriter.shape(bias) == Shape{rewriter.shape(value)[-1]})) return;
  product.bias_add = add;
  product.bias = bias;
}

// Which operand of an attention a value becomes, through ops that only it feeds into; -1: none.
int64_t attention_operand(const Rewriter& rewriter, ValueId value) {
  for (int steps = 0; steps < 8; ++steps) {
    const NodeId reader = rewriter.only_reader(value);
    if (reader == kNone) return -1;
    const Node& node = rewriter.node(reader);
    if (rewriter.is(reader, kAttention)) return std::ranges::find(node.inputs, value) - node.inputs.begin();
    value = node.outputs[0];
  }
  return -1;
}

// Queries, keys, values; or the gate (what an activation reads) before what it gates. Else as they run.
int64_t rank_of(const Rewriter& rewriter, NodeId last) {
  const ValueId value = rewriter.node(last).outputs[0];
  if (const int64_t operand = attention_operand(rewriter, value); operand >= 0) return operand;
  const NodeId reader = rewriter.only_reader(value);
  if (reader == kNone) return 1;
  const Node& node = rewriter.node(reader);
  return node.op->traits.elementwise && node.inputs.size() == 1 ? 0 : 1;
}

// Why a product cannot be joined with others; empty where it can.
std::string problem_with(const Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  const ValueId w = node.inputs[1];
  const Source* weight = rewriter.parameter(w);
  if (weight == nullptr) return "a weight is computed";
  if (rewriter.readers(w).size() != 1 || rewriter.escapes(w)) return fmt::format("{} is read elsewhere", weight->name);
  if (!node.attributes.as<MatmulAttributes>().transpose_b)
    return fmt::format("{} lies [in, out]: joined weights would have to be copied", weight->name);
  return "";
}

struct Group {
  std::vector<Product> products;
  std::string problem;
};

// The products of each value that more than one product reads, in the order of the first.
std::vector<Group> find_groups(const Rewriter& rewriter) {
  std::vector<Group> groups;
  std::map<ValueId, size_t> of_input;
  for (NodeId id : rewriter.schedule()) {
    if (!rewriter.is(id, kMatmul)) continue;
    const Node& node = rewriter.node(id);
    const bool linear = rewriter.shape(node.inputs[1]).rank() == 2 && rewriter.producer(node.inputs[1]) == kNone &&
                        !node.attributes.as<MatmulAttributes>().transpose_a;
    if (!linear) continue;
    const auto [known, fresh] = of_input.emplace(node.inputs[0], groups.size());
    if (fresh) groups.emplace_back();
    Group& group = groups[known->second];
    group.products.push_back({id});
    if (group.problem.empty()) group.problem = problem_with(rewriter, id);
  }
  std::erase_if(groups, [](const Group& group) { return group.products.size() < 2; });
  return groups;
}

void rewrite(Rewriter& rewriter, std::vector<Product> products) {
  for (Product& product : products) {
    find_bias(rewriter, product);
    product.rank = rank_of(rewriter, product.last());
  }
  const NodeId at = products[0].matmul;
  const bool biases = std::ranges::all_of(products, [](const Product& p) { return p.bias != kNone; });
  std::ranges::stable_sort(products, {}, &Product::rank);
  std::vector<ValueId> weights, bias_values;
  SplitAttributes parts;
  for (const Product& product : products) {
    const Node& node = rewriter.node(product.matmul);
    weights.push_back(node.inputs[1]);
    bias_values.push_back(product.bias);
    parts.sizes.push_back(rewriter.shape(node.outputs[0])[-1]);
    parts.axis = rewriter.shape(node.outputs[0]).rank() - 1;
  }
  const ValueId weight = rewriter.insert_value(kConcat, weights, ConcatAttributes{0}, at);
  const ValueId x = rewriter.node(at).inputs[0];
  ValueId joined = rewriter.insert_value(kMatmul, {x, weight}, MatmulAttributes{false, true}, at);
  if (biases)
    joined = rewriter.insert_value(kAdd, {joined, rewriter.insert_value(kConcat, bias_values, ConcatAttributes{0}, at)},
                                   {}, at);
  const NodeId split = rewriter.insert(kSplit, {joined}, parts, at);
  for (size_t i = 0; i < products.size(); ++i) {
    const NodeId old = biases ? products[i].last() : products[i].matmul;
    rewriter.replace(rewriter.node(old).outputs[0], rewriter.node(split).outputs[i]);
  }
}

}  // namespace

bool fuse_shared_input(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (const Group& group : find_groups(rewriter)) {
    const std::string path = rewriter.node(group.products[0].matmul).path;
    if (!group.problem.empty()) {
      context.missed(kPattern, path, group.problem);
      continue;
    }
    if (!context.allowed(kPattern, path)) continue;
    rewrite(rewriter, group.products);
    rewriter.refresh();
    context.applied(kPattern, path);
    changed = true;
  }
  return changed;
}

}  // namespace ingot
