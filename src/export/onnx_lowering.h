// OnnxLowering: an ONNX graph made of a model's generation graph, node by node. What each op becomes stands in
// onnx_ops.cc and onnx_attention.cc; this is what they share.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export/onnx_graph.h"
#include "export/open_graph.h"

namespace ingot {

class OnnxLowering;

// What an op becomes. `simple` names an ONNX op of the same inputs and no attributes; else `lower` emits nodes and
// defines the node's outputs. Its error (usage) says why this one cannot be exported.
struct OnnxMapping {
  std::string_view op;
  const char* simple = nullptr;
  Status (*lower)(OnnxLowering& to, const Node& node) = nullptr;
  bool shape_attributes = false;  // what its attributes say of extents is taken from its output instead
  bool caches = false;            // reads or extends the caches
};
// nullptr for an op that has none.
const OnnxMapping* find_onnx_mapping(std::string_view op);

// The graph has the names of Hugging Face's Optimum: inputs input_ids [batch_size, sequence_length], attention_mask
// [batch_size, past_sequence_length + sequence_length] and position_ids [batch_size, sequence_length], int64, and
// past_key_values.N.key and .value [batch_size, Hkv, past_sequence_length, D]; outputs logits [batch_size,
// sequence_length, V] and present.N.key and .value, the past with the new tokens behind it. Integers of the model's
// graph (i32) are int64 in ONNX. Weights are stored as `weights` (f32, f16, bf16) and computed with in f32. Errors
// (usage): an op without a mapping, named with its place in the model.
Result<OnnxGraph> lower_to_onnx(const OpenGraph& graph, DType weights, const std::string& where);

class OnnxLowering {
 public:
  using Names = std::vector<std::string>;
  using OnnxAttributes = std::vector<OnnxAttribute>;

  OnnxLowering(const OpenGraph& graph, DType weights);
  Result<OnnxGraph> run(const std::string& where) &&;

  const Extents& extents(ValueId value) const { return graph_.extents(value); }

  // The ONNX value of a node's input; of a parameter in f32, however it is stored.
  std::string input(const Node& node, size_t i);
  void define(ValueId value, const std::string& onnx_name);

  // Adds a node; gives the name of its output.
  std::string emit(const std::string& op, Names inputs, OnnxAttributes attributes = {});
  Names emit_many(const std::string& op, Names inputs, size_t outputs, OnnxAttributes attributes = {});

  // Constants, each once.
  std::string scalar(double value);   // f32 []
  std::string scalar(int64_t value);  // int64 []
  // Of the dtype where that is floating point, else int64.
  std::string numbers(const std::vector<double>& values, const std::vector<int64_t>& shape, DType dtype);
  std::string integers(const std::vector<int64_t>& values);  // int64 [values]

  // Extents as ONNX values, int64 [].
  std::string batch();   // of input_ids
  std::string tokens();  // of input_ids
  std::string past();    // tokens in the caches so far
  // int64 [extents]; -1 in place of the first that is not fixed where `infer`.
  std::string shape(const Extents& extents, bool infer = false);
  std::string reshaped(const std::string& x, const Extents& from, const Extents& to);
  std::string cast(const std::string& x, int64_t onnx_type);

  // What `make` emits, once for each key, as nodes of their own place.
  std::string shared(const std::string& key, const std::string& place, const std::function<std::string()>& make);

  // Whether a parameter is stored transposed, since all that reads it are products with its transpose.
  bool is_stored_transposed(ValueId value) const { return transposed_[static_cast<size_t>(value)]; }
  // Whether the value is a parameter that is stored in another dtype than f32; then its name as it is stored.
  std::optional<std::string> narrow_parameter(ValueId value) const;

  // The IR's input "start", which ONNX has no need of, and the caches.
  ValueId start() const;
  bool is_cache(ValueId value) const;           // as it was before the new tokens
  bool is_extended_cache(ValueId value) const;  // with them

 private:
  Status declare_sources();
  Status declare_results();
  Status lower(const Node& node, NodeId id);
  void find_transposed();
  void declare_parameter(const Source& source);
  std::string extent_value(const Extent& extent);  // int64 [1]
  std::string unique(const std::string& stem);
  std::string constant(DType dtype, const std::vector<int64_t>& shape, std::string bytes, const std::string& stem);

  const OpenGraph& graph_;
  DType weights_;
  OnnxGraph out_;
  std::string place_;                          // of the nodes that are being emitted
  std::vector<std::string> names_;             // by value; empty: not defined
  std::vector<std::string> wanted_;            // by value; the graph's outputs: the name it must have
  std::vector<bool> transposed_;               // by value
  std::map<std::string, std::string> shared_;  // by key
  std::map<std::string, int> used_;            // by stem
};

}  // namespace ingot
