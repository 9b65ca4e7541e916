// What the optimizer's and the cache's ops compute, against torch's values and against other ops; fused ops are
// compared with what they stand for where the passes that make them are tested.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/cache_write.h"
#include "ops/cached_attention.h"
#include "ops/clip_factor.h"
#include "ops/cluster.h"
#include "ops/interpret.h"
#include "ops/linear.h"

namespace ingot {
namespace {

using Data = std::vector<double>;

RefTensor ramp(const Shape& shape, double step) {
  RefTensor tensor{shape, {}};
  for (int64_t i = 0; i < shape.elements(); ++i) tensor.data.push_back(std::sin(step * static_cast<double>(i + 1)));
  return tensor;
}

std::vector<RefTensor> evaluate(const OpDef& op, const Attributes& attributes, const std::vector<RefTensor>& inputs,
                                const std::vector<DType>& dtypes) {
  std::vector<Type> types;
  for (size_t i = 0; i < inputs.size(); ++i) types.push_back({dtypes[i], inputs[i].shape});
  return evaluate_op(op, attributes, types, inputs);
}

Data clip(double max_norm, const std::vector<double>& parts, std::vector<int64_t> members, double gradient_scale = 1) {
  std::vector<RefTensor> tensors;
  for (double part : parts) tensors.push_back({{}, {part}});
  tensors.push_back({{}, {gradient_scale}});
  return evaluate(kClipFactor, ClipFactorAttributes{max_norm, std::move(members)}, tensors,
                  std::vector<DType>(tensors.size(), DType::f32))[0]
      .data;
}

void expect_near(const Data& found, const Data& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-14) << i;
}

// Two steps of torch.optim.AdamW(lr=0.01, betas=(0.9, 0.95), weight_decay=0.1) in double precision, each after
// clip_grad_norm_(1.0).
TEST(Adamw, RepeatsTorchWithClipping) {
  Data p{0.5, -1.25, 2.0}, m(3, 0.0), v(3, 0.0);
  const auto step = [&](const Data& g, int t) {
    const Data factor = clip(1.0, {g[0] * g[0] + g[1] * g[1] + g[2] * g[2]}, {0});
    const Data control{0.01, 1 - std::pow(0.9, t), 1 - std::pow(0.95, t)};
    const auto out = evaluate(kAdamw, AdamwAttributes{0.9, 0.95, 1e-8, 0.1, 1.0},
                              {{{3}, p}, {{3}, g}, {{3}, m}, {{3}, v}, {{3}, control}, {{3}, factor}},
                              std::vector<DType>(6, DType::f32));
    p = out[0].data, m = out[1].data, v = out[2].data;
    return factor[2];
  };
  EXPECT_NEAR(step({0.1, -0.2, 0.3}, 1), 0.37416573867739417, 1e-15);
  expect_near(p, {0.4895000009999999, -1.2387500005, 1.9880000003333334});
  EXPECT_NEAR(step({3, -4, 12}, 2), 13.0, 1e-15);
  expect_near(p, {0.47959953583846504, -1.2276707820192272, 1.976956132735031});
  expect_near(m, {0.03207692130177528, -0.04876922840236704, 0.11930768520710112});
  expect_near(v, {0.0031377214838416534, 0.006633727082385161, 0.046878543741466445});
}

TEST(Adamw, LeavesAllUnchangedWhereTheStepIsSkipped) {
  const Data nan(2, std::nan(""));
  const auto out =
      evaluate(kAdamw, AdamwAttributes{},
               {{{2}, {1, 2}}, {{2}, nan}, {{2}, {3, 4}}, {{2}, {5, 6}}, {{3}, {0.1, 0.1, 0.1}}, {{3}, {0, 1, 0}}},
               std::vector<DType>(6, DType::f32));
  EXPECT_EQ(out[0].data, (Data{1, 2}));
  EXPECT_EQ(out[1].data, (Data{3, 4}));
  EXPECT_EQ(out[2].data, (Data{5, 6}));
}

TEST(ClipFactor, UsesTheMembersNormAndSkipsForAnyPart) {
  EXPECT_EQ(clip(10, {9, 16}, {0, 1}), (Data{1, 0, 5}));
  EXPECT_EQ(clip(1, {9, 16}, {0}), (Data{1 / (3 + 1e-6), 0, 3}));
  EXPECT_EQ(clip(0, {9, 16}, {0, 1}), (Data{1, 0, 5}));
  EXPECT_EQ(clip(1, {9, std::numeric_limits<double>::infinity()}, {0}), (Data{0, 1, 3}));
  EXPECT_EQ(clip(1, {std::nan(""), 4}, {1}), (Data{0, 1, 2}));
}

// Gradients 3 and 4 at a scale of 8: sums of squares 64 times as large, and the factor takes the scale away.
TEST(ClipFactor, JudgesByTheNormWithoutTheGradientsScale) {
  EXPECT_EQ(clip(10, {576, 1024}, {0, 1}, 8), (Data{0.125, 0, 5}));
  EXPECT_EQ(clip(0, {576, 1024}, {1}, 8), (Data{0.125, 0, 4}));
  EXPECT_EQ(clip(1, {576, 1024}, {0, 1}, 8), (Data{1 / (5 + 1e-6) / 8, 0, 5}));
  EXPECT_EQ(clip(1, {std::numeric_limits<double>::infinity(), 1024}, {1}, 8), (Data{0, 1, 4}));
}

// Four tokens through a cache, in parts, see what attention on the whole sees; the cache is longer than needed.
TEST(CachedAttention, AgreesWithAttentionOnTheWholeSequence) {
  constexpr int64_t kTokens = 5;
  const RefTensor q = ramp({1, kTokens, 4, 3}, 0.7), k = ramp({1, kTokens, 2, 3}, 1.3),
                  v = ramp({1, kTokens, 2, 3}, 0.9);
  for (int64_t window : {0, 2}) {
    const auto whole =
        evaluate(kAttention, AttentionAttributes{0.6, window, 0.0, ""}, {q, k, v, {{1, kTokens}, Data(kTokens, 0.0)}},
                 {DType::f32, DType::f32, DType::f32, DType::i32})[0];
    RefTensor keys{{1, 2, 8, 3}, Data(48, 7.0)}, values = keys;
    Data out;
    for (const auto& [start, count] : std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {3, 1}, {4, 1}}) {
      const auto part = [&, from = start, n = count](const RefTensor& x) {
        const int64_t row = x.shape[2] * x.shape[3];
        return RefTensor{{1, n, x.shape[2], x.shape[3]},
                         Data(x.data.begin() + from * row, x.data.begin() + (from + n) * row)};
      };
      const RefTensor at{{1}, {static_cast<double>(start)}};
      keys = evaluate(kCacheWrite, {}, {keys, part(k), at}, {DType::f32, DType::f32, DType::i32})[0];
      values = evaluate(kCacheWrite, {}, {values, part(v), at}, {DType::f32, DType::f32, DType::i32})[0];
      const auto rows = evaluate(kCachedAttention, CachedAttentionAttributes{0.6, window}, {part(q), keys, values, at},
                                 {DType::f32, DType::f32, DType::f32, DType::i32})[0];
      out.insert(out.end(), rows.data.begin(), rows.data.end());
    }
    expect_near(out, whole.data);
  }
}

