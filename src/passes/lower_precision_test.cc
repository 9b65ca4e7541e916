// Where values are rounded to 16 bits, what stays in fp32, and that no later pass changes either.
#include "passes/lower_precision.h"

#include <gtest/gtest.h>

#include "passes/fold.h"
#include "passes/fuse_cast.h"
#include "passes/fuse_elementwise.h"
#include "passes/fuse_epilogue.h"
#include "passes/fuse_residual_norm.h"
#include "passes/testing.h"

namespace ingot {
namespace {

using ingot::testing::differentiate;
using ingot::testing::graph_of;

// A residual block of a norm and two products, after an embedding whose table is the head's too.
constexpr std::string_view kBlock = R"(
%0 = input "ids" : i32[2,3]
%1 = parameter "table" : f32[5,4]
%2 = parameter "norm" : f32[4]
%3 = parameter "up" : f32[4,8]
%4 = parameter "bias" : f32[8]
%5 = parameter "down" : f32[8,4]
%6 = embedding(%1, %0) : f32[2,3,4] @"embed"
%7, %8 = rms_norm(%6, %2) {eps=1e-05, has_weight=true} : f32[2,3,4], f32[2,3] @"layers.0.norm"
%9 = matmul(%7, %3) : f32[2,3,8] @"layers.0.mlp"
%10 = add(%9, %4) : f32[2,3,8] @"layers.0.mlp"
%11 = gelu(%10) : f32[2,3,8] @"layers.0.mlp"
%12 = matmul(%11, %5) : f32[2,3,4] @"layers.0.mlp"
%13 = add(%6, %12) : f32[2,3,4] @"layers.0"
%14, %15 = rms_norm(%13, %2) {eps=1e-05, has_weight=true} : f32[2,3,4], f32[2,3] @"norm"
%16 = reshape(%14) {shape=[6,4]} : f32[6,4] @"head"
%17 = matmul(%16, %1) {transpose_b=true} : f32[6,5] @"head"
%18 = mul(%17, %17) : f32[6,5] @"loss"
%19 = sum(%18) {axes=[0,1]} : f32[] @"loss"
output "loss" = %19
)";

Graph block() {
  return graph_of(kBlock);
}

PassContext context_of(DType dtype, std::vector<std::string> also_fp32 = {}) {
  std::vector<std::string> fp32_ops = {"norm", "softmax", "loss", "activation"};
  fp32_ops.insert(fp32_ops.end(), also_fp32.begin(), also_fp32.end());
  PassContext context;
  context.precision = {dtype, std::move(fp32_ops)};
  return context;
}

Graph lowered(Graph graph, DType dtype = DType::bf16, std::vector<std::string> also_fp32 = {}) {
  PassContext context = context_of(dtype, std::move(also_fp32));
  EXPECT_TRUE(lower_precision(graph, context));
  graph.remove_dead_nodes();
  const Status sound = verify_graph(graph);
  EXPECT_TRUE(sound.ok()) << sound.error().message;
  return graph;
}

// The dtypes of what the node of that op and path reads, in their order.
std::vector<DType> read_by(const Graph& graph, std::string_view op, std::string_view path, size_t which = 0) {
  for (const NodeId id : graph.schedule()) {
    const Node& node = graph.node(id);
    if (node.op->name != op || node.path != path || which-- > 0) continue;
    std::vector<DType> dtypes;
    for (const ValueId input : node.inputs) dtypes.push_back(graph.type(input).dtype);
    return dtypes;
  }
  ADD_FAILURE() << "no " << op << " at " << path;
  return {};
}

using Dtypes = std::vector<DType>;
constexpr DType kBf16 = DType::bf16, kF32 = DType::f32;

TEST(LowerPrecision, RoundsWhatProductsNormsAndActivationsRead) {
  const Graph graph = lowered(block());
  EXPECT_EQ(read_by(graph, "matmul", "layers.0.mlp", 0), (Dtypes{kBf16, kBf16}));
  EXPECT_EQ(read_by(graph, "matmul", "layers.0.mlp", 1), (Dtypes{kBf16, kBf16}));
  EXPECT_EQ(read_by(graph, "matmul", "head"), (Dtypes{kBf16, kBf16}));
  EXPECT_EQ(read_by(graph, "rms_norm", "layers.0.norm"), (Dtypes{kBf16, kF32}));
  EXPECT_EQ(read_by(graph, "gelu", "layers.0.mlp"), (Dtypes{kBf16}));
  // A product's result goes on to the bias unrounded, the stream as it is stored.
  EXPECT_EQ(read_by(graph, "add", "layers.0.mlp"), (Dtypes{kF32, kF32}));
  EXPECT_EQ(read_by(graph, "add", "layers.0"), (Dtypes{kBf16, kF32}));
  EXPECT_EQ(read_by(graph, "reshape", "head"), (Dtypes{kBf16}));
  EXPECT_TRUE(products_in_fp32(graph).empty());
}

TEST(LowerPrecision, LeavesLogitsLossesAndStatisticsInFp32) {
  Graph graph = block();
  differentiate(graph);
  graph = lowered(std::move(graph), DType::f16);
  EXPECT_EQ(read_by(graph, "mul", "loss"), (Dtypes{kF32, kF32}));
  EXPECT_EQ(read_by(graph, "sum", "loss"), (Dtypes{kF32}));
  EXPECT_EQ(read_by(graph, "rms_norm_grad", "norm"), (Dtypes{DType::f16, kF32, kF32, DType::f16}));
  for (const Output& output : graph.outputs) EXPECT_EQ(graph.type(output.value).dtype, kF32) << output.name;
}

TEST(LowerPrecision, ProductsReadCopiesOfWeightsAndTheEmbeddingTheWeightItself) {
  const Graph graph = lowered(block());
  EXPECT_EQ(read_by(graph, "embedding", "embed"), (Dtypes{kF32, DType::i32}));
  std::vector<std::string> states;
  for (const Source& source : graph.sources)
    if (source.kind == SourceKind::state) states.push_back(source.name);
  EXPECT_EQ(states, (std::vector<std::string>{"bf16.up", "bf16.down", "bf16.table"}));
  EXPECT_EQ(copied_parameter("bf16.up"), "up");
  EXPECT_EQ(copied_parameter("f16.h.0.w"), "h.0.w");
  EXPECT_EQ(copied_parameter("grad.up"), "");
  EXPECT_EQ(copied_parameter("bf16up"), "");
}

TEST(LowerPrecision, KeepsTheKindsThatAreNamed) {
  const Graph products = lowered(block(), kBf16, {"matmul"});
  EXPECT_EQ(read_by(products, "matmul", "layers.0.mlp", 1), (Dtypes{kF32, kF32}));
  EXPECT_EQ(products_in_fp32(products), (std::vector<std::string>{"layers.0.mlp", "layers.0.mlp", "head"}));
  const Graph stream = lowered(block(), kBf16, {"residual"});
  EXPECT_EQ(read_by(stream, "add", "layers.0"), (Dtypes{kF32, kF32}));
  EXPECT_EQ(read_by(stream, "rms_norm", "norm"), (Dtypes{kF32, kF32}));
  EXPECT_EQ(read_by(stream, "matmul", "head"), (Dtypes{kBf16, kBf16}));
}

TEST(LowerPrecision, DoesNothingInFp32) {
  Graph graph = block();
  PassContext context;
  EXPECT_FALSE(lower_precision(graph, context));
}

// The values of the graph with copies that hold what they are copies of.
std::map<std::string, RefTensor> results_of(const Graph& graph) {
  auto sources = ingot::testing::random_sources(graph);
  for (const Source& source : graph.sources) {
    const std::string parameter(copied_parameter(source.name));
    if (parameter.empty()) continue;
    sources[source.name].data = ingot::testing::random_sources(block()).at(parameter).data;
    for (double& value : sources[source.name].data) value = float_from_bf16(bf16_from_float(static_cast<float>(value)));
  }
  return interpret_results(graph, sources, {});
}

TEST(LowerPrecision, FusionMovesNoRounding) {
  Graph graph = block();
  differentiate(graph);
  graph = lowered(std::move(graph));
  const auto expected = results_of(graph);
  PassContext context = context_of(kBf16);
  fold(graph, context);
  EXPECT_TRUE(fuse_residual_norm(graph, context));
  EXPECT_TRUE(fuse_epilogue(graph, context));
  EXPECT_TRUE(fuse_cast(graph, context));
  fuse_elementwise(graph, context);
  graph.remove_dead_nodes();
  ASSERT_TRUE(verify_graph(graph).ok()) << verify_graph(graph).error().message;
  for (const auto& [name, tensor] : results_of(graph)) EXPECT_EQ(tensor.data, expected.at(name).data) << name;
  for (const NodeId id : graph.schedule()) EXPECT_NE(graph.node(id).op->name, "cast") << print_graph(graph);
}

TEST(LowerPrecision, IsCloseToFp32) {
  Graph graph = block();
  differentiate(graph);
  const auto expected = results_of(graph), found = results_of(lowered(graph));
  for (const auto& [name, tensor] : expected) {
    double largest = 0;
    for (const double value : tensor.data) largest = std::max(largest, std::abs(value));
    bool differs = false;
    for (size_t i = 0; i < tensor.data.size(); ++i) {
      EXPECT_NEAR(found.at(name).data[i], tensor.data[i], 0.05 * largest) << name;
      differs = differs || found.at(name).data[i] != tensor.data[i];
    }
    EXPECT_TRUE(differs) << name << " was not rounded anywhere";
  }
}

TEST(Fold, DropsCastsThatUndoOneAnother) {
  const auto folded = ingot::testing::run_pass(fold, R"(
%0 = input "x" : f32[3]
%1 = cast(%0) {dtype=bf16} : bf16[3]
%2 = cast(%1) {dtype=f32} : f32[3]
%3 = cast(%2) {dtype=bf16} : bf16[3]
%4 = cast(%0) {dtype=f32} : f32[3]
output "a" = %3
output "b" = %4
)");
  EXPECT_TRUE(folded.changed);
  EXPECT_EQ(folded.text.find("dtype=f32"), std::string::npos) << folded.text;
}

// The rounding in between is not undone by widening: x is not what comes back.
TEST(Fold, KeepsACastThatRounds) {
  ingot::testing::expect_unchanged(fold, R"(
%0 = input "x" : f32[3]
%1 = cast(%0) {dtype=bf16} : bf16[3]
%2 = cast(%1) {dtype=f32} : f32[3]
output "a" = %2
)");
}

TEST(CheckFp32Ops, NamesWhatIsWrong) {
  const auto message = [](std::vector<std::string> kinds) { return check_fp32_ops(kinds).error().message; };
  EXPECT_TRUE(check_fp32_ops(std::vector<std::string>{"norm", "softmax", "loss", "activation"}).ok());
  EXPECT_TRUE(check_fp32_ops(std::vector<std::string>{"norm", "softmax", "loss", "activation", "matmul"}).ok());
  EXPECT_NE(message({"norm", "softmax", "loss"}).find("activation"), std::string::npos);
  EXPECT_NE(message({"norm", "softmax", "loss", "activation", "conv"}).find("\"conv\""), std::string::npos);
}

}  // namespace
}  // namespace ingot
