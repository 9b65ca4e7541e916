#include "bench_graph.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/median.h"
#include "base/rng.h"
#include "command.h"
#include "runtime/program.h"

namespace ingot::cli {
namespace {

// Inputs become variables: what is measured is the kernels, not the copying of inputs.
void make_inputs_variables(Graph& graph) {
  for (Source& source : graph.sources)
    if (source.kind == SourceKind::input) source.kind = SourceKind::state;
}

Status record(const Graph& graph, const NodeEvent& event, size_t& at, std::vector<NodeTime>& nodes,
              std::vector<std::vector<double>>& seconds) {
  if (at == nodes.size()) {
    const ValueId loss = graph.find_output("loss");
    const bool behind_loss = at > 0 && nodes.back().backward;
    const bool makes_loss = std::ranges::find(event.node.outputs, loss) != event.node.outputs.end();
    nodes.push_back(
        {std::string(event.node.op->name), event.node.path, behind_loss || makes_loss, cost_of(graph, event.node), 0});
    seconds.emplace_back();
  }
  seconds[at++].push_back(event.seconds());
  return {};
}

nlohmann::ordered_json row_json(const BenchRow& row) {
  return {{"name", row.name},
          {"ms", row.seconds * 1e3},
          {"gflops", row.cost.flops / row.seconds * 1e-9},
          {"gbytes_per_s", row.cost.bytes / row.seconds * 1e-9},
          {"limit_ms", row.limit_seconds * 1e3},
          {"of_limit", row.limit_seconds / row.seconds}};
}

}  // namespace

void fill_random(const std::string& name, const TensorView& tensor, int64_t bound) {
  const uint64_t key = stream_key(1, name);
  if (tensor.dtype == DType::i32) {
    uint64_t i = 0;
    for (int32_t& value : tensor.span<int32_t>())
      value = static_cast<int32_t>(bounded_at(key, i++, static_cast<uint64_t>(bound)));
    return;
  }
  if (tensor.dtype == DType::u8) {
    uint64_t i = 0;
    for (uint8_t& value : tensor.span<uint8_t>()) value = static_cast<uint8_t>(bounded_at(key, i++, 256));
    return;
  }
  // As many as a period of no consequence to any kernel.
  constexpr size_t kPeriod = 65521;
  const auto values = tensor.span<float>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i < kPeriod ? static_cast<float>(0.5 * normal_at(key, i)) : values[i - kPeriod];
}

Result<std::vector<NodeTime>> time_nodes(Graph graph, const SourceFill& fill, int64_t repetitions,
                                         const ThreadPool& pool) {
  make_inputs_variables(graph);
  VariableLayout variables;
  add_variables_of(graph, variables);
  INGOT_ASSIGN(const auto program, Program::create(std::move(graph), variables, pool.threads()));
  INGOT_ASSIGN(Arena arena, Arena::create(variables, pool));
  INGOT_TRY(arena.reserve(program->plan().workspace_bytes, program->scratch_bytes(), pool));
  for (const Source& source : program->graph().sources) fill(source.name, arena.variable(source.name));

  std::vector<NodeTime> nodes;
  std::vector<std::vector<double>> seconds;
  size_t at = 0;
  const NodeObserver observer{
      [&](const NodeEvent& event) { return record(program->graph(), event, at, nodes, seconds); }};
  INGOT_TRY(program->run(arena, pool, {}, {}));
  for (int64_t i = 0; i < repetitions; ++i) {
    at = 0;
    INGOT_TRY(program->run(arena, pool, {}, {}, &observer));
  }
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i].seconds = median(std::move(seconds[i]));
  return nodes;
}

void BenchRow::add(const NodeTime& node, const MachineLimits& limits) {
  seconds += node.seconds;
  limit_seconds += seconds_at_limit(node.cost, limits);
  cost += node.cost;
}

void print_rows(const std::vector<BenchRow>& rows, const MachineLimits& limits, bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const BenchRow& row : rows) list.push_back(row_json(row));
    print_json({{"peak_gflops", limits.peak_gflops},
                {"product_gflops", limits.product_gflops},
                {"copy_gbytes_per_s", limits.copy_gbytes_per_s},
                {"rows", list}});
    return;
  }
  std::cout << fmt::format("limits: {:.1f} GFLOP/s in products ({:.1f} on registers), {:.1f} GB/s copying\n",
                           limits.product_gflops, limits.peak_gflops, limits.copy_gbytes_per_s)
            << fmt::format("{:<30} {:>10} {:>10} {:>8} {:>10} {:>9}\n", "", "ms", "GFLOP/s", "GB/s", "limit ms",
                           "of limit");
  for (const BenchRow& row : rows)
    std::cout << fmt::format("{:<30} {:>10.3f} {:>10.1f} {:>8.1f} {:>10.3f} {:>8.0f}%\n", row.name, row.seconds * 1e3,
                             row.cost.flops / row.seconds * 1e-9, row.cost.bytes / row.seconds * 1e-9,
                             row.limit_seconds * 1e3, 100 * row.limit_seconds / row.seconds);
  std::cout << std::flush;
}

}  // namespace ingot::cli
