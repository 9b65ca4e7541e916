#include <algorithm>
#include <map>

#include "graph/op.h"
#include "memory/plan.h"

// Plays a program over a plan with symbols in place of bytes: each stretch of memory remembers which value's bytes it
// holds.
namespace ingot {
namespace {

// `length` bytes that are those of value `root` from `offset` on.
struct Piece {
  int64_t length = 0;
  ValueId root = kNone;
  int64_t offset = 0;
  bool operator==(const Piece&) const = default;
};
using Content = std::vector<Piece>;

class Memory {
 public:
  explicit Memory(int64_t bytes) : bytes_(bytes) { pieces_[0] = {bytes, kNone, 0}; }

  bool inside(int64_t offset, int64_t length) const { return offset >= 0 && length >= 0 && offset + length <= bytes_; }

  void write(int64_t offset, const Content& content) {
    for (const Piece& piece : content) {
      cut(offset);
      cut(offset + piece.length);
      pieces_.erase(pieces_.lower_bound(offset), pieces_.lower_bound(offset + piece.length));
      if (piece.length > 0) pieces_[offset] = piece;
      offset += piece.length;
    }
  }

  bool holds(int64_t offset, const Content& content) const {
    for (const Piece& wanted : content) {
      for (int64_t done = 0; done < wanted.length;) {
        auto it = std::prev(pieces_.upper_bound(offset + done));
        const int64_t into = offset + done - it->first;
        if (it->second.root != wanted.root || it->second.offset + into != wanted.offset + done) return false;
        done += it->second.length - into;
      }
      offset += wanted.length;
    }
    return true;
  }

 private:
  void cut(int64_t at) {
    if (at <= 0 || at >= bytes_) return;
    auto it = std::prev(pieces_.upper_bound(at));
    const int64_t into = at - it->first;
    if (into == 0) return;
    const Piece tail{it->second.length - into, it->second.root,
                     it->second.root == kNone ? 0 : it->second.offset + into};
    it->second.length = into;
    pieces_[at] = tail;
  }

  int64_t bytes_;
  std::map<int64_t, Piece> pieces_;
};

Content part(const Content& whole, int64_t offset, int64_t length) {
  Content result;
  for (const Piece& piece : whole) {
    const int64_t begin = std::max<int64_t>(offset, 0), end = std::min(offset + length, piece.length);
    if (begin < end) result.push_back({end - begin, piece.root, piece.offset + begin});
    offset -= piece.length;
  }
  return result;
}

bool overlap(const Placement& a, const Placement& b) {
  return a.segment == b.segment && a.segment != Segment::none && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

class Player {
 public:
  Player(const Graph& graph, const VariableLayout& variables, const MemoryPlan& plan)
      : graph_(graph),
        variables_(variables),
        plan_(plan),
        persistent_(variables.bytes()),
        workspace_(plan.workspace_bytes),
        contents_(static_cast<size_t>(graph.value_count())) {}

  Status play() {
    if (plan_.values.size() != contents_.size())
      return wrong("it has places for {} values of {}", plan_.values.size(), contents_.size());
    INGOT_TRY(begin());
    for (size_t step = 0; step < plan_.schedule.size(); ++step) {
      INGOT_TRY(read_inputs(step));
      INGOT_TRY(write_outputs(step));
    }
    return end();
  }

 private:
  template <class... Args>
  Error wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return failed_error("memory plan of {}: {}", graph_.name, fmt::format(format, std::forward<Args>(args)...));
  }
  Memory& memory(Segment segment) { return segment == Segment::persistent ? persistent_ : workspace_; }
  const Placement& place(ValueId id) const { return plan_.values[static_cast<size_t>(id)]; }
  Content& content(ValueId id) { return contents_[static_cast<size_t>(id)]; }
  Content own(ValueId id) const { return {{graph_.type(id).bytes(), id, 0}}; }

  Status check_place(const Placement& where, int64_t bytes, ValueId id) {
    if (where.segment == Segment::none || where.bytes != bytes || !memory(where.segment).inside(where.offset, bytes))
      return wrong("value %{} of {} bytes has {} bytes at {}, outside its segment", id, bytes, where.bytes,
                   where.offset);
    return {};
  }

  Status begin() {
    for (const Source& source : graph_.sources) {
      content(source.value) = own(source.value);
      INGOT_TRY(check_place(place(source.value), graph_.type(source.value).bytes(), source.value));
      const Variable* variable = variables_.find(source.name);
      const bool persistent = source.kind != SourceKind::input;
      if (persistent && (variable == nullptr || place(source.value).segment != Segment::persistent ||
                         place(source.value).offset != variable->offset))
        return wrong("{} does not lie where its variable does", source.name);
      memory(place(source.value).segment).write(place(source.value).offset, own(source.value));
    }
    return {};
  }

  Status read_inputs(size_t step) {
    const Node& node = graph_.node(plan_.schedule[step]);
    for (ValueId input : node.inputs)
      if (!memory(place(input).segment).holds(place(input).offset, content(input)))
        return wrong("step {} ({} at \"{}\") reads %{}, whose bytes were written over", step, node.op->name, node.path,
                     input);
    return {};
  }

  // What a node that only renames or joins bytes would show; empty where it computes.
  Content renamed(const Node& node, int32_t output) {
    const OpTraits& traits = node.op->traits;
    const Type& type = graph_.type(node.outputs[static_cast<size_t>(output)]);
    if (traits.view) return content(node.inputs[0]);
    if (traits.part.has_value()) {
      const PartOf at = (*traits.part)(node.attributes, output);
      const Shape& whole = graph_.shape(node.inputs[0]);
      int64_t before = 1, below = 1;
      for (int axis = 0; axis < whole.rank(); ++axis) {
        if (axis < at.axis) before *= whole[axis];
        if (axis > at.axis) below *= whole[axis];
      }
      if (before != 1) return {};
      return part(content(node.inputs[0]), at.start * below * static_cast<int64_t>(size_of(type.dtype)), type.bytes());
    }
    if (traits.join.has_value()) {
      for (int axis = 0; axis < (*traits.join)(node.attributes); ++axis)
        if (type.shape[axis] != 1) return {};
      Content all;
      for (ValueId input : node.inputs) all.insert(all.end(), content(input).begin(), content(input).end());
      return all;
    }
    return {};
  }

  Status write_outputs(size_t step) {
    const Node& node = graph_.node(plan_.schedule[step]);
    std::vector<ValueId> written;
    for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
      const ValueId out = node.outputs[static_cast<size_t>(i)];
      INGOT_TRY(check_place(place(out), graph_.type(out).bytes(), out));
      Content same = renamed(node, i);
      if (!same.empty() && memory(place(out).segment).holds(place(out).offset, same)) {
        content(out) = std::move(same);
        continue;
      }
      INGOT_TRY(check_overlaps(node, i, step, written));
      content(out) = own(out);
      written.push_back(out);
    }
    const Placement& temporary = plan_.temporaries[step];
    if (temporary.segment != Segment::none) {
      if (!workspace_.inside(temporary.offset, temporary.bytes))
        return wrong("step {}: its temporary lies outside the workspace", step);
      workspace_.write(temporary.offset, {{temporary.bytes, kNone, 0}});
      INGOT_TRY(read_inputs(step));
      for (ValueId out : written)
        if (overlap(temporary, place(out)))
          return wrong("step {} ({}): its temporary overlaps its output", step, node.op->name);
    }
    for (ValueId out : written) memory(place(out).segment).write(place(out).offset, own(out));
    return {};
  }

