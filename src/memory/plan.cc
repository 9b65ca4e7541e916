#include "memory/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/op.h"
#include "memory/alias.h"

namespace ingot {
namespace {

// Bytes that some values share. Values name their buffer and an offset into it.
struct Buffer {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
  int64_t persistent = kNone;  // offset in the persistent segment, once it is fixed there
  bool in_variable = false;    // holds a variable's old content from the start
};

class Planner {
 public:
  Planner(const Graph& graph, const VariableLayout& variables, const std::vector<int64_t>& temporary_bytes)
      : graph_(graph), variables_(variables), temporary_bytes_(temporary_bytes) {
    plan_.schedule = graph.schedule();
    const auto count = static_cast<size_t>(graph.value_count());
    buffer_.assign(count, kNone);
    offset_.assign(count, 0);
    first_.assign(count, 0);
    last_.assign(count, -1);
    stored_in_.assign(count, kNone);
  }

  MemoryPlan run() {
    find_lifetimes();
    find_view_lifetimes();
    for (const Source& source : graph_.sources) place_source(source);
    place_joins();
    const auto steps = static_cast<int32_t>(plan_.schedule.size());
    for (int32_t step = 0; step < steps; ++step) place_outputs(step);
    finish_stores();
    lay_out_workspace();
    return std::move(plan_);
  }

 private:
  size_t at(ValueId id) const { return static_cast<size_t>(id); }
  Buffer& buffer_of(ValueId id) { return buffers_[static_cast<size_t>(buffer_[at(id)])]; }

  // First and last step of every value by its own name.
  void find_lifetimes() {
    const auto end = static_cast<int32_t>(plan_.schedule.size());
    for (const Source& source : graph_.sources) first_[at(source.value)] = -1;
    for (int32_t step = 0; step < end; ++step) {
      const Node& node = graph_.node(plan_.schedule[static_cast<size_t>(step)]);
      for (ValueId input : node.inputs) last_[at(input)] = step;
      for (ValueId output : node.outputs) first_[at(output)] = last_[at(output)] = step;
    }
    for (const Output& output : graph_.outputs) last_[at(output.value)] = end;
    for (const Store& store : graph_.stores) {
      last_[at(store.value)] = end;
      stored_in_[at(store.value)] = store.variable;
    }
  }

  void new_buffer(ValueId id, int64_t bytes, int32_t first, int32_t last) {
    buffer_[at(id)] = static_cast<int32_t>(buffers_.size());
    offset_[at(id)] = 0;
    buffers_.push_back({bytes, first, last, kNone, false});
  }

  void join_buffer(ValueId id, ValueId base, int64_t offset) {
    buffer_[at(id)] = buffer_[at(base)];
    offset_[at(id)] = offset_[at(base)] + offset;
    Buffer& buffer = buffer_of(id);
    buffer.last = std::max(buffer.last, last_[at(id)]);
  }

  void place_source(const Source& source) {
    new_buffer(source.value, graph_.type(source.value).bytes(), -1, last_[at(source.value)]);
    if (source.kind == SourceKind::input) return;
    const Variable* variable = variables_.find(source.name);
    INGOT_CHECK(variable != nullptr, "the variable {} has no place", source.name);
    buffer_of(source.value).persistent = variable->offset;
    buffer_of(source.value).in_variable = true;
  }

  // A concat of neighbours in the persistent segment that are not written before its last use is a view of them.
  void place_joins() {
    for (NodeId id : plan_.schedule) {
      const Node& node = graph_.node(id);
      if (!joins_end_to_end(graph_, node) || !neighbours(node)) continue;
      const ValueId out = node.outputs[0];
      new_buffer(out, graph_.type(out).bytes(), -1, last_[at(out)]);
      buffer_of(out).persistent = buffers_[static_cast<size_t>(buffer_[at(node.inputs[0])])].persistent;
      buffer_of(out).in_variable = true;
      for (ValueId input : node.inputs) {  // the variables must keep their content for as long as the view is read
        Buffer& part = buffer_of(input);
        part.last = std::max(part.last, view_last_[at(out)]);
        last_[at(input)] = std::max(last_[at(input)], last_[at(out)]);
        view_last_[at(input)] = std::max(view_last_[at(input)], view_last_[at(out)]);
      }
    }
  }

  bool neighbours(const Node& node) {
    int64_t next = kNone;
    for (ValueId input : node.inputs) {
      if (buffer_[at(input)] == kNone || graph_.value(input).producer != kNone) return false;
      const Buffer& buffer = buffer_of(input);
      if (buffer.persistent == kNone || (next != kNone && buffer.persistent != next)) return false;
      next = buffer.persistent + buffer.bytes;
    }
    return true;
  }

  void place_outputs(int32_t step) {
    const Node& node = graph_.node(plan_.schedule[static_cast<size_t>(step)]);
    for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
      const ValueId out = node.outputs[static_cast<size_t>(i)];
      if (buffer_[at(out)] != kNone) continue;  // a join
      if (const ViewOf view = view_of(graph_, node, i); view.base != kNone) {
        join_buffer(out, view.base, view.offset);
        continue;
      }
      if (place_in_place(node, i, step)) continue;
      new_buffer(out, graph_.type(out).bytes(), step, last_[at(out)]);
    }
  }

