#include "passes/transpose_weights.h"

#include "passes/testing.h"

namespace ingot {
namespace {

// A weight that two products read, one that lies the right way round already, one that is read both ways round, one
// that something else reads too, one that is an output, and a product of a weight with itself.
constexpr const char* kBefore = R"(graph "g"
%0 = input "x" : f32[2,3,4]
%1 = parameter "up" : f32[4,6]
%2 = parameter "right" : f32[4,6]
%3 = parameter "both" : f32[4,4]
%4 = parameter "added" : f32[4,4]
%5 = parameter "shown" : f32[4,5]
%6 = parameter "itself" : f32[4,4]
%7 = matmul(%0, %1)
%8 = matmul(%7, %2) {transpose_b=true}
%9 = matmul(%8, %1)
%10 = matmul(%8, %3)
%11 = matmul(%10, %3) {transpose_b=true}
%12 = add(%4, %4)
%13 = matmul(%11, %4)
%14 = matmul(%13, %5)
%15 = matmul(%6, %6)
output "up" = %9
output "narrow" = %14
output "square" = %15
output "shown" = %5
output "doubled" = %12
)";

TEST(TransposeWeights, TakesWhatProductsAloneReadByRows) {
  const Graph before = testing::graph_of(kBefore);
  Graph graph = before;
  PassContext context;
  ASSERT_TRUE(transpose_weights(graph, context));
  ASSERT_TRUE(verify_graph(graph).ok()) << verify_graph(graph).error().message;
  const Graph after = graph.compacted();
  std::vector<std::string> names;
  for (const Source& source : after.sources) names.push_back(source.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "right", "both", "added", "shown", "itself", "up.transposed"}));

  auto plain = testing::random_sources(before), turned = plain;
  const RefTensor up = plain["up"];
  RefTensor transposed{{6, 4}, std::vector<double>(24)};
  for (size_t p = 0; p < 4; ++p)
    for (size_t j = 0; j < 6; ++j) transposed.data[j * 4 + p] = up.data[p * 6 + j];
  turned.erase("up");
  turned["up.transposed"] = transposed;
  const auto expected = interpret_results(before, plain), found = interpret_results(after, turned);
  for (const char* output : {"up", "narrow", "square", "shown", "doubled"}) {
    ASSERT_EQ(found.at(output).data.size(), expected.at(output).data.size());
    for (size_t i = 0; i < expected.at(output).data.size(); ++i)
      EXPECT_NEAR(found.at(output).data[i], expected.at(output).data[i], 1e-12) << output << i;
  }
}

TEST(TransposeWeights, LeavesGraphsWithoutSuchWeights) {
  testing::expect_unchanged(transpose_weights, R"(%0 = input "x" : f32[2,3]
%1 = parameter "w" : f32[5,3]
%2 = matmul(%0, %1) {transpose_b=true}
output "y" = %2
)");
}

}  // namespace
}  // namespace ingot
