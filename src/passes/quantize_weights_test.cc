#include "passes/quantize_weights.h"

#include "passes/testing.h"

namespace ingot {
namespace {

// Weights of both layouts, a tied head, and what stays: a bias, a table that no product reads, a product of two values,
// a weight that is read both ways round.
constexpr const char* kBefore = R"(graph "g"
%0 = input "ids" : i32[2,3]
%1 = parameter "table" : f32[9,4]
%2 = parameter "positions" : f32[3,4]
%3 = parameter "up" : f32[6,4]
%4 = parameter "bias" : f32[6]
%5 = parameter "down" : f32[6,4]
%6 = parameter "both" : f32[4,4]
%7 = embedding(%1, %0)
%8 = embedding(%2, %0)
%9 = add(%7, %8)
%10 = matmul(%9, %3) {transpose_b=true}
%11 = add(%10, %4)
%12 = matmul(%11, %5)
%13 = matmul(%12, %6)
%14 = matmul(%13, %6) {transpose_b=true}
%15 = matmul(%14, %9) {transpose_b=true}
%16 = matmul(%14, %1) {transpose_b=true}
output "logits" = %16
output "product" = %15
)";

// A quantized graph with the weights that its bytes stand for computes what the plain one does with those weights.
TEST(QuantizeWeights, TakesWhatProductsReadAndKeepsTheRest) {
  Graph graph = testing::graph_of(kBefore);
  PassContext context;
  ASSERT_TRUE(quantize_weights(graph, context));
  ASSERT_TRUE(verify_graph(graph).ok()) << verify_graph(graph).error().message;
  const Graph after = graph.compacted();
  std::vector<std::string> names;
  for (const Source& source : after.sources) names.push_back(source.name);
  EXPECT_EQ(names, (std::vector<std::string>{"ids", "positions", "bias", "both", "up.int8", "up.int8.scales",
                                             "down.int8.transposed", "down.int8.scales", "both.int8.transposed",
                                             "both.int8.scales", "table.int8", "table.int8.scales"}));
  const Graph before = testing::graph_of(kBefore);
  auto plain = testing::random_sources(before);
  std::map<std::string, RefTensor> quantized;
  for (const Source& source : after.sources) {
    if (plain.contains(source.name)) quantized[source.name] = plain[source.name];
    const auto name = parse_quantized_name(source.name);
    if (!name) continue;
    const Shape shape = after.shape(source.value);
    RefTensor values{shape, {}}, scales{{shape[0], 1}, {}}, weight = plain[name->parameter];
    for (int64_t i = 0; i < shape.elements(); ++i) values.data.push_back(static_cast<double>(i * 37 % 255 - 127));
    for (int64_t i = 0; i < shape[0]; ++i) scales.data.push_back(0.003 * static_cast<double>(i + 1));
    for (int64_t j = 0; j < shape[0]; ++j)
      for (int64_t p = 0; p < shape[1]; ++p)
        weight.data[static_cast<size_t>(name->transposed ? p * shape[0] + j : j * shape[1] + p)] =
            values.data[static_cast<size_t>(j * shape[1] + p)] * scales.data[static_cast<size_t>(j)];
    quantized[name->values()] = values;
    quantized[name->scales()] = scales;
    plain[name->parameter] = weight;
  }
  quantized["both"] = plain["both"];
  const auto expected = interpret_results(before, plain), found = interpret_results(after, quantized);
  for (const char* output : {"logits", "product"})
    for (size_t i = 0; i < expected.at(output).data.size(); ++i)
      EXPECT_NEAR(found.at(output).data[i], expected.at(output).data[i], 1e-9) << output << i;
}

TEST(QuantizeWeights, LeavesGraphsWithoutProducts) {
  testing::expect_unchanged(quantize_weights, R"(%0 = input "x" : f32[2,3]
%1 = parameter "w" : f32[2,3]
%2 = add(%0, %1)
output "y" = %2
)");
}

TEST(QuantizedName, IsReadAsItIsWritten) {
  for (const bool transposed : {false, true}) {
    const QuantizedName name{"h.0.attn.weight", transposed};
    const auto read = parse_quantized_name(name.values());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->parameter, name.parameter);
    EXPECT_EQ(read->transposed, transposed);
    EXPECT_FALSE(parse_quantized_name(name.scales()));
  }
  EXPECT_FALSE(parse_quantized_name("h.0.attn.weight"));
}

}  // namespace
}  // namespace ingot