  // Output i over the memory of the input that its op allows, where nothing reads that memory afterwards.
  bool place_in_place(const Node& node, int32_t i, int32_t step) {
    const auto& allowed = node.op->traits.in_place;
    if (static_cast<size_t>(i) >= allowed.size() || allowed[static_cast<size_t>(i)] == kNone) return false;
    const auto which = static_cast<size_t>(allowed[static_cast<size_t>(i)]);
    if (which >= node.inputs.size()) return false;
    const ValueId in = node.inputs[which], out = node.outputs[static_cast<size_t>(i)];
    const Buffer& buffer = buffer_of(in);
    if (graph_.type(in).bytes() != graph_.type(out).bytes() || offset_[at(in)] != 0 ||
        buffer.bytes != graph_.type(out).bytes())
      return false;
    if (std::ranges::count(node.inputs, in) > 1) return false;
    if (needed_after(in, step)) return false;
    if (buffer.in_variable && !becomes_content_of(out, in)) return false;
    join_buffer(out, in, 0);
    return true;
  }

  // Whether any value that shares bytes with `id` is read after this step, directly or through a view, or by this node
  // under another name.
  bool needed_after(ValueId id, int32_t step) {
    const Node& node = graph_.node(plan_.schedule[static_cast<size_t>(step)]);
    for (ValueId other = 0; other < graph_.value_count(); ++other) {
      if (buffer_[at(other)] == kNone) continue;
      if (buffer_[at(other)] != buffer_[at(id)] && !overlaps_variable(other, id)) continue;
      if (std::ranges::find(node.outputs, other) != node.outputs.end()) return true;
      if (view_last_[at(other)] > step) return true;
      if (other != id && std::ranges::find(node.inputs, other) != node.inputs.end()) return true;
    }
    return false;
  }

  // A join and the variables under it are different buffers over the same bytes.
  bool overlaps_variable(ValueId other, ValueId id) {
    if (buffer_[at(other)] == kNone) return false;
    const Buffer &a = buffer_of(other), &b = buffer_of(id);
    return a.persistent != kNone && b.persistent != kNone && a.persistent < b.persistent + b.bytes &&
           b.persistent < a.persistent + a.bytes;
  }

  // The last step that reads a value itself or a view of it (transitively), whether or not the view is placed yet.
  void find_view_lifetimes() {
    view_last_ = last_;
    for (auto it = plan_.schedule.rbegin(); it != plan_.schedule.rend(); ++it) {
      const Node& node = graph_.node(*it);
      for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
        const ViewOf view = view_of(graph_, node, i);
        if (view.base == kNone) continue;
        auto& base = view_last_[at(view.base)];
        base = std::max(base, view_last_[at(node.outputs[static_cast<size_t>(i)])]);
      }
    }
  }

  // Whether `out` (through in-place ops and views) is what its variable, whose old content is `in`, holds at the end.
  bool becomes_content_of(ValueId out, ValueId in) {
    const ValueId variable = stored_in_[at(out)];
    return variable != kNone && buffer_[at(variable)] == buffer_[at(in)];
  }

  // Values that are stored go where their variable lies, if its old content is no longer needed once their buffer is
  // begun.
  void finish_stores() {
    for (const Store& store : graph_.stores) {
      const Variable* variable = variables_.find(graph_.source_of(store.variable)->name);
      Buffer& buffer = buffer_of(store.value);
      const int64_t start = variable->offset - offset_[at(store.value)];
      if (buffer.persistent == start) continue;
      if (buffer.persistent == kNone && may_lie_at(buffer_[at(store.value)], start)) {
        buffer.persistent = start;
        continue;
      }
      plan_.copies.push_back({store.value, variable->offset});
    }
  }

  // Whether the buffer can lie at this offset of the persistent segment: it covers whole variables that are each given
  // a part of this very buffer, and no one needs their old content after the buffer's first write.
  bool may_lie_at(int32_t which, int64_t start) {
    const Buffer& buffer = buffers_[static_cast<size_t>(which)];
    if (start < 0 || start % kAlignment != 0 || buffer.first < 0) return false;
    int64_t covered = 0;
    for (const Store& store : graph_.stores) {
      if (buffer_[at(store.value)] != which) continue;
      const Variable* variable = variables_.find(graph_.source_of(store.variable)->name);
      if (variable->offset != start + offset_[at(store.value)]) return false;
      if (latest_use(store.variable) >= buffer.first) return false;
      covered += graph_.type(store.value).bytes();
    }
    return covered == buffer.bytes;
  }

  int32_t latest_use(ValueId variable) {
    int32_t latest = -1;
    for (ValueId other = 0; other < graph_.value_count(); ++other)
      if (buffer_[at(other)] != kNone && overlaps_variable(other, variable))
        latest = std::max(latest, view_last_[at(other)]);
    return latest;
  }