  Status check_overlaps(const Node& node, int32_t output, size_t step, const std::vector<ValueId>& written) {
    const Placement& to = place(node.outputs[static_cast<size_t>(output)]);
    const auto& allowed = node.op->traits.in_place;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Placement& from = place(node.inputs[i]);
      if (!overlap(to, from)) continue;
      const bool in_place = static_cast<size_t>(output) < allowed.size() &&
                            allowed[static_cast<size_t>(output)] == static_cast<int32_t>(i);
      const bool unique = std::ranges::count(node.inputs, node.inputs[i]) == 1;
      if (!in_place || !unique || to.offset != from.offset || to.bytes != from.bytes)
        return wrong("step {} ({} at \"{}\") writes output {} over its input {}", step, node.op->name, node.path,
                     output, i);
    }
    for (ValueId other : written)
      if (overlap(to, place(other))) return wrong("step {} ({}): two outputs overlap", step, node.op->name);
    return {};
  }

  Status end() {
    for (const FinalCopy& copy : plan_.copies) {
      if (!memory(place(copy.value).segment).holds(place(copy.value).offset, content(copy.value)))
        return wrong("the copy of %{} at the end finds other bytes", copy.value);
      if (!persistent_.inside(copy.offset, place(copy.value).bytes))
        return wrong("a copy at the end leaves the persistent segment");
      persistent_.write(copy.offset, content(copy.value));
    }
    for (const Output& output : graph_.outputs)
      if (!memory(place(output.value).segment).holds(place(output.value).offset, content(output.value)))
        return wrong("the output {} does not hold its value at the end", output.name);
    std::map<std::string, ValueId> expected;
    for (const Source& source : graph_.sources)
      if (source.kind != SourceKind::input) expected[source.name] = source.value;
    for (const Store& store : graph_.stores) expected[graph_.source_of(store.variable)->name] = store.value;
    for (const auto& [name, value] : expected)
      if (!persistent_.holds(variables_.find(name)->offset, content(value)))
        return wrong("the variable {} does not hold its value at the end", name);
    return {};
  }

  const Graph& graph_;
  const VariableLayout& variables_;
  const MemoryPlan& plan_;
  Memory persistent_, workspace_;
  std::vector<Content> contents_;
};

}  // namespace

Status check_plan(const Graph& graph, const VariableLayout& variables, const MemoryPlan& plan) {
  return Player(graph, variables, plan).play();
}

}  // namespace ingot
