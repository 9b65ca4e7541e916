#include "passes/lower_precision.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "graph/storage.h"
#include "ops/cast.h"
#include "passes/rewriter.h"

namespace ingot {
namespace {

constexpr std::string_view kProducts[] = {"matmul", "matmul_add", "linear", "linear_cross_entropy",
                                          "linear_cross_entropy_grad"};
constexpr std::string_view kAttentions[] = {"attention", "attention_grad", "attention_packed", "attention_packed_grad"};
constexpr std::string_view kNorms[] = {"layer_norm", "layer_norm_grad", "rms_norm", "rms_norm_grad"};
constexpr std::string_view kStream[] = {"layer_norm", "layer_norm_grad", "rms_norm", "rms_norm_grad", "embedding_grad"};
constexpr std::string_view kActivations[] = {"gelu",    "gelu_grad", "gelu_tanh", "gelu_tanh_grad",
                                             "silu",    "silu_grad", "relu",      "relu_grad",
                                             "sigmoid", "glu",       "glu_grad"};
constexpr std::string_view kSoftmaxes[] = {"softmax", "softmax_grad"};
constexpr std::string_view kLosses[] = {"cross_entropy", "cross_entropy_grad"};

constexpr PrecisionKind kKinds[] = {
    {"matmul", "products of 16-bit operands, sums in fp32", false, true, "matmul", kProducts},
    {"attention", "products of 16-bit operands, softmax and sums in fp32", false, true, "attention", kAttentions},
    {"residual", "the stream between blocks and its gradient, as norms read it", false, true, "residual", kStream},
    {"activation", "fp32 on what is stored in 16 bits", true, true, "", kActivations},
    {"norm", "fp32 on the stream as it is stored; statistics stored in fp32", true, true, "residual", kNorms},
    {"softmax", "fp32, where it is not part of attention", true, false, "", kSoftmaxes},
    {"loss", "fp32, logits included", true, false, "", kLosses},
};

// Moves elements and computes nothing: what it gives is stored as what it reads.
bool only_moves(const Node& node) {
  const OpTraits& traits = node.op->traits;
  return traits.view || traits.part.has_value() || traits.join.has_value() || node.op->name == "transpose" ||
         node.op->name == "repeat_interleave" || node.op->name == "broadcast_to";
}

bool is_of(const Node& node, std::string_view kind) {
  const auto row = std::ranges::find(kKinds, kind, &PrecisionKind::name);
  return std::ranges::find(row->ops, node.op->name) != row->ops.end();
}

class Lowering {
 public:
  Lowering(Graph& graph, const MixedPrecision& precision) : rewriter_(graph), precision_(precision) {}

  bool run() {
    for (const NodeId id : rewriter_.schedule())
      for (const ValueId operand : narrow_operands(rewriter_.node(id))) find_roots(operand);
    if (roots_.empty()) return false;
    for (const ValueId root : order_) roots_[root] = narrowed(root);
    for (const NodeId id : rewriter_.schedule()) read_narrow(id);
    infer_again();
    widen_outputs();
    return true;
  }

 private:
  const PrecisionKind* lowered_kind(const Node& node) const {
    for (const PrecisionKind& kind : kKinds)
      if (std::ranges::find(kind.ops, node.op->name) != kind.ops.end())
        return reads_narrow(kind, precision_.fp32_ops) ? &kind : nullptr;
    return nullptr;
  }

  // What the node reads in 16 bits: tensors as large as what it works on, not statistics, scalars or a norm's weights.
  std::vector<ValueId> narrow_operands(const Node& node) const {
    const PrecisionKind* kind = lowered_kind(node);
    if (kind == nullptr) return {};
    const bool stream = kind->name == "residual";
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) {
      const Type& type = rewriter_.type(input);
      if (type.dtype != DType::f32 || type.packed_bytes > 0 || type.shape.rank() == 0 || is_statistic(input)) continue;
      if (stream && type.shape.rank() < 2) continue;
      operands.push_back(input);
    }
    return operands;
  }

  bool is_statistic(ValueId value) const {
    const NodeId from = rewriter_.producer(value);
    if (from == kNone) return false;
    const Node& node = rewriter_.node(from);
    return rewriter_.graph().value(value).output >=
           static_cast<int32_t>(node.outputs.size()) - node.op->traits.saved_outputs;
  }

  // What is rounded: the value behind whatever only moves its elements.
  void find_roots(ValueId value) {
    const NodeId from = rewriter_.producer(value);
    if (from != kNone && only_moves(rewriter_.node(from))) {
      for (const ValueId input : rewriter_.node(from).inputs) find_roots(input);
      return;
    }
    if (rewriter_.type(value).dtype == DType::f32 && roots_.emplace(value, kNone).second) order_.push_back(value);
  }

