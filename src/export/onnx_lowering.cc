#include "export/onnx_lowering.h"

#include <fmt/ranges.h>

#include <cstring>

#include "checkpoint/convert.h"
#include "ops/cache_write.h"
#include "ops/matmul.h"

namespace ingot {
namespace {

constexpr const char* kBatch = "batch_size";
constexpr const char* kTokens = "sequence_length";
constexpr const char* kPast = "past_sequence_length";
constexpr const char* kTotal = "past_sequence_length + sequence_length";

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// `capacity` is the name of the caches' tokens.
OnnxExtent onnx_extent(const Extent& extent, const char* capacity) {
  if (extent.fixed()) return extent.factor;
  std::string symbol = extent.factor == 1 ? "" : std::to_string(extent.factor);
  for (const auto& [follows, name] :
       {std::pair(extent.batch, kBatch), std::pair(extent.tokens, kTokens), std::pair(extent.capacity, capacity)})
    if (follows) symbol += (symbol.empty() ? "" : " * ") + std::string(name);
  return symbol;
}

std::vector<OnnxExtent> onnx_extents(const Extents& extents, const char* capacity) {
  std::vector<OnnxExtent> shape;
  for (const Extent& extent : extents) shape.push_back(onnx_extent(extent, capacity));
  return shape;
}

// Integers are int64 throughout.
DType port_dtype(DType dtype) {
  return is_float(dtype) ? dtype : DType::i64;
}

// "cache.k.3" -> "3.key"; empty for other names.
std::string cache_name(const std::string& state) {
  for (const auto& [prefix, what] : {std::pair("cache.k.", "key"), std::pair("cache.v.", "value")})
    if (state.starts_with(prefix)) return state.substr(std::strlen(prefix)) + "." + what;
  return "";
}

Error unknown_source(const Source& source) {
  return usage_error("the source {} has no counterpart among the inputs of an ONNX decoder", source.name);
}

}  // namespace

OnnxLowering::OnnxLowering(const OpenGraph& graph, DType weights) : graph_(graph), weights_(weights) {
  const auto values = static_cast<size_t>(graph.graph().value_count());
  names_.resize(values);
  wanted_.resize(values);
  transposed_.resize(values);
  out_.name = graph.graph().name;
}

Result<OnnxGraph> OnnxLowering::run(const std::string& where) && {
  const auto located = [&](const Status& status) {
    return Error{status.error().kind, fmt::format("{}: {}", where, status.error().message)};
  };
  find_transposed();
  if (const Status done = declare_results(); !done.ok()) return located(done);
  if (const Status done = declare_sources(); !done.ok()) return located(done);
  for (const NodeId id : graph_.graph().schedule())
    if (const Status done = lower(graph_.graph().node(id), id); !done.ok()) return located(done);
  return std::move(out_);
}

// A weight that products read transposed, and nothing else reads, is stored so.
void OnnxLowering::find_transposed() {
  const Graph& graph = graph_.graph();
  const auto readers = graph.readers();
  for (const Source& source : graph.sources) {
    if (source.kind != SourceKind::parameter || graph.shape(source.value).rank() != 2) continue;
    const auto wants_transposed = [&](NodeId id) {
      const Node& node = graph.node(id);
      if (node.op != &kMatmul || node.inputs[1] != source.value || node.inputs[0] == source.value) return false;
      return node.attributes.as<MatmulAttributes>().transpose_b && graph.shape(node.inputs[0]).rank() > 2;
    };
    const auto& all = readers[static_cast<size_t>(source.value)];
    transposed_[static_cast<size_t>(source.value)] = !all.empty() && std::ranges::all_of(all, wants_transposed);
  }
}

void OnnxLowering::declare_parameter(const Source& source) {
  const Shape& shape = graph_.graph().shape(source.value);
  OnnxWeight weight;
  weight.name = unique(source.name);
  weight.parameter = source.name;
  weight.transposed = transposed_[static_cast<size_t>(source.value)];
  weight.dtype = weights_;
  weight.shape.assign(shape.begin(), shape.end());
  if (weight.transposed) std::swap(weight.shape[0], weight.shape[1]);
  weight.bytes = static_cast<uint64_t>(shape.elements()) * size_of(weights_);
  out_.weights.push_back(weight);
  names_[static_cast<size_t>(source.value)] = weight.name;
}

Status OnnxLowering::declare_sources() {
  const Graph& graph = graph_.graph();
  out_.inputs = {{"input_ids", DType::i64, {kBatch, kTokens}},
                 {"attention_mask", DType::i64, {kBatch, kTotal}},
                 {"position_ids", DType::i64, {kBatch, kTokens}}};
  for (const OnnxPort& port : out_.inputs) unique(port.name);
  const auto readers = graph.readers();
  for (const Source& source : graph.sources) {
    if (source.kind == SourceKind::parameter) {
      if (!readers[static_cast<size_t>(source.value)].empty()) declare_parameter(source);
      continue;
    }
    std::string name;
    if (source.kind == SourceKind::state) {
      if (cache_name(source.name).empty()) return unknown_source(source);
      name = unique("past_key_values." + cache_name(source.name));
      out_.inputs.push_back(
          {name, port_dtype(graph.type(source.value).dtype), onnx_extents(graph_.extents(source.value), kPast)});
    } else if (source.name == "ids" || source.name == "positions") {
      name = source.name == "ids" ? "input_ids" : "position_ids";
    } else if (source.name != "start") {
      return unknown_source(source);
    }
    names_[static_cast<size_t>(source.value)] = name;
  }
  return {};
}

Status OnnxLowering::declare_results() {
  const Graph& graph = graph_.graph();
  const auto result = [&](const std::string& name, ValueId value) {
    wanted_[static_cast<size_t>(value)] = unique(name);  // before a weight takes it
    out_.outputs.push_back({name, port_dtype(graph.type(value).dtype), onnx_extents(graph_.extents(value), kTotal)});
  };
  for (const Output& output : graph.outputs) result(output.name, output.value);
  for (const Store& store : graph.stores) {
    const std::string& state = graph.source_of(store.variable)->name;
    if (cache_name(state).empty() || !is_extended_cache(store.value))
      return usage_error("the state {} is more than a cache of keys or values that new tokens are written to", state);
    result("present." + cache_name(state), store.value);
  }
  return {};
}

Status OnnxLowering::lower(const Node& node, NodeId id) {
  const OnnxMapping* mapping = find_onnx_mapping(node.op->name);
  if (mapping == nullptr)
    return usage_error("the op {} at {} has no counterpart in the ONNX export", node.op->name, node.path);
  if (graph_.attributes_vary(id) && !mapping->shape_attributes)
    return usage_error("the op {} at {} has attributes that depend on the batch size or the length: {}", node.op->name,
                       node.path, node.attributes.to_string());
  const auto is_foreign = [&](ValueId value) {
    return names_[static_cast<size_t>(value)].empty() || is_cache(value) || is_extended_cache(value);
  };
  const auto is_as_long_as_caches = [&](ValueId value) {
    return std::ranges::any_of(extents(value), &Extent::capacity);
  };
  if (!mapping->caches &&
      (std::ranges::any_of(node.inputs, is_foreign) || std::ranges::any_of(node.outputs, is_as_long_as_caches)))
    return usage_error(
        "the op {} at {} has to do with the caches, the place or the room in them, or what is kept for a gradient; in "
        "an ONNX decoder only attention has",
        node.op->name, node.path);
  place_ = node.path;
  if (mapping->lower != nullptr) return mapping->lower(*this, node);
  Names inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(input(node, i));
  define(node.outputs[0], emit(mapping->simple, std::move(inputs)));
  return {};
}

// An output of the graph has a name of its own, which the node that makes it takes over.
void OnnxLowering::define(ValueId value, const std::string& onnx_name) {
  std::string& name = names_[static_cast<size_t>(value)];
  name = onnx_name;
  const std::string& wanted = wanted_[static_cast<size_t>(value)];
  if (wanted.empty()) return;
  if (!out_.nodes.empty() && out_.nodes.back().outputs == Names{onnx_name}) {
    out_.nodes.back().outputs = {wanted};
  } else {
    out_.nodes.push_back({"Identity", unique(place_ + "/Identity"), {onnx_name}, {wanted}, {}});
  }
  name = wanted;
}

std::string OnnxLowering::unique(const std::string& stem) {
  const int count = used_[stem]++;
  return count == 0 ? stem : unique(fmt::format("{}_{}", stem, count));
}

std::string OnnxLowering::emit(const std::string& op, Names inputs, OnnxAttributes attributes) {
  return emit_many(op, std::move(inputs), 1, std::move(attributes)).front();
}

OnnxLowering::Names OnnxLowering::emit_many(const std::string& op, Names inputs, size_t outputs,
                                            OnnxAttributes attributes) {
  const std::string name = unique(place_ + "/" + op);
  Names results;
  for (size_t i = 0; i < outputs; ++i) results.push_back(unique(fmt::format("{}.{}", name, i)));
  out_.nodes.push_back({op, name, std::move(inputs), results, std::move(attributes)});
  return results;
}

std::string OnnxLowering::constant(DType dtype, const std::vector<int64_t>& shape, std::string bytes,
                                   const std::string& stem) {
  const std::string key = fmt::format("constant {} {} {}", name_of(dtype), fmt::join(shape, ","), bytes);
  auto& name = shared_[key];
  if (!name.empty()) return name;
  name = unique("constant/" + stem);
  out_.constants.push_back({name, dtype, shape, std::move(bytes)});
  return name;
}

std::string OnnxLowering::scalar(double value) {
  return constant(DType::f32, {}, bytes_of<float>({static_cast<float>(value)}), fmt::format("{:g}", value));
}

std::string OnnxLowering::scalar(int64_t value) {
  return constant(DType::i64, {}, bytes_of<int64_t>({value}), fmt::format("int/{}", value));
}

std::string OnnxLowering::numbers(const std::vector<double>& values, const std::vector<int64_t>& shape, DType dtype) {
  if (!is_float(dtype))
    return constant(DType::i64, shape, bytes_of(std::vector<int64_t>(values.begin(), values.end())), "integers");
  std::string bytes(values.size() * size_of(dtype), '\0');
  convert_elements(DType::f64, reinterpret_cast<const std::byte*>(values.data()), dtype,
                   reinterpret_cast<std::byte*>(bytes.data()), values.size());
  return constant(dtype, shape, std::move(bytes), std::string(name_of(dtype)));
}

std::string OnnxLowering::integers(const std::vector<int64_t>& values) {
  return constant(DType::i64, {static_cast<int64_t>(values.size())}, bytes_of(values),
                  fmt::format("ints/{}", fmt::join(values, ",")));
}

std::string OnnxLowering::batch() {
  return shared("batch", "shape", [&] {
    return emit("Gather", {emit("Shape", {"input_ids"}), scalar(int64_t{0})}, {{"axis", int64_t{0}}});
  });
}

std::string OnnxLowering::tokens() {
  return shared("tokens", "shape", [&] {
    return emit("Gather", {emit("Shape", {"input_ids"}), scalar(int64_t{1})}, {{"axis", int64_t{0}}});
  });
}

std::string OnnxLowering::past() {
  return shared("past", "shape", [&] {
    const auto is_past = [](const OnnxPort& port) { return port.name.starts_with("past_key_values."); };
    const auto cache = std::ranges::find_if(out_.inputs, is_past);
    INGOT_CHECK(cache != out_.inputs.end(), "the length of the past without a cache");
    return emit("Gather", {emit("Shape", {cache->name}), scalar(int64_t{2})}, {{"axis", int64_t{0}}});
  });
}

std::string OnnxLowering::shape(const Extents& extents, bool infer) {
  std::string key = "extents";
  for (const Extent& e : extents) key += fmt::format(" {}{}{}{}", e.factor, e.batch, e.tokens, e.capacity);
  if (std::ranges::all_of(extents, &Extent::fixed)) {
    std::vector<int64_t> known;
    for (const Extent& extent : extents) known.push_back(extent.factor);
    return integers(known);
  }
  return shared(key + (infer ? " infer" : ""), "shape", [&] {
    Names parts;
    bool inferred = !infer;
    for (const Extent& extent : extents) {
      if (extent.fixed() || inferred) {
        parts.push_back(extent_value(extent));
      } else {
        inferred = true;
        parts.push_back(integers({-1}));
      }
    }
    return parts.size() == 1 ? parts.front() : emit("Concat", parts, {{"axis", int64_t{0}}});
  });
}

std::string OnnxLowering::extent_value(const Extent& extent) {
  INGOT_CHECK(!extent.capacity, "an extent of the caches as a shape");
  if (extent.fixed()) return integers({extent.factor});
  std::string value = extent.batch ? batch() : tokens();
  if (extent.batch && extent.tokens) value = emit("Mul", {value, tokens()});
  if (extent.factor != 1) value = emit("Mul", {value, scalar(extent.factor)});
  return emit("Unsqueeze", {value, integers({0})});
}

// In the form that needs the least: an extent that stays in its place is copied (0), one may follow from the others.
std::string OnnxLowering::reshaped(const std::string& x, const Extents& from, const Extents& to) {
  std::vector<int64_t> plain;
  int open = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    const bool stays = i < from.size() && from[i] == to[i];
    if (to[i].fixed())
      plain.push_back(to[i].factor);
    else
      plain.push_back(stays ? 0 : -1);
    if (plain.back() == -1) ++open;
  }
  return emit("Reshape", {x, open <= 1 ? integers(plain) : shape(to, true)});
}

