// What the tests of ONNX files share: ONNX's own classes, and an evaluator of graphs in double precision that follows
// the specification of each operator (https://github.com/onnx/onnx/blob/main/docs/Operators.md) and nothing else.
#pragma once

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include <onnx/onnx_pb.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace ingot::testing {

// Integers and truth values are held in double too.
struct OnnxTensor {
  std::vector<int64_t> shape;
  std::vector<double> data;

  int64_t elements() const { return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()); }
};

inline onnx::ModelProto read_onnx(const std::filesystem::path& file) {
  onnx::ModelProto model;
  std::ifstream in(file, std::ios::binary);
  if (!model.ParseFromIstream(&in)) throw std::runtime_error(file.string() + " cannot be parsed");
  return model;
}

// The bytes of an initializer, wherever they are.
inline std::string bytes_of(const onnx::TensorProto& tensor, const std::filesystem::path& directory) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return tensor.raw_data();
  std::map<std::string, std::string> where;
  for (const auto& entry : tensor.external_data()) where[entry.key()] = entry.value();
  std::ifstream in(directory / where.at("location"), std::ios::binary);
  std::string bytes(std::stoull(where.at("length")), '\0');
  in.seekg(std::stoll(where.at("offset")));
  if (!in.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    throw std::runtime_error("the data ends early");
  return bytes;
}

template <class T>
std::vector<double> numbers_of(const std::string& bytes) {
  std::vector<T> raw(bytes.size() / sizeof(T));
  std::memcpy(raw.data(), bytes.data(), bytes.size());
  return {raw.begin(), raw.end()};
}

inline OnnxTensor tensor_of(const onnx::TensorProto& tensor, const std::filesystem::path& directory) {
  OnnxTensor out{{tensor.dims().begin(), tensor.dims().end()}, {}};
  const std::string bytes = bytes_of(tensor, directory);
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      out.data = numbers_of<float>(bytes);
      break;
    case onnx::TensorProto::DOUBLE:
      out.data = numbers_of<double>(bytes);
      break;
    case onnx::TensorProto::INT64:
      out.data = numbers_of<int64_t>(bytes);
      break;
    case onnx::TensorProto::FLOAT16:
      for (const double bits : numbers_of<uint16_t>(bytes))
        out.data.push_back(float_from_f16(static_cast<uint16_t>(bits)));
      break;
    case onnx::TensorProto::BFLOAT16:
      for (const double bits : numbers_of<uint16_t>(bytes))
        out.data.push_back(float_from_bf16(static_cast<uint16_t>(bits)));
      break;
    default:
      throw std::runtime_error("an initializer of type " + std::to_string(tensor.data_type()));
  }
  if (out.elements() != static_cast<int64_t>(out.data.size()))
    throw std::runtime_error(tensor.name() + " has a wrong size");
  return out;
}

class OnnxEvaluator {
 public:
  using Values = std::map<std::string, OnnxTensor>;

  explicit OnnxEvaluator(const std::filesystem::path& directory) : model_(read_onnx(directory / "model.onnx")) {
    for (const auto& tensor : model_.graph().initializer()) initializers_[tensor.name()] = tensor_of(tensor, directory);
  }

  const onnx::ModelProto& model() const { return model_; }

  // The graph's outputs.
  Values run(const Values& inputs) const {
    Values values = initializers_;
    for (const auto& port : model_.graph().input()) values[port.name()] = inputs.at(port.name());
    for (const auto& node : model_.graph().node()) evaluate(node, values);
    Values outputs;
    for (const auto& port : model_.graph().output()) outputs[port.name()] = values.at(port.name());
    return outputs;
  }

 private:
  using Ints = std::vector<int64_t>;

  static int64_t integer(const onnx::NodeProto& node, const std::string& name, int64_t otherwise) {
    for (const auto& attribute : node.attribute())
      if (attribute.name() == name) return attribute.i();
    return otherwise;
  }
  static Ints integers(const onnx::NodeProto& node, const std::string& name) {
    for (const auto& attribute : node.attribute())
      if (attribute.name() == name) return {attribute.ints().begin(), attribute.ints().end()};
    throw std::runtime_error(node.op_type() + " without " + name);
  }
  static double number(const onnx::NodeProto& node, const std::string& name) {
    for (const auto& attribute : node.attribute())
      if (attribute.name() == name) return attribute.f();
    throw std::runtime_error(node.op_type() + " without " + name);
  }
  static Ints integers_of(const OnnxTensor& tensor) { return {tensor.data.begin(), tensor.data.end()}; }
  static size_t axis_of(int64_t axis, size_t rank) {
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  }

