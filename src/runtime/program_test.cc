// Programs of a size at which work is cut into several tiles, chunks and packed operands, against the reference
// evaluator.
#include "runtime/program.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "graph/builder.h"
#include "graph/text.h"
#include "ops/interpret.h"
#include "ops/registry.h"

namespace ingot {
namespace {

struct Fed {
  std::map<std::string, RefTensor> reference;
  std::map<std::string, std::vector<uint32_t>> words;
  std::vector<ProgramInput> inputs;
};

// Random content for every input: floats in [-0.5, 0.5), integers in [0, `integers`) with every seventh negative.
Fed feed(const Graph& graph, int64_t integers) {
  Fed fed;
  for (const Source& source : graph.sources) {
    const Type& type = graph.type(source.value);
    RefTensor tensor{type.shape, {}};
    std::vector<uint32_t>& words = fed.words[source.name];
    const uint64_t key = stream_key(3, source.name);
    for (int64_t i = 0; i < type.shape.elements(); ++i) {
      const uint32_t bits = philox(key, static_cast<uint64_t>(i))[0];
      if (type.dtype == DType::f32) {
        const float value = uniform_from_bits(bits) - 0.5f;
        tensor.data.push_back(value);
        words.push_back(std::bit_cast<uint32_t>(value));
      } else {
        const int32_t value = i % 7 == 3 ? -100 : static_cast<int32_t>(bits % static_cast<uint32_t>(integers));
        tensor.data.push_back(value);
        words.push_back(static_cast<uint32_t>(value));
      }
    }
    fed.reference[source.name] = std::move(tensor);
  }
  for (const Source& source : graph.sources)
    fed.inputs.push_back({source.name,
                          {reinterpret_cast<const std::byte*>(fed.words[source.name].data()),
                           graph.type(source.value).dtype, graph.shape(source.value)}});
  return fed;
}

void expect_reference_results(const Graph& graph, int64_t integers, double tolerance) {
  const Fed fed = feed(graph, integers);
  const auto expected = interpret_results(graph, fed.reference);
  for (int threads : {1, 3}) {
    const ThreadPool pool(threads);
    auto program = Program::create(graph, {}, threads);
    ASSERT_TRUE(program.ok()) << program.error().message;
    auto arena = Arena::create({}, pool);
    ASSERT_TRUE(arena->reserve((*program)->plan().workspace_bytes, (*program)->scratch_bytes(), pool).ok());
    ASSERT_TRUE((*program)->run(*arena, pool, fed.inputs, {}).ok());
    for (const Output& output : graph.outputs) {
      const auto got = (*program)->output(*arena, output.name).span<float>();
      const auto& want = expected.at(output.name).data;
      double largest = 1e-3;
      for (double value : want) largest = std::max(largest, std::abs(value));
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], tolerance * largest) << output.name << " element " << i;
    }
  }
}

Graph parsed(const std::string& text) {
  auto graph = parse_graph(text, find_op);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return std::move(*graph);
}

// More rows than a chunk has, the last chunk shorter than the others.
TEST(LinearCrossEntropy, GivesLossAndGradientsOverSeveralChunksOfRows) {
  for (const std::string layout :
       {"transpose_b=true", "transpose_b=false", "transpose_b=true, softcap=1.5", "transpose_b=false, softcap=1.5"}) {
    const std::string w = layout.starts_with("transpose_b=true") ? "[131,24]" : "[24,131]";
    expect_reference_results(
        parsed("%0 = input \"x\" : f32[601,24]\n%1 = input \"w\" : f32" + w +
               "\n%2 = input \"targets\" : i32[601]\n%3 = input \"scale\" : f32[]\n%4 = input \"dloss\" : f32[]\n"
               "%5, %6, %7 = linear_cross_entropy_grad(%0, %1, %2, %3, %4) {" +
               layout +
               "}\n"
               "%8 = linear_cross_entropy(%0, %1, %2, %3) {" +
               layout +
               "}\n"
               "output \"loss\" = %5\noutput \"dx\" = %6\noutput \"dw\" = %7\noutput \"loss2\" = %8\n"),
        131, 2e-6);
  }
}