  ValueId narrowed(ValueId root) {
    if (const Source* parameter = rewriter_.parameter(root)) {
      const std::string name = weight_copy_name(precision_.dtype, parameter->name);
      return rewriter_.graph().add_source(SourceKind::state, name, {precision_.dtype, rewriter_.shape(root)});
    }
    const NodeId from = rewriter_.producer(root);
    const NodeId at = from != kNone ? from : first_reader(root);
    return rewriter_.insert_value(kCast, {root}, CastAttributes{precision_.dtype}, at);
  }

  NodeId first_reader(ValueId value) const {
    return *std::ranges::min_element(rewriter_.readers(value), {}, [&](NodeId id) { return rewriter_.position(id); });
  }

  void read_narrow(NodeId id) {
    const Node& node = rewriter_.node(id);
    const bool keeps = is_of(node, "softmax") || is_of(node, "loss");
    const auto lowered = [&](ValueId input) { return roots_.contains(input); };
    const bool joins_all = !node.op->traits.join.has_value() || std::ranges::all_of(node.inputs, lowered);
    if (keeps || !joins_all) return;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto root = roots_.find(node.inputs[i]);
      if (root == roots_.end()) continue;
      const bool copies_do = only_moves(node) || (is_of(node, "matmul") || is_of(node, "attention"));
      if (rewriter_.parameter(root->first) != nullptr && !copies_do) continue;
      rewriter_.set_input(id, i, root->second);
    }
  }

  void infer_again() {
    Graph& graph = rewriter_.graph();
    for (const NodeId id : graph.schedule()) {
      const Node& node = graph.node(id);
      if (!only_moves(node)) continue;
      std::vector<Type> types;
      for (const ValueId input : node.inputs) types.push_back(graph.type(input));
      const auto inferred = node.op->infer(types, node.attributes);
      INGOT_CHECK(inferred.ok(), "{} at \"{}\": {}", node.op->name, node.path, inferred.error().message);
      for (size_t i = 0; i < node.outputs.size(); ++i) graph.value(node.outputs[i]).type = (*inferred)[i];
    }
  }

  // Who looks at the program from outside finds fp32.
  void widen_outputs() {
    Graph& graph = rewriter_.graph();
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const ValueId value = graph.outputs[i].value;
      if (!is_narrow(graph.type(value).dtype)) continue;
      const ValueId wide =
          rewriter_.insert_value(kCast, {value}, CastAttributes{DType::f32}, rewriter_.producer(value));
      graph.outputs[i].value = wide;
    }
  }

  Rewriter rewriter_;
  const MixedPrecision& precision_;
  std::map<ValueId, ValueId> roots_;  // what is rounded -> its rounded form
  std::vector<ValueId> order_;        // of roots_, as they were found
};

}  // namespace

std::span<const PrecisionKind> precision_kinds() {
  return kKinds;
}

bool reads_narrow(const PrecisionKind& kind, std::span<const std::string> fp32_ops) {
  return kind.reads_narrow && std::ranges::find(fp32_ops, kind.unless) == fp32_ops.end();
}

Status check_fp32_ops(std::span<const std::string> kinds) {
  std::vector<std::string_view> names, always;
  for (const PrecisionKind& kind : kKinds) {
    names.push_back(kind.name);
    if (kind.computes_in_fp32) always.push_back(kind.name);
  }
  for (const std::string& kind : kinds)
    if (std::ranges::find(names, kind) == names.end())
      return usage_error("training.fp32_ops: there is no kind of ops \"{}\"; there are {}", kind,
                         fmt::join(names, ", "));
  for (const std::string_view kind : always)
    if (std::ranges::find(kinds, kind) == kinds.end())
      return usage_error(
          "training.fp32_ops leaves out \"{}\": {} compute in fp32 in every precision; name them all, and "
          "beside them what else shall stay in fp32 (matmul, attention, residual)",
          kind, fmt::join(always, ", "));
  return {};
}

std::string weight_copy_name(DType dtype, std::string_view parameter) {
  return fmt::format("{}.{}", name_of(dtype), parameter);
}

std::string_view copied_parameter(std::string_view state) {
  for (const DType dtype : {DType::bf16, DType::f16})
    if (state.starts_with(name_of(dtype)) && state.substr(name_of(dtype).size()).starts_with('.'))
      return state.substr(name_of(dtype).size() + 1);
  return {};
}

bool lower_precision(Graph& graph, PassContext& context) {
  return context.precision.dtype != DType::f32 && Lowering(graph, context.precision).run();
}

std::vector<std::string> products_in_fp32(const Graph& graph) {
  std::vector<std::string> paths;
  for (const NodeId id : graph.schedule()) {
    const Node& node = graph.node(id);
    if (!is_of(node, "matmul")) continue;
    const size_t first = node.op->name == "matmul_add" ? 1 : 0;
    const bool wide =
        graph.type(node.inputs[first]).dtype == DType::f32 || graph.type(node.inputs[first + 1]).dtype == DType::f32;
    if (wide) paths.push_back(node.path);
  }
  return paths;
}

}  // namespace ingot
