// Measuring the nodes of a graph, one by one, beside what the machine could do.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "cost/estimate.h"

namespace ingot::cli {

// Puts values into a source before it is measured.
using SourceFill = std::function<void(const std::string& name, const TensorView& tensor)>;
// Small normal numbers for floats, [0, bound) for i32 (all zero for bound 1).
void fill_random(const std::string& name, const TensorView& tensor, int64_t bound);

struct NodeTime {
  std::string op, path;
  bool backward = false;  // after the node that makes the output "loss"
  OpCost cost;
  double seconds = 0;  // the median
};

// Runs the graph, all of whose inputs are filled once, `repetitions` times after one of warm-up.
Result<std::vector<NodeTime>> time_nodes(Graph graph, const SourceFill& fill, int64_t repetitions,
                                         const ThreadPool& pool);

// A line of the result: one node or several.
struct BenchRow {
  std::string name;
  double seconds = 0, limit_seconds = 0;
  OpCost cost;

  void add(const NodeTime& node, const MachineLimits& limits);
};

// A table, or one JSON object {peak_gflops, product_gflops, copy_gbytes_per_s, rows: [{name, ms, gflops, gbytes_per_s,
// limit_ms, of_limit}]}.
void print_rows(const std::vector<BenchRow>& rows, const MachineLimits& limits, bool json);

}  // namespace ingot::cli