TEST(Linear, RunsItsProgramOnTilesOfAPackedProduct) {
  expect_reference_results(parsed(R"(
%0 = input "x" : f32[3,170,40]
%1 = input "w" : f32[300,40]
%2 = input "bias" : f32[300]
%3 = input "residual" : f32[3,170,300]
%4, %5 = linear(%0, %1, %2, %3) {transpose_b=true, program=[{op="add", inputs=[0,1], attributes="{}"}, {op="gelu_tanh", inputs=[3], attributes="{}"}, {op="add", inputs=[4,2], attributes="{}"}], outputs=[3,5]}
output "pre" = %4
output "y" = %5
)"),
                           1, 2e-6);
}

TEST(Matmul, AddsAWeightGradientToItsAccumulator) {
  expect_reference_results(parsed(R"(
%0 = input "acc" : f32[72,200]
%1 = input "x" : f32[520,72]
%2 = input "dy" : f32[520,200]
%3 = matmul_add(%0, %1, %2) {transpose_a=true, transpose_b=false}
output "dw" = %3
)"),
                           1, 2e-6);
}

TEST(Norms, SumTheGradientsOfTheirWeightsOverManyTiles) {
  expect_reference_results(parsed(R"(
%0 = input "x" : f32[700,65]
%1 = input "weight" : f32[65]
%2 = input "bias" : f32[65]
%3 = input "dy" : f32[700,65]
%4, %5, %6 = layer_norm(%0, %1, %2) {axes=1, eps=1e-05, has_weight=true, has_bias=true}
%7, %8, %9 = layer_norm_grad(%0, %1, %5, %6, %3) {axes=1, has_weight=true, has_bias=true, has_residual=false}
output "y" = %4
output "dx" = %7
output "dweight" = %8
output "dbias" = %9
)"),
                           1, 5e-6);
}

TEST(Attention, RunsOverSeveralTilesWithPackedHeads) {
  const std::string attributes = "{heads=4, kv_heads=2, head_dim=10, scale=0.3, window=90, dropout=0.0, stream=\"\"}";
  Graph graph = parsed(
      "%0 = input \"qkv\" : f32[2,203,80]\n%1 = input \"first\" : i32[2,203]\n%2 = input \"dout\" : f32[2,203,40]\n"
      "%3, %4 = attention_packed(%0, %1) " +
      attributes + "\n%5 = attention_packed_grad(%0, %1, %3, %4, %2) " + attributes +
      "\noutput \"out\" = %3\noutput \"dqkv\" = %5\n");
  expect_reference_results(graph, 200, 5e-6);
}

TEST(Program, RefusesAnOpWithoutAKernelAndNamesIt) {
  const Graph graph = parsed("%0 = input \"x\" : f64[4]\n%1 = add(%0, %0)\noutput \"y\" = %1\n");
  const auto program = Program::create(graph, {}, 1);
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.error().message.find("add"), std::string::npos);
}

TEST(Program, TellsAnObserverEveryNodeInOrder) {
  const Graph graph = parsed("%0 = input \"x\" : f32[4]\n%1 = exp(%0)\n%2 = neg(%1)\noutput \"y\" = %2\n");
  const ThreadPool pool(1);
  auto program = Program::create(graph, {}, 1);
  auto arena = Arena::create({}, pool);
  ASSERT_TRUE(arena->reserve((*program)->plan().workspace_bytes, (*program)->scratch_bytes(), pool).ok());
  std::vector<std::string> seen;
  const NodeObserver observer{[&](const NodeEvent& event) -> Status {
    seen.emplace_back(event.node.op->name);
    return {};
  }};
  const Fed fed = feed(graph, 1);
  ASSERT_TRUE((*program)->run(*arena, pool, fed.inputs, {}, &observer).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"exp", "neg"}));
}

}  // namespace
}  // namespace ingot