TEST(CacheWrite, LeavesOutWhatDoesNotFit) {
  const auto out = evaluate(kCacheWrite, {}, {{{1, 1, 2, 1}, {1, 2}}, {{1, 3, 1, 1}, {7, 8, 9}}, {{1}, {-1}}},
                            {DType::f32, DType::f32, DType::i32})[0];
  EXPECT_EQ(out.data, (Data{8, 9}));
}

TEST(Attention, GivesZerosToARowThatSeesNothing) {
  const RefTensor x = ramp({1, 2, 1, 2}, 0.7);
  const auto out = evaluate(kAttention, AttentionAttributes{}, {x, x, x, {{1, 2}, {1, 0}}},
                            {DType::f32, DType::f32, DType::f32, DType::i32});
  EXPECT_EQ(out[0].data[0], 0);
  EXPECT_EQ(out[0].data[1], 0);
  EXPECT_NE(out[0].data[2], 0);
  EXPECT_EQ(out[1].data[0], -std::numeric_limits<double>::infinity());
}

TEST(Programs, RefuseWhatNoKernelCouldRun) {
  const Type x{DType::f32, {2, 3}};
  const auto error = [&](Program program, std::vector<int64_t> outputs) {
    const auto result = kCluster.infer(std::vector{x, x}, ClusterAttributes{std::move(program), std::move(outputs)});
    return result.ok() ? std::string() : result.error().message;
  };
  EXPECT_EQ(error({{"add", {0, 1}, "{}"}}, {2}), "");
  EXPECT_EQ(error({{"softmax", {0}, "{}"}}, {2}), "\"softmax\" is no elementwise op");
  EXPECT_EQ(error({{"add", {0, 2}, "{}"}}, {2}), "add reads register 2 of 2");
  EXPECT_EQ(error({{"add", {0}, "{}"}}, {2}), "1 inputs, expected 2");
  EXPECT_EQ(error({{"add", {0, 1}, "{}"}}, {3}), "output register 3 of 3");
  EXPECT_EQ(error({{"add", {0, 1}, "{}"}}, {2, 2}), "register 2 is an output twice");
  EXPECT_EQ(error({{"add", {0, 1}, "{}"}}, {}), "a program without outputs");
  EXPECT_NE(error({{"scale", {0}, "{factor=x}"}}, {2}).find("cannot read attributes"), std::string::npos);
}

}  // namespace
}  // namespace ingot
