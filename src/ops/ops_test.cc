#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/interpret.h"
#include "ops/registry.h"

namespace ingot {
namespace {

TEST(Registry, HoldsEachOpOnceInAlphabeticalOrderWithAllThatIsNeeded) {
  std::string_view previous;
  for (const OpDef* op : all_ops()) {
    EXPECT_LT(previous, op->name);
    previous = op->name;
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_NE(op->evaluate, nullptr) << op->name;
    ASSERT_NE(op->examples, nullptr) << op->name;
    EXPECT_FALSE(op->examples().empty()) << op->name;
    EXPECT_EQ(find_op(op->name), op);
  }
}

TEST(Registry, AttributesPrintAndParseBack) {
  for (const OpDef* op : all_ops())
    for (const OpExample& example : op->examples()) {
      const std::string text = example.attributes.to_string();
      AttributeReader in(text);
      const auto parsed = op->parse_attributes(in);
      ASSERT_TRUE(parsed.ok()) << op->name << ": " << parsed.error().message;
      EXPECT_EQ(*parsed, example.attributes) << op->name << " " << text;
    }
}

constexpr std::string_view kText = R"(graph "test"
%0 = parameter "w" : f32[4,3]
%1 = input "x" : f32[2,4]
%2 = matmul(%1, %0) {transpose_a=false, transpose_b=false} : f32[2,3] @"layer.0"
%3 = add(%2, %2) : f32[2,3]
output "y" = %3
)";

TEST(GraphText, PrintsWhatItParsed) {
  const auto graph = parse_graph(kText, find_op);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_TRUE(verify_graph(*graph).ok());
  EXPECT_EQ(print_graph(*graph), kText);
}

TEST(GraphText, ErrorsNameTheLine) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"%0 = nonsense()", "no op named \"nonsense\""},
           {"%0 = input \"x\" : f32[2]\n%1 = add(%0, %7)", "line 2: %7 is used before"},
           {"%0 = input \"x\" : f32[2]\n%1 = input \"y\" : f32[3]\n%2 = add(%0, %1)",
            "line 3: add: shapes [2] and [3]"},
           {"%0 = input \"x\" : f99[2]", "line 1: expected a type"},
           {"%0 = input \"x\" : f32[9223372036854775807,4]", "impossible extents"},
           {"%0 = input \"q\" : f32[1,2,1,3]\n%1 = input \"first\" : i32[1,2]\n"
            "%2, %3 = attention(%0, %0, %0, %1) {} : f32[1,2,1,3], f32[1,1,2]",
            "attention gives f32[1,2,1,3], f32[1,1,2,2], the text says f32[1,2,1,3], f32[1,1,2]"},
           {"what", "line 1: expected graph, output"}}) {
    const auto graph = parse_graph(text, find_op);
    ASSERT_FALSE(graph.ok()) << text;
    EXPECT_NE(graph.error().message.find(expected), std::string::npos) << graph.error().message;
  }
}

TEST(VerifyGraph, FindsATypeThatTheRuleDoesNotGive) {
  auto graph = parse_graph(kText, find_op);
  graph->value(graph->find_output("y")).type.shape = {3, 2};
  EXPECT_FALSE(verify_graph(*graph).ok());
}

TEST(Interpret, ComputesAProduct) {
  const auto graph = parse_graph(kText, find_op);
  const auto results = interpret_results(
      *graph, {{"w", {{4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}}, {"x", {{2, 4}, {1, 0, 0, 0, 0, 0, 0, 1}}}});
  EXPECT_EQ(results.at("y").data, (std::vector<double>{2, 4, 6, 20, 22, 24}));
}

}  // namespace
}  // namespace ingot
