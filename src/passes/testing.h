// For tests of passes: graphs from text, and whether two graphs compute the same.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "autodiff/gradient.h"
#include "base/rng.h"
#include "graph/text.h"
#include "ops/interpret.h"
#include "ops/registry.h"
#include "passes/pass.h"

namespace ingot::testing {

inline Graph graph_of(std::string_view text) {
  auto graph = parse_graph(text, find_op);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return graph.ok() ? std::move(*graph) : Graph();
}

// Values for all sources: floats in [-1, 1), small integers; among "targets" every fifth does not count.
inline std::map<std::string, RefTensor> random_sources(const Graph& graph) {
  std::map<std::string, RefTensor> sources;
  for (const Source& source : graph.sources) {
    const Type& type = graph.type(source.value);
    RefTensor tensor{type.shape, {}};
    const uint64_t key = stream_key(7, source.name);
    for (int64_t i = 0; i < type.shape.elements(); ++i) {
      const uint32_t bits = philox(key, static_cast<uint64_t>(i))[0];
      const bool skipped = source.name == "targets" && i % 5 == 3;
      tensor.data.push_back(is_float(type.dtype) ? bits * 0x1p-31 - 1.0 : skipped ? -100.0 : bits % 3);
    }
    sources[source.name] = std::move(tensor);
  }
  return sources;
}

// Same outputs and stored values up to rounding in double precision. Sources of `after` may be fewer, not others.
inline void expect_same_results(const Graph& before, const Graph& after, double tolerance = 1e-12) {
  ASSERT_TRUE(verify_graph(after).ok()) << verify_graph(after).error().message;
  const auto sources = random_sources(before);
  const RandomState random{.seed = 3, .step = 5, .first_sequence = 2, .batch = 2};
  const auto expected = interpret_results(before, sources, random), found = interpret_results(after, sources, random);
  ASSERT_EQ(expected.size(), found.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    const RefTensor& other = found.at(name);
    ASSERT_EQ(tensor.shape, other.shape) << name;
    for (size_t i = 0; i < tensor.data.size(); ++i)
      if (tensor.data[i] != other.data[i]) {
        ASSERT_NEAR(tensor.data[i], other.data[i], tolerance * std::max(1.0, std::abs(tensor.data[i]))) << name << i;
      }
  }
}

struct PassResult {
  bool changed = false;
  std::string text;
  PassContext context;
};

// The graph after the pass, which must compute what it computed before.
inline PassResult run_pass(bool (*pass)(Graph&, PassContext&), std::string_view text, PassContext context = {}) {
  Graph graph = graph_of(text);
  const Graph before = graph;
  PassResult result{false, "", std::move(context)};
  result.changed = pass(graph, result.context);
  graph.remove_dead_nodes();
  expect_same_results(before, graph);
  result.text = print_graph(graph);
  return result;
}

inline void expect_unchanged(bool (*pass)(Graph&, PassContext&), std::string_view text) {
  const PassResult result = run_pass(pass, text);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, print_graph(graph_of(text)));
}

// The gradients of the output "loss" by every parameter become outputs "d.NAME".
inline void differentiate(Graph& graph) {
  std::vector<ValueId> wrt;
  for (const Source& source : graph.sources)
    if (source.kind == SourceKind::parameter) wrt.push_back(source.value);
  const auto gradients = add_gradients(graph, graph.find_output("loss"), wrt);
  for (size_t i = 0; i < wrt.size(); ++i)
    if (gradients[i] != kNone) graph.outputs.push_back({"d." + graph.source_of(wrt[i])->name, gradients[i]});
}

// The notes that say why a pattern was not fused.
inline std::vector<std::string> misses(const PassContext& context) {
  std::vector<std::string> reasons;
  for (const FusionNote& note : context.notes)
    if (!note.applied) reasons.push_back(note.pattern + ": " + note.reason);
  return reasons;
}

}  // namespace ingot::testing
