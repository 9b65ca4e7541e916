// What docs/add_an_op.md and docs/add_a_pass.md walk through, built and tried; and that every piece of code in docs/
// stands in the file that it names.
#include <gtest/gtest.h>

#include "autodiff/gradient.h"
#include "base/files.h"
#include "merge_scales.h"
#include "ops/sum.h"
#include "passes/testing.h"
#include "squared_relu.h"

namespace ingot {
namespace {

TEST(SquaredRelu, HasItsValueAndItsGradient) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = builder.parameter("x", {DType::f32, {3}});
  const ValueId y = squared_relu(builder, x);
  const ValueId loss = sum(builder, y, {0});
  const ValueId wrt[] = {x};
  builder.output("y", y);
  builder.output("dx", add_gradients(graph, loss, wrt)[0]);
  const auto results = interpret_results(graph, {{"x", {{3}, {-2.0, 0.5, 3.0}}}});
  EXPECT_EQ(results.at("y").data, (std::vector<double>{0.0, 0.25, 9.0}));
  EXPECT_EQ(results.at("dx").data, (std::vector<double>{0.0, 1.0, 6.0}));
}

TEST(MergeScales, MakesOneOfTwo) {
  const auto result = testing::run_pass(merge_scales, R"(graph "g"
%0 = input "x" : f32[2,3]
%1 = scale(%0) {factor=2} : f32[2,3]
%2 = scale(%1) {factor=3} : f32[2,3]
output "y" = %2
)");
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, R"(graph "g"
%0 = input "x" : f32[2,3]
%1 = scale(%0) {factor=6} : f32[2,3]
output "y" = %1
)");
}

TEST(MergeScales, LeavesOneAlone) {
  testing::expect_unchanged(merge_scales, R"(graph "g"
%0 = input "x" : f32[2,3]
%1 = scale(%0) {factor=2} : f32[2,3]
output "y" = %1
)");
}

// A block of code in docs/ that begins with "// FILE" (in Python "# FILE") is a part of that file, word for word.
TEST(Docs, ShowCodeThatIsThere) {
  const fs::path root = INGOT_SOURCE_DIR;
  int blocks = 0;
  for (const auto& entry : fs::directory_iterator(root / "docs")) {
    if (entry.path().extension() != ".md") continue;
    const std::string text = *read_file(entry.path());
    for (const std::string_view fence : {"```cpp\n// ", "```python\n# "})
      for (size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at + 1)) {
        const size_t name = at + fence.size(), line = text.find('\n', name), end = text.find("```", line);
        const std::string file = text.substr(name, line - name), code = text.substr(line + 1, end - line - 1);
        const auto source = read_file(root / file);
        ASSERT_TRUE(source.ok()) << entry.path() << ": " << source.error().message;
        EXPECT_NE(source->find(code), std::string::npos) << entry.path() << " shows what is not in " << file << ":\n"
                                                         << code;
        ++blocks;
      }
  }
  EXPECT_GE(blocks, 6);
}

}  // namespace
}  // namespace ingot
