// Every op that has a counterpart in ONNX, on the examples that its file gives: what it becomes, evaluated by the
// specification of the operators, against the op's own reference.
#include <gtest/gtest.h>

#include "base/check.h"
#include "checkpoint/testing.h"
#include "export/onnx_file.h"
#include "export/onnx_lowering.h"
#include "export/onnx_testing.h"
#include "ops/constant.h"
#include "ops/interpret.h"
#include "ops/registry.h"

namespace ingot {
namespace {

RefTensor example_input(const OpExample& example, size_t i, uint64_t key) {
  RefTensor tensor{example.inputs[i].shape, {}};
  if (i < example.values.size() && !example.values[i].empty()) {
    tensor.data = example.values[i];
    return tensor;
  }
  for (int64_t e = 0; e < tensor.shape.elements(); ++e) {
    const double between = 0.5 + 0.5 * std::sin(1 + 7.3 * static_cast<double>(e) + static_cast<double>(key));
    const auto value = static_cast<float>(example.low + between * (example.high - example.low));
    // Few enough bits for every dtype.
    tensor.data.push_back(float_from_bf16(bf16_from_float(value)));
  }
  return tensor;
}

class OnnxOps : public ::testing::TestWithParam<const OpDef*> {
 protected:
  // The op on constants, all of whose results but those kept for a gradient are outputs.
  static Graph graph_of(const OpDef& op, const OpExample& example, const std::vector<RefTensor>& inputs) {
    Graph graph;
    graph.name = "example";
    Builder builder(graph);
    std::vector<ValueId> values;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Type& type = example.inputs[i];
      values.push_back(constant(builder, inputs[i].data, type.shape, type.dtype));
    }
    const Builder::Scope scope(builder, "here");
    const std::vector<ValueId> results = builder.add_many(op, values, example.attributes);
    for (size_t i = 0; i + static_cast<size_t>(op.traits.saved_outputs) < results.size(); ++i)
      builder.output(fmt::format("y{}", i), results[i]);
    return graph;
  }

  void expect_same(const OpDef& op, const OpExample& example) {
    std::vector<RefTensor> inputs;
    for (size_t i = 0; i < example.inputs.size(); ++i) inputs.push_back(example_input(example, i, i));
    const auto open = OpenGraph::make([&](const GraphSizes&) { return graph_of(op, example, inputs); });
    ASSERT_TRUE(open.ok()) << open.error().message;
    const auto lowered = lower_to_onnx(*open, DType::f32, "test");
    ASSERT_TRUE(lowered.ok()) << lowered.error().message;
    const Status written = write_onnx(*lowered, scratch_.path());
    ASSERT_TRUE(written.ok()) << written.error().message;
    const testing::OnnxTensor nothing{{1, 1}, {0}};
    const auto found = testing::OnnxEvaluator(scratch_.path())
                           .run({{"input_ids", nothing}, {"attention_mask", nothing}, {"position_ids", nothing}});
    const auto expected = evaluate_op(op, example.attributes, example.inputs, inputs);
    for (const auto& [name, tensor] : found) {
      const RefTensor& reference = expected.at(std::stoul(name.substr(1)));
      ASSERT_EQ(tensor.shape, std::vector<int64_t>(reference.shape.begin(), reference.shape.end()));
      // Numbers in the graph are f32.
      for (size_t i = 0; i < tensor.data.size(); ++i)
        ASSERT_NEAR(tensor.data[i], reference.data[i], 1e-6 * std::max(1.0, std::abs(reference.data[i]))) << i;
    }
  }

  testing::TemporaryDirectory scratch_;
};

TEST_P(OnnxOps, AreTheirReference) {
  const OpDef& op = *GetParam();
  for (const OpExample& example : op.examples()) {
    SCOPED_TRACE(example.attributes.to_string());
    if (op.name == "rope" && example.attributes.to_string().find("rotated_heads=-1") == std::string::npos)
      continue;  // a pass makes these
    expect_same(op, example);
  }
}

std::vector<const OpDef*> mapped_ops() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : all_ops())
    if (const OnnxMapping* mapping = find_onnx_mapping(op->name); mapping != nullptr && !mapping->caches)
      ops.push_back(op);
  return ops;
}

INSTANTIATE_TEST_SUITE_P(All, OnnxOps, ::testing::ValuesIn(mapped_ops()),
                         [](const auto& one) { return std::string(one.param->name); });

// Attention over caches is compared in onnx_numbers_test.cc. What is left are ops that passes and gradients make, and
// those of training.
TEST(OnnxMappings, CoverEveryOpOfAModel) {
  EXPECT_GE(mapped_ops().size(), 35u);
  for (const OpDef* op : mapped_ops()) EXPECT_FALSE(op->traits.fused || op->traits.random) << op->name;
}

TEST(OnnxMappings, ARowOfNothingButMinusInfinityGivesZeros) {
  Graph graph;
  Builder builder(graph);
  const ValueId x = constant(builder, std::vector<double>{-INFINITY, -INFINITY, 1, -INFINITY}, {2, 2});
  builder.output("y", builder.add(*find_op("softmax"), {x}));
  const auto open = OpenGraph::make([&](const GraphSizes&) { return graph; });
  ASSERT_TRUE(open.ok());
  const auto lowered = lower_to_onnx(*open, DType::f32, "test");
  ASSERT_TRUE(lowered.ok()) << lowered.error().message;
  const testing::TemporaryDirectory scratch;
  ASSERT_TRUE(write_onnx(*lowered, scratch.path()).ok());
  const testing::OnnxTensor nothing{{1, 1}, {0}};
  const auto found = testing::OnnxEvaluator(scratch.path())
                         .run({{"input_ids", nothing}, {"attention_mask", nothing}, {"position_ids", nothing}});
  EXPECT_EQ(found.at("y").data, (std::vector<double>{0, 0, 1, 0}));
}

}  // namespace
}  // namespace ingot
