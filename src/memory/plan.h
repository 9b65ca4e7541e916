// The static memory plan of one program: where every value lies, decided before anything runs. A value is either (a
// part of) a variable in the persistent segment, or a stretch of the workspace for as long as it is needed. The plan is
// plain data; check_plan shares no code with what makes it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "memory/variables.h"

namespace ingot {

enum class Segment : uint8_t { none, persistent, workspace };

// Where a value's bytes lie, and between which steps of the schedule (inclusive) they hold it. -1: from before the
// first.
struct Placement {
  Segment segment = Segment::none;
  int64_t offset = 0;
  int64_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
  bool operator==(const Placement&) const = default;
};

// At the end of the run `value` has to be copied into the variable at `offset` of the persistent segment (where the
// value could not be computed in its place).
struct FinalCopy {
  ValueId value = kNone;
  int64_t offset = 0;
};

struct MemoryPlan {
  std::vector<NodeId> schedule;
  std::vector<Placement> values;       // by ValueId
  std::vector<Placement> temporaries;  // by position in the schedule; what the node's kernel needs while it runs
  std::vector<FinalCopy> copies;
  int64_t workspace_bytes = 0;
  int64_t lower_bound_bytes = 0;  // the largest sum of workspace bytes that are needed at one time
};

// temporary_bytes: for each position of graph.schedule(), the bytes that the node's kernel needs for itself.
MemoryPlan plan_memory(const Graph& graph, const VariableLayout& variables,
                       const std::vector<int64_t>& temporary_bytes);

// Bytes of the workspace that values from before a step (a position of the schedule) hold beyond it.
int64_t bytes_held_across(const MemoryPlan& plan, int32_t step);

// Plays the schedule over the plan and checks that every node finds its inputs' bytes as their producers left them,
// that no node writes over what it reads (unless its traits allow it), that outputs and stored variables hold their
// values at the end, and that nothing leaves its segment.
Status check_plan(const Graph& graph, const VariableLayout& variables, const MemoryPlan& plan);

}  // namespace ingot