  // ---- indices

  static Ints strides_of(const Ints& shape) {
    Ints strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    return strides;
  }
  // A tensor of `shape` whose element at an index is that of x at from(index).
  static OnnxTensor gathered(const OnnxTensor& x, Ints shape, const std::function<Ints(const Ints&)>& from) {
    OnnxTensor out{std::move(shape), {}};
    const Ints strides = strides_of(x.shape);
    Ints index(out.shape.size(), 0);
    for (int64_t n = out.elements(); n > 0; --n) {
      const Ints place = from(index);
      int64_t at = 0;
      for (size_t i = 0; i < place.size(); ++i) at += place[i] * strides[i];
      out.data.push_back(x.data.at(static_cast<size_t>(at)));
      for (size_t i = index.size(); i-- > 0;) {
        if (++index[i] < out.shape[i]) break;
        index[i] = 0;
      }
    }
    return out;
  }
  static Ints broadcast(const Ints& a, const Ints& b) {
    Ints out(std::max(a.size(), b.size()), 1);
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
      if (x != y && x != 1 && y != 1) throw std::runtime_error("shapes that do not broadcast");
      out[out.size() - 1 - i] = x == 1 ? y : x;
    }
    return out;
  }
  static OnnxTensor expanded(const OnnxTensor& x, const Ints& to) {
    const Ints shape = broadcast(x.shape, to);
    const size_t front = shape.size() - x.shape.size();
    return gathered(x, shape, [&](const Ints& index) {
      Ints place(index.begin() + static_cast<int64_t>(front), index.end());
      for (size_t i = 0; i < place.size(); ++i)
        if (x.shape[i] == 1) place[i] = 0;
      return place;
    });
  }

  // ---- operators

  static OnnxTensor unary(const OnnxTensor& x, double (*function)(double)) {
    OnnxTensor out = x;
    for (double& value : out.data) value = function(value);
    return out;
  }
  static OnnxTensor binary(const OnnxTensor& a, const OnnxTensor& b, double (*function)(double, double)) {
    const Ints shape = broadcast(a.shape, b.shape);
    OnnxTensor out = expanded(a, shape);
    const OnnxTensor other = expanded(b, shape);
    for (size_t i = 0; i < out.data.size(); ++i) out.data[i] = function(out.data[i], other.data[i]);
    return out;
  }
  static OnnxTensor transposed(const OnnxTensor& x, const Ints& permutation) {
    Ints shape;
    for (const int64_t axis : permutation) shape.push_back(x.shape.at(static_cast<size_t>(axis)));
    return gathered(x, shape, [&](const Ints& index) {
      Ints place(index.size());
      for (size_t i = 0; i < index.size(); ++i) place[static_cast<size_t>(permutation[i])] = index[i];
      return place;
    });
  }
  static OnnxTensor matmul(OnnxTensor a, OnnxTensor b) {
    const int64_t m = a.shape.at(a.shape.size() - 2), k = a.shape.back(), n = b.shape.back();
    if (b.shape.at(b.shape.size() - 2) != k) throw std::runtime_error("MatMul of other extents");
    const Ints leading = broadcast({a.shape.begin(), a.shape.end() - 2}, {b.shape.begin(), b.shape.end() - 2});
    const auto with = [&](int64_t rows, int64_t columns) {
      Ints shape = leading;
      shape.push_back(rows);
      shape.push_back(columns);
      return shape;
    };
    a = expanded(a, with(m, k));
    b = expanded(b, with(k, n));
    OnnxTensor out{with(m, n), {}};
    out.data.resize(static_cast<size_t>(out.elements()));
    for (int64_t row = 0; row < out.elements() / std::max<int64_t>(n, 1); ++row)
      for (int64_t i = 0; i < k; ++i)
        for (int64_t column = 0; column < n; ++column)
          out.data[static_cast<size_t>(row * n + column)] +=
              a.data[static_cast<size_t>(row * k + i)] * b.data[static_cast<size_t>((row / m * k + i) * n + column)];
    return out;
  }
  static OnnxTensor gemm(const onnx::NodeProto& node, const OnnxTensor& a, const OnnxTensor& b) {
    return matmul(integer(node, "transA", 0) != 0 ? transposed(a, {1, 0}) : a,
                  integer(node, "transB", 0) != 0 ? transposed(b, {1, 0}) : b);
  }
  static OnnxTensor reshaped(const OnnxTensor& x, Ints shape) {
    int64_t known = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 0) shape[i] = x.shape.at(i);
      if (shape[i] != -1) known *= shape[i];
    }
    for (int64_t& extent : shape)
      if (extent == -1) extent = x.elements() / known;
    OnnxTensor out{shape, x.data};
    if (out.elements() != x.elements()) throw std::runtime_error("Reshape to another number of elements");
    return out;
  }
  static OnnxTensor unsqueezed(const OnnxTensor& x, const Ints& axes) {
    Ints shape(x.shape.size() + axes.size(), 0);
    for (const int64_t axis : axes) shape.at(axis_of(axis, shape.size())) = 1;
    size_t next = 0;
    for (int64_t& extent : shape)
      if (extent == 0) extent = x.shape[next++];
    // An extent of 0 in x is no place for a 1: none occurs outside the caches, which are not unsqueezed when empty.
    return {shape, x.data};
  }
  static OnnxTensor part(const OnnxTensor& x, size_t axis, int64_t start, int64_t stop) {
    Ints shape = x.shape;
    shape.at(axis) = stop - start;
    return gathered(x, shape, [&](Ints index) {
      index[axis] += start;
      return index;
    });
  }
  static OnnxTensor joined(const std::vector<OnnxTensor>& parts, size_t axis) {
    Ints shape = parts.front().shape;
    int64_t outer = 1, total = 0, inner = 1;
    for (size_t i = 0; i < shape.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
    for (const OnnxTensor& one : parts) total += one.shape.at(axis);
    shape[axis] = total;
    OnnxTensor out{shape, {}};
    for (int64_t row = 0; row < outer; ++row)
      for (const OnnxTensor& one : parts) {
        const int64_t size = one.shape[axis] * inner;
        out.data.insert(out.data.end(), one.data.begin() + row * size, one.data.begin() + (row + 1) * size);
      }
    return out;
  }
  static OnnxTensor looked_up(const OnnxTensor& table, const OnnxTensor& ids) {  // axis 0
    Ints shape = ids.shape;
    shape.insert(shape.end(), table.shape.begin() + 1, table.shape.end());
    return gathered(table, shape, [&](const Ints& index) {
      const Ints strides = strides_of(ids.shape);
      int64_t at = 0;
      for (size_t i = 0; i < ids.shape.size(); ++i) at += index[i] * strides[i];
      Ints place{static_cast<int64_t>(ids.data.at(static_cast<size_t>(at)))};
      if (place[0] < 0 || place[0] >= table.shape[0]) throw std::runtime_error("Gather beyond the table");
      place.insert(place.end(), index.begin() + static_cast<int64_t>(ids.shape.size()), index.end());
      return place;
    });
  }
  // Each row along the last axis by itself.
  static OnnxTensor rows(OnnxTensor x, const std::function<void(std::span<double>)>& function) {
    const auto width = static_cast<size_t>(x.shape.back());
    for (size_t at = 0; at < x.data.size(); at += width) function(std::span(x.data).subspan(at, width));
    return x;
  }
  static void softmax(std::span<double> row) {
    const double largest = *std::max_element(row.begin(), row.end());
    double total = 0;
    for (double& x : row) total += x = std::exp(x - largest);
    for (double& x : row) x /= total;
  }
  // Rows are the axes from `axis` on.
  static OnnxTensor layer_norm(const OnnxTensor& x, size_t axis, double eps) {
    int64_t width = 1;
    for (size_t i = axis; i < x.shape.size(); ++i) width *= x.shape[i];
    const OnnxTensor normed = rows({{x.elements() / width, width}, x.data}, [eps](std::span<double> row) {
      const auto size = static_cast<double>(row.size());
      const double mean = std::accumulate(row.begin(), row.end(), 0.0) / size;
      double variance = 0;
      for (double& value : row) value -= mean, variance += value * value / size;
      for (double& value : row) value /= std::sqrt(variance + eps);
    });
    return {x.shape, normed.data};
  }
  // Over one axis.
  static OnnxTensor reduced(const OnnxTensor& x, size_t axis, bool keep, double start,
                            double (*function)(double, double)) {
    Ints shape = x.shape;
    shape.at(axis) = 1;
    OnnxTensor out = gathered(x, shape, [](const Ints& index) { return index; });
    std::fill(out.data.begin(), out.data.end(), start);
    for (int64_t i = 0; i < x.shape[axis]; ++i) {
      const OnnxTensor slice = part(x, axis, i, i + 1);
      for (size_t e = 0; e < out.data.size(); ++e) out.data[e] = function(out.data[e], slice.data[e]);
    }
    if (!keep) out.shape.erase(out.shape.begin() + static_cast<int64_t>(axis));
    return out;
  }
  static OnnxTensor reduced(const onnx::NodeProto& node, OnnxTensor x, Ints axes) {
    std::ranges::sort(axes, std::greater());  // none is negative where there are several
    for (const int64_t one : axes) {
      const size_t axis = axis_of(one, x.shape.size());
      const auto extent = static_cast<double>(x.shape.at(axis));
      const bool keep = integer(node, "keepdims", 1) != 0, largest = node.op_type() == "ReduceMax";
      x = largest ? reduced(x, axis, keep, -INFINITY, [](double a, double b) { return std::max(a, b); })
                  : reduced(x, axis, keep, 0, [](double a, double b) { return a + b; });
      if (node.op_type() == "ReduceMean")
        for (double& value : x.data) value /= extent;
    }
    return x;
  }
  static OnnxTensor range(const OnnxTensor& start, const OnnxTensor& stop, const OnnxTensor& step) {
    OnnxTensor out;
    for (double x = start.data.at(0); x < stop.data.at(0); x += step.data.at(0)) out.data.push_back(x);
    out.shape = {static_cast<int64_t>(out.data.size())};
    return out;
  }
  static OnnxTensor chosen(const OnnxTensor& condition, const OnnxTensor& yes, const OnnxTensor& no) {
    const Ints shape = broadcast(condition.shape, broadcast(yes.shape, no.shape));
    OnnxTensor out = expanded(yes, shape);
    const OnnxTensor which = expanded(condition, shape), other = expanded(no, shape);
    for (size_t i = 0; i < out.data.size(); ++i)
      if (which.data[i] == 0) out.data[i] = other.data[i];
    return out;
  }
  static OnnxTensor cast(const onnx::NodeProto& node, OnnxTensor x) {
    const int64_t to = integer(node, "to", 0);
    for (double& value : x.data) {
      if (to == onnx::TensorProto::BOOL) value = value != 0;
      if (to == onnx::TensorProto::FLOAT16) value = float_from_f16(f16_from_float(static_cast<float>(value)));
      if (to == onnx::TensorProto::BFLOAT16) value = float_from_bf16(bf16_from_float(static_cast<float>(value)));
    }
    return x;  // other numbers stay in double
  }

  static bool simple(const std::string& op, const std::vector<OnnxTensor>& in, OnnxTensor& out) {
    static const std::map<std::string, double (*)(double)> kUnary{
        {"Sqrt", [](double x) { return std::sqrt(x); }},  {"Reciprocal", [](double x) { return 1 / x; }},
        {"Erf", [](double x) { return std::erf(x); }},    {"Exp", [](double x) { return std::exp(x); }},
        {"Log", [](double x) { return std::log(x); }},    {"Neg", [](double x) { return -x; }},
        {"Relu", [](double x) { return x > 0 ? x : 0; }}, {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
        {"Tanh", [](double x) { return std::tanh(x); }},  {"Floor", [](double x) { return std::floor(x); }},
        {"Sin", [](double x) { return std::sin(x); }},    {"Cos", [](double x) { return std::cos(x); }},
        {"Identity", [](double x) { return x; }}};
    static const std::map<std::string, double (*)(double, double)> kBinary{
        {"Add", [](double a, double b) { return a + b; }},
        {"Sub", [](double a, double b) { return a - b; }},
        {"Mul", [](double a, double b) { return a * b; }},
        {"Div", [](double a, double b) { return a / b; }},
        {"Pow", [](double a, double b) { return std::pow(a, b); }},
        {"Max", [](double a, double b) { return std::max(a, b); }},
        {"And", [](double a, double b) { return static_cast<double>(a != 0 && b != 0); }},
        {"LessOrEqual", [](double a, double b) { return static_cast<double>(a <= b); }},
        {"Greater", [](double a, double b) { return static_cast<double>(a > b); }},
        {"GreaterOrEqual", [](double a, double b) { return static_cast<double>(a >= b); }}};
    if (const auto found = kUnary.find(op); found != kUnary.end()) return out = unary(in.at(0), found->second), true;
    if (const auto found = kBinary.find(op); found != kBinary.end())
      return out = binary(in.at(0), in.at(1), found->second), true;
    return false;
  }

  static OnnxTensor shaping(const onnx::NodeProto& node, const std::vector<OnnxTensor>& in) {
    const std::string& op = node.op_type();
    const OnnxTensor& x = in.at(0);
    if (op == "Shape") return {{static_cast<int64_t>(x.shape.size())}, {x.shape.begin(), x.shape.end()}};
    if (op == "Reshape") return reshaped(x, integers_of(in.at(1)));
    if (op == "Unsqueeze") return unsqueezed(x, integers_of(in.at(1)));
    if (op == "Expand") return expanded(x, integers_of(in.at(1)));
    if (op == "Transpose") return transposed(x, integers(node, "perm"));
    if (op == "Concat") return joined(in, axis_of(integer(node, "axis", 0), x.shape.size()));
    if (op == "Range") return range(in.at(0), in.at(1), in.at(2));
    if (op == "Cast") return cast(node, x);
    if (op == "Gather" && integer(node, "axis", 0) == 0) return looked_up(x, in.at(1));
    if (op == "Slice")
      return part(x, axis_of(integers_of(in.at(3)).at(0), x.shape.size()), integers_of(in.at(1)).at(0),
                  integers_of(in.at(2)).at(0));
    throw std::runtime_error("the evaluator has no " + op);
  }

  static OnnxTensor computed(const onnx::NodeProto& node, const std::vector<OnnxTensor>& in) {
    const std::string& op = node.op_type();
    const OnnxTensor& x = in.at(0);
    OnnxTensor out;
    if (simple(op, in, out)) return out;
    if (op == "MatMul") return matmul(x, in.at(1));
    if (op == "Gemm") return gemm(node, x, in.at(1));
    if (op == "Where") return chosen(x, in.at(1), in.at(2));
    if (op == "Softmax") return rows(x, softmax);
    if (op == "LayerNormalization") {
      out = binary(layer_norm(x, axis_of(integer(node, "axis", -1), x.shape.size()), number(node, "epsilon")), in.at(1),
                   [](double a, double b) { return a * b; });
      return in.size() < 3 ? out : binary(out, in[2], [](double a, double b) { return a + b; });
    }
    if (op == "ReduceMean" || op == "ReduceMax" || op == "ReduceSum")
      return reduced(node, x, op == "ReduceSum" ? integers_of(in.at(1)) : integers(node, "axes"));
    return shaping(node, in);
  }

  static void evaluate(const onnx::NodeProto& node, Values& values) {
    std::vector<OnnxTensor> in;
    for (const std::string& name : node.input()) in.push_back(values.at(name));
    if (node.op_type() != "Split") {
      values[node.output(0)] = computed(node, in);
      return;
    }
    int64_t start = 0;
    const Ints sizes = integers_of(in.at(1));
    for (int i = 0; i < node.output_size(); ++i) {
      const int64_t size = sizes.at(static_cast<size_t>(i));
      values[node.output(i)] = part(in[0], axis_of(integer(node, "axis", 0), in[0].shape.size()), start, start + size);
      start += size;
    }
  }

  onnx::ModelProto model_;
  Values initializers_;
};

}  // namespace ingot::testing