  struct Item {
    int64_t bytes;
    int32_t first, last;
    int64_t offset = 0;
  };

  // Greedy by size: each stretch goes to the lowest gap among those placed already whose lifetimes meet its own
  // (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
  void lay_out_workspace() {
    std::vector<Item> items;
    std::vector<int64_t> item_of_buffer(buffers_.size(), kNone), item_of_temporary(plan_.schedule.size(), kNone);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].persistent != kNone) continue;
      item_of_buffer[i] = static_cast<int64_t>(items.size());
      items.push_back({align_up(std::max<int64_t>(buffers_[i].bytes, 1)), buffers_[i].first, buffers_[i].last});
    }
    for (size_t step = 0; step < plan_.schedule.size(); ++step) {
      if (temporary_bytes_[step] == 0) continue;
      item_of_temporary[step] = static_cast<int64_t>(items.size());
      items.push_back({align_up(temporary_bytes_[step]), static_cast<int32_t>(step), static_cast<int32_t>(step)});
    }
    place_items(items);
    plan_.lower_bound_bytes = lower_bound(items);

    plan_.values.resize(static_cast<size_t>(graph_.value_count()));
    for (ValueId id = 0; id < graph_.value_count(); ++id) {
      if (buffer_[at(id)] == kNone) continue;  // of a dead node
      const auto which = static_cast<size_t>(buffer_[at(id)]);
      const Buffer& buffer = buffers_[which];
      const bool persistent = buffer.persistent != kNone;
      const int64_t base = persistent ? buffer.persistent : items[static_cast<size_t>(item_of_buffer[which])].offset;
      plan_.values[at(id)] = {persistent ? Segment::persistent : Segment::workspace, base + offset_[at(id)],
                              graph_.type(id).bytes(), first_[at(id)], last_[at(id)]};
    }
    plan_.temporaries.resize(plan_.schedule.size());
    for (size_t step = 0; step < plan_.schedule.size(); ++step) {
      if (item_of_temporary[step] == kNone) continue;
      const auto at_step = static_cast<int32_t>(step);
      plan_.temporaries[step] = {Segment::workspace, items[static_cast<size_t>(item_of_temporary[step])].offset,
                                 temporary_bytes_[step], at_step, at_step};
    }
  }

  void place_items(std::vector<Item>& items) {
    std::vector<size_t> by_size(items.size());
    std::iota(by_size.begin(), by_size.end(), size_t{0});
    std::ranges::stable_sort(by_size, [&](size_t a, size_t b) { return items[a].bytes > items[b].bytes; });
    std::vector<size_t> placed;  // by offset
    for (size_t index : by_size) {
      Item& item = items[index];
      int64_t offset = 0, best = kNone, best_gap = std::numeric_limits<int64_t>::max();
      for (size_t other : placed) {
        const Item& there = items[other];
        if (there.last < item.first || item.last < there.first) continue;
        const int64_t gap = there.offset - offset;
        if (gap >= item.bytes && gap < best_gap) {
          best = offset;
          best_gap = gap;
        }
        offset = std::max(offset, there.offset + there.bytes);
      }
      item.offset = best == kNone ? offset : best;
      placed.insert(std::ranges::upper_bound(placed, item.offset, {}, [&](size_t k) { return items[k].offset; }),
                    index);
      plan_.workspace_bytes = std::max(plan_.workspace_bytes, item.offset + item.bytes);
    }
  }

  int64_t lower_bound(const std::vector<Item>& items) const {
    std::vector<int64_t> change(plan_.schedule.size() + 3, 0);
    for (const Item& item : items) {
      change[static_cast<size_t>(item.first + 1)] += item.bytes;
      change[static_cast<size_t>(item.last + 2)] -= item.bytes;
    }
    int64_t now = 0, most = 0;
    for (int64_t delta : change) most = std::max(most, now += delta);
    return most;
  }

  const Graph& graph_;
  const VariableLayout& variables_;
  const std::vector<int64_t>& temporary_bytes_;
  MemoryPlan plan_;
  std::vector<Buffer> buffers_;
  std::vector<int32_t> buffer_;  // by value
  std::vector<int64_t> offset_;  // by value, into its buffer
  std::vector<int32_t> first_, last_, view_last_;
  std::vector<ValueId> stored_in_;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const VariableLayout& variables,
                       const std::vector<int64_t>& temporary_bytes) {
  return Planner(graph, variables, temporary_bytes).run();
}

int64_t bytes_held_across(const MemoryPlan& plan, int32_t step) {
  std::vector<std::pair<int64_t, int64_t>> stretches;  // views lie in what they are views of
  for (const Placement& p : plan.values)
    if (p.segment == Segment::workspace && p.first < step && p.last > step)
      stretches.emplace_back(p.offset, p.offset + p.bytes);
  std::ranges::sort(stretches);
  int64_t held = 0, end = 0;
  for (const auto& [from, to] : stretches) {
    held += std::max<int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return held;
}

}  // namespace ingot
