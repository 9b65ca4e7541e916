// Mixed precision through whole training programs: close to fp32, the same bits whatever recomputation, fusion of
// elementwise ops and threads do, in less memory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/files.h"
#include "command_line.h"
#include "optim/weight_copies.h"
#include "passes/lower_precision.h"
#include "training_testing.h"

namespace ingot::integration {
namespace {

constexpr int64_t kMicroRows = 2, kRowTokens = 33, kVocabulary = 101;

MixedPrecision mixed(DType dtype) {
  return {dtype, {"norm", "softmax", "loss", "activation"}};
}

ProgramSettings mixed_settings(DType dtype, RecomputePolicy policy = RecomputePolicy::none) {
  ProgramSettings settings;
  settings.rows = kMicroRows;
  settings.tokens = kRowTokens;
  settings.precision = mixed(dtype);
  settings.recompute = {policy, {}, {}};
  return settings;
}

struct Course {
  std::vector<double> losses, norms;
  std::vector<float> parameters;
};

// Steps of two micro-batches each, dropout everywhere.
Course course_of(const std::string& family, const ProgramSettings& settings, int steps, int threads = 2) {
  Training training(small_model(family, 0.1), settings, threads);
  Course course;
  for (int i = 0; i < steps; ++i) {
    const Batch batch = random_batch(2 * kMicroRows, kRowTokens, kVocabulary, static_cast<uint64_t>(i % 3), 10);
    course.losses.push_back(training.step(batch, kMicroRows));
    course.norms.push_back(training.last_update().grad_norm);
  }
  course.parameters = training.all_parameters();
  return course;
}

void expect_same(const Course& a, const Course& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
  EXPECT_EQ(a.parameters, b.parameters);
}

class MixedPrecisionOf : public ::testing::TestWithParam<std::string> {};

TEST_P(MixedPrecisionOf, TrainsAsFp32DoesUpToRounding) {
  const Course fp32 = course_of(GetParam(), mixed_settings(DType::f32), 12);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Course narrow = course_of(GetParam(), mixed_settings(dtype), 12);
    const double tolerance = dtype == DType::bf16 ? 0.01 : 0.002;
    bool differs = false;
    for (size_t i = 0; i < fp32.losses.size(); ++i) {
      EXPECT_NEAR(narrow.losses[i], fp32.losses[i], tolerance * fp32.losses[i]) << i;
      EXPECT_NEAR(narrow.norms[i], fp32.norms[i], 10 * tolerance * fp32.norms[i]) << i;
      differs = differs || narrow.losses[i] != fp32.losses[i];
    }
    EXPECT_TRUE(differs) << "nothing was rounded";
    EXPECT_LT(narrow.losses.back(), narrow.losses.front());
  }
}

TEST_P(MixedPrecisionOf, RecomputesToTheSameBits) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Course kept = course_of(GetParam(), mixed_settings(dtype), 2);
    expect_same(course_of(GetParam(), mixed_settings(dtype, RecomputePolicy::selective), 2), kept);
    expect_same(course_of(GetParam(), mixed_settings(dtype, RecomputePolicy::full), 2), kept);
  }
}

TEST_P(MixedPrecisionOf, IsTheSameOnAnyNumberOfThreads) {
  const Course one = course_of(GetParam(), mixed_settings(DType::bf16), 2, 1);
  for (const int threads : {2, 3, 5, 8})
    expect_same(course_of(GetParam(), mixed_settings(DType::bf16), 2, threads), one);
}

// Where elementwise ops run alone, values are rounded at the same places.
TEST_P(MixedPrecisionOf, DoesNotDependOnTheFusionOfElementwiseOps) {
  const Course fused = course_of(GetParam(), mixed_settings(DType::bf16), 2);
  for (const char* pass : {"fuse_elementwise", "fuse_cast", "fuse_residual_norm"}) {
    ProgramSettings settings = mixed_settings(DType::bf16);
    settings.disabled_passes = {pass};
    expect_same(course_of(GetParam(), settings, 2), fused);
  }
}

TEST_P(MixedPrecisionOf, EagerModeRoundsAtTheSamePlaces) {
  ProgramSettings eager = mixed_settings(DType::bf16);
  eager.fuse = false;
  const Course graph = course_of(GetParam(), mixed_settings(DType::bf16), 3), plain = course_of(GetParam(), eager, 3);
  for (size_t i = 0; i < graph.losses.size(); ++i)
    EXPECT_NEAR(plain.losses[i], graph.losses[i], 0.005 * graph.losses[i]) << i;
}

TEST_P(MixedPrecisionOf, KeepsHalfOfWhatFp32Keeps) {
  const auto kept = [&](DType dtype) {
    const ThreadPool pool(2);
    const Model model = small_model(GetParam(), 0.1);
    ProgramSettings settings = mixed_settings(dtype);
    settings.tokens = 256;
    return static_cast<double>(value_of(TrainingPrograms::plan(model, settings, pool))->memory().kept);
  };
  // Statistics, ids and masks stay as large as they are, and at this width they are a fifth of it.
  EXPECT_LT(kept(DType::bf16), 0.6 * kept(DType::f32));
}

// After each update, and after a step that changes nothing, a copy is its weight rounded.
TEST_P(MixedPrecisionOf, CopiesFollowTheirWeights) {
  Training training(small_model(GetParam(), 0), mixed_settings(DType::bf16), 2);
  const Arena& arena = training.programs().arena();
  const auto check = [&] {
    int64_t copies = 0;
    for (const Variable& variable : arena.variables().variables()) {
      const std::string parameter(copied_parameter(variable.name));
      if (parameter.empty()) continue;
      ++copies;
      const float* weight = arena.variable(parameter).as<float>();
      const uint16_t* copy = arena.variable(variable.name).as<uint16_t>();
      for (int64_t i = 0; i < variable.type.shape.elements(); ++i) ASSERT_EQ(copy[i], bf16_from_float(weight[i])) << i;
    }
    EXPECT_GT(copies, 4);
  };
  const Batch batch = random_batch(kMicroRows, kRowTokens, kVocabulary, 1, 10);
  training.step(batch, kMicroRows);
  check();
  training.step(batch, kMicroRows, 0.5);
  check();
  initialize_weights(training.model(), 99, arena, training.pool());
  training.programs().weights_changed();
  EXPECT_GT(value_of(training.programs().evaluate(batch, 1.0f)), 0);
  check();
}

INSTANTIATE_TEST_SUITE_P(Models, MixedPrecisionOf, ::testing::Values("gpt2", "llama"),
                         [](const auto& one) { return one.param; });

TEST(MixedPrecision, SomeKindsMayStayInFp32) {
  const auto losses = [&](std::vector<std::string> also) {
    ProgramSettings settings = mixed_settings(DType::bf16);
    settings.precision.fp32_ops.insert(settings.precision.fp32_ops.end(), also.begin(), also.end());
    return course_of("llama", settings, 3).losses;
  };
  const std::vector<double> fp32 = course_of("llama", mixed_settings(DType::f32), 3).losses;
  const auto distance = [&](const std::vector<double>& from) {
    double sum = 0;
    for (size_t i = 0; i < from.size(); ++i) sum += std::abs(from[i] - fp32[i]);
    return sum;
  };
  EXPECT_GT(distance(losses({})), 0);
  EXPECT_GT(distance(losses({"matmul"})), 0);
  EXPECT_GT(distance(losses({"matmul", "attention"})), 0);
  EXPECT_NE(losses({"residual"}), losses({}));
}

}  // namespace
}  // namespace ingot::integration