std::string OnnxLowering::cast(const std::string& x, int64_t onnx_type) {
  return emit("Cast", {x}, {{"to", onnx_type}});
}

std::string OnnxLowering::shared(const std::string& key, const std::string& place,
                                 const std::function<std::string()>& make) {
  if (const auto found = shared_.find(key); found != shared_.end()) return found->second;
  const std::string outer = std::exchange(place_, place);
  std::string name = make();
  place_ = outer;
  shared_[key] = name;
  return name;
}

std::optional<std::string> OnnxLowering::narrow_parameter(ValueId value) const {
  const Source* source = graph_.graph().source_of(value);
  if (weights_ == DType::f32 || source == nullptr || source->kind != SourceKind::parameter) return std::nullopt;
  return names_[static_cast<size_t>(value)];
}

std::string OnnxLowering::input(const Node& node, size_t i) {
  const auto narrow = narrow_parameter(node.inputs[i]);
  if (!narrow) return names_[static_cast<size_t>(node.inputs[i])];
  return shared("f32 " + *narrow, *narrow, [&] { return cast(*narrow, onnx_type(DType::f32)); });
}

ValueId OnnxLowering::start() const {
  const Source* source = graph_.graph().find_source("start");
  return source == nullptr ? kNone : source->value;
}

bool OnnxLowering::is_cache(ValueId value) const {
  const Source* source = graph_.graph().source_of(value);
  return source != nullptr && source->kind == SourceKind::state;
}

bool OnnxLowering::is_extended_cache(ValueId value) const {
  const Node* node = graph_.graph().producer(value);
  return node != nullptr && node->op == &kCacheWrite;
}

Result<OnnxGraph> lower_to_onnx(const OpenGraph& graph, DType weights, const std::string& where) {
  return OnnxLowering(graph, weights).run(where);
}

}  // namespace ingot
