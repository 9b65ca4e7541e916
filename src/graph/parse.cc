#include <algorithm>
#include <map>

#include "graph/storage.h"
#include "graph/text.h"

namespace ingot {
namespace {

std::string list_of(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + type.to_string();
  return text;
}

class Parser {
 public:
  explicit Parser(const OpLookup& lookup) : lookup_(lookup) {}

  Result<Graph> parse(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      ++line_;
      AttributeReader in(line);
      if (in.done() || in.at('#')) continue;
      INGOT_TRY(parse_line(in));
      if (!in.done()) return wrong("something after the end of the statement: \"{}\"", in.rest());
    }
    return std::move(graph_);
  }

 private:
  template <class... Args>
  Error wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return input_error("graph text, line {}: {}", line_, fmt::format(format, std::forward<Args>(args)...));
  }

  Status parse_line(AttributeReader& in) {
    if (in.at('%')) return parse_definition(in);
    const std::string_view word = in.word();
    std::string name;
    if (word == "graph") {
      if (!in.quoted(graph_.name)) return wrong("expected the graph's name in quotes");
      return {};
    }
    if (word == "output") {
      if (!in.quoted(name) || !in.take('=')) return wrong("expected: output \"name\" = %id");
      INGOT_ASSIGN(ValueId value, value_id(in));
      graph_.outputs.push_back({name, value});
      return {};
    }
    if (word == "store") {
      INGOT_ASSIGN(ValueId variable, value_id(in));
      if (!in.take('=')) return wrong("expected: store %variable = %value");
      INGOT_ASSIGN(ValueId value, value_id(in));
      graph_.stores.push_back({variable, value});
      return {};
    }
    return wrong("expected graph, output, store or %id, found \"{}\"", word);
  }

  Status parse_definition(AttributeReader& in) {
    std::vector<std::string> targets;
    do {
      if (!in.take('%')) return wrong("expected %id before \"{}\"", in.rest());
      targets.emplace_back(in.word());
    } while (in.take(','));
    if (!in.take('=')) return wrong("expected = before \"{}\"", in.rest());
    const std::string_view word = in.word();
    if (word == "parameter") return parse_source(in, SourceKind::parameter, targets);
    if (word == "state") return parse_source(in, SourceKind::state, targets);
    if (word == "input") return parse_source(in, SourceKind::input, targets);
    const OpDef* op = lookup_(word);
    if (op == nullptr) return wrong("there is no op named \"{}\"", word);
    return parse_node(in, *op, targets);
  }

  Status parse_source(AttributeReader& in, SourceKind kind, const std::vector<std::string>& targets) {
    std::string name;
    if (targets.size() != 1 || !in.quoted(name) || !in.take(':'))
      return wrong("expected: %id = parameter \"name\" : type");
    if (graph_.find_source(name) != nullptr) return wrong("a second source named \"{}\"", name);
    INGOT_ASSIGN(Type type, parse_type(in));
    return define(targets[0], graph_.add_source(kind, name, type));
  }

  Status parse_node(AttributeReader& in, const OpDef& op, const std::vector<std::string>& targets) {
    std::vector<ValueId> inputs;
    if (!in.take('(')) return wrong("expected ( after {}", op.name);
    if (!in.take(')')) {
      do {
        INGOT_ASSIGN(ValueId value, value_id(in));
        inputs.push_back(value);
      } while (in.take(','));
      if (!in.take(')')) return wrong("expected ) before \"{}\"", in.rest());
    }
    AttributeReader none("{}");
    auto attributes = op.parse_attributes(in.at('{') ? in : none);
    if (!attributes.ok()) return wrong("{}: {}", op.name, attributes.error().message);
    std::vector<Type> written;
    if (in.take(':')) {
      do {
        INGOT_ASSIGN(Type type, parse_type(in));
        written.push_back(type);
      } while (in.take(','));
    }
    std::string path;
    if (in.take('@') && !in.quoted(path)) return wrong("expected a path in quotes after @");

    std::vector<Type> types;
    for (ValueId input : inputs) types.push_back(graph_.type(input));
    auto inferred = op.infer(types, *attributes);
    if (!inferred.ok()) return wrong("{}: {}", op.name, inferred.error().message);
    if (inferred->size() != targets.size())
      return wrong("{} has {} outputs, {} are named", op.name, inferred->size(), targets.size());
    if (written.empty()) written = *inferred;
    if (!std::ranges::equal(written, *inferred, is_stored_form))
      return wrong("{} gives {}, the text says {}", op.name, list_of(*inferred), list_of(written));
    const NodeId id = graph_.add_node(op, std::move(inputs), std::move(*attributes), std::move(written), path);
    for (size_t i = 0; i < targets.size(); ++i) INGOT_TRY(define(targets[i], graph_.node(id).outputs[i]));
    return {};
  }

  Status define(const std::string& name, ValueId id) {
    if (!names_.emplace(name, id).second) return wrong("%{} is defined twice", name);
    return {};
  }

  Result<ValueId> value_id(AttributeReader& in) {
    if (!in.take('%')) return wrong("expected %id before \"{}\"", in.rest());
    const std::string name(in.word());
    const auto it = names_.find(name);
    if (it == names_.end()) return wrong("%{} is used before it is defined", name);
    return it->second;
  }

  Result<Type> parse_type(AttributeReader& in) {
    Type type;
    std::vector<int64_t> dims;
    if (!attribute_text::parse(in, type.dtype) || !attribute_text::parse(in, dims))
      return wrong("expected a type such as f32[2,3] before \"{}\"", in.rest());
    if (dims.size() > Shape::kMaxRank)
      return wrong("a shape of {} dimensions, at most {}", dims.size(), Shape::kMaxRank);
    int64_t elements = 1;
    for (int64_t dim : dims)
      if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements)) return wrong("a shape with impossible extents");
    type.shape = Shape(dims);
    AttributeReader ahead = in;
    if (ahead.take(':') && ahead.word() == "packed") {
      if (!ahead.take('(') || !attribute_text::parse(ahead, type.packed_bytes) || !ahead.take(')') ||
          type.packed_bytes <= 0)
        return wrong("expected packed(bytes)");
      in = ahead;
    }
    return type;
  }

  const OpLookup& lookup_;
  Graph graph_;
  std::map<std::string, ValueId> names_;
  int line_ = 0;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text, const OpLookup& lookup) {
  return Parser(lookup).parse(text);
}

}  // namespace ingot
