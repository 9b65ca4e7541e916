// Random graphs of elementwise ops, products, views and sums through all backward passes: same results, no cycle.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "ops/matmul.h"
#include "ops/reshape.h"
#include "ops/sum.h"
#include "passes/pipeline.h"
#include "passes/testing.h"

namespace ingot {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : key_(stream_key(seed, "graph")) {
    Builder builder(graph_);
    for (int i = 0; i < 3; ++i) values_.push_back(builder.input("x" + std::to_string(i), {DType::f32, {2, 3, 4}}));
    values_.push_back(builder.input("flat", {DType::f32, {6, 4}}));
    bias_ = builder.parameter("bias", {DType::f32, {4}});
    weight_ = builder.parameter("weight", {DType::f32, {4, 4}});
    for (int i = 0; i < 25; ++i) values_.push_back(step(builder));
    // The last values are outputs, so that most of the graph is needed; some others too.
    for (size_t i = values_.size() - 3; i < values_.size(); ++i) builder.output("y" + std::to_string(i), values_[i]);
    builder.output("inner", values_[4 + pick(10)]);
  }
  Graph take() { return std::move(graph_); }

 private:
  size_t pick(size_t bound) { return bounded_at(key_, counter_++, bound); }
  ValueId any() { return values_[pick(values_.size())]; }
  ValueId any_like(const Builder& builder, ValueId x) {
    for (int tries = 0; tries < 8; ++tries)
      if (const ValueId y = any(); builder.shape(y) == builder.shape(x)) return y;
    return x;
  }

  ValueId step(Builder& builder) {
    static constexpr std::string_view kUnary[] = {"tanh", "gelu", "sigmoid", "relu", "neg", "square"};
    static constexpr std::string_view kBinary[] = {"add", "sub", "mul", "gelu_grad", "silu_grad"};
    const ValueId x = any();
    switch (pick(8)) {
      case 0:
        return builder.add(kMatmul, {x, weight_}, MatmulAttributes{false, pick(2) == 1});
      case 1:
        return builder.add(*find_op("add"), {x, bias_});
      case 2:  // a way around through nodes that no cluster takes
        return builder.add(*find_op("mul"), {x, sum_all(builder, any())});
      case 3:
        return reshape(builder, x, builder.shape(x).rank() == 3 ? Shape{6, 4} : Shape{2, 3, 4});
      case 4:
        return builder.add(*find_op(kUnary[pick(std::size(kUnary))]), {x});
      default:
        return builder.add(*find_op(kBinary[pick(std::size(kBinary))]), {x, any_like(builder, x)});
    }
  }
  static ValueId sum_all(Builder& builder, ValueId x) {
    return sum(builder, reshape(builder, x, {builder.shape(x).elements()}), {0});
  }

  Graph graph_;
  uint64_t key_, counter_ = 0;
  std::vector<ValueId> values_;
  ValueId bias_ = kNone, weight_ = kNone;
};

TEST(RandomGraphs, ComputeTheSameAfterEveryBackwardPass) {
  int linear = 0, clusters = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = RandomGraph(seed).take();
    const Graph before = graph;
    PassContext context{.verify = true};
    const auto compare = [&](const Pass& pass, const Graph& after) {
      SCOPED_TRACE(pass.name);
      // Values grow in chains of products and squares, and rounding with them.
      ingot::testing::expect_same_results(before, after, 1e-9);
    };
    const Status status = run_passes(graph, backward_passes(), context, compare);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (const FusionNote& note : context.notes) {
      linear += note.applied && note.pattern == "linear";
      clusters += note.applied && note.pattern == "cluster";
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(linear, 100);
  EXPECT_GT(clusters, 300);
}

}  // namespace
}  // namespace ingot
