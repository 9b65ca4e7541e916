// Ten updates of each optimizer against plain PyTorch in float64 (tests/oracles/optimizers.py made the numbers and says
// what they are), on several numbers of threads, which must give the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "checkpoint/safetensors.h"
#include "optim/update_graph.h"
#include "runtime/program.h"

namespace ingot {
namespace {

constexpr int64_t kSteps = 10;
constexpr double kRate = 0.01, kDecay = 0.1, kMaxNorm = 1.0;

struct Case {
  std::string name;  // of the tensors in the file
  OptimizerConfig config;
  double tolerance = 3e-6;  // twenty roundings to fp32 of entries up to 4
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

std::vector<float> floats(const SafetensorsFile& file, const std::string& name) {
  const ConstTensorView view = file.view(name);
  std::vector<float> values(static_cast<size_t>(view.shape.elements()));
  std::memcpy(values.data(), view.data, values.size() * sizeof(float));
  return values;
}

class Updates {
 public:
  Updates(const SafetensorsFile& file, const OptimizerConfig& config, int threads)
      : file_(file), config_(config), pool_(threads) {
    for (const std::string name : {"embedding.weight", "hidden.wide.weight", "hidden.tall.weight", "norm.weight"})
      parameters_.push_back({name, {DType::f32, file.find("start." + name)->shape}, name.starts_with("hidden.")});
    std::vector<ParameterInfo> infos;
    for (const TrainedParameter& one : parameters_) infos.push_back({one.name, one.type.shape.rank()});
    const std::vector<ParameterGroupRule> rules{{.match = "norm.*", .learning_rate_scale = 0.5}};
    Graph graph = update_graph(parameters_, assign_groups(infos, rules, kDecay, kMaxNorm), config);
    VariableLayout variables;
    add_variables_of(graph, variables);
    program_ = std::move(Program::create(std::move(graph), variables, threads).value());
    arena_.emplace(std::move(make_arena(variables, *program_, pool_).value()));
    for (const TrainedParameter& one : parameters_) set(one.name, floats(file, "start." + one.name));
  }

  // Of gradients that are `scale` times too large and known to be so.
  void step(int64_t t, bool with_nan = false, float scale = 1) {
    for (const TrainedParameter& one : parameters_) {
      const std::vector<float> base = floats(file_, "gradient." + one.name);
      std::vector<float> gradient(base.size());
      for (size_t i = 0; i < base.size(); ++i)
        gradient[i] =
            base[(i + 37 * static_cast<size_t>(t)) % base.size()] * (1 + 0.25f * static_cast<float>(t)) * scale;
      if (with_nan && &one == &parameters_.back()) gradient.back() = std::numeric_limits<float>::quiet_NaN();
      set(gradient_name(one.name), gradient);
    }
    const std::array<float, 3> control = update_control(kRate, config_, t);
    const std::array<ProgramInput, 2> inputs{
        {{"control", {reinterpret_cast<const std::byte*>(control.data()), DType::f32, {3}}},
         {"gradient_scale", {reinterpret_cast<const std::byte*>(&scale), DType::f32, {}}}}};
    ASSERT_TRUE(program_->run(*arena_, pool_, inputs, {}).ok());
  }

  // {scale, skip, norm} of the last step, over all parameters.
  std::array<float, 3> clip() const {
    const float* values = program_->output(*arena_, "clip").as<float>();
    return {values[0], values[1], values[2]};
  }

  const std::vector<TrainedParameter>& parameters() const { return parameters_; }
  std::span<const float> values(const std::string& name) const { return arena_->variable(name).span<float>(); }
  // Every byte of the parameters and of the optimizer's state.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all;
    const auto add = [&](const std::string& name) {
      const TensorView view = arena_->variable(name);
      all.insert(all.end(), view.data, view.data + view.bytes());
    };
    for (const TrainedParameter& one : parameters_) add(one.name);
    for (const OptimizerState& state : optimizer_state(parameters_, config_)) add(state.variable());
    return all;
  }

 private:
  void set(const std::string& variable, const std::vector<float>& values) {
    std::ranges::copy(values, arena_->variable(variable).as<float>());
  }

  const SafetensorsFile& file_;
  const OptimizerConfig config_;
  const ThreadPool pool_;
  std::vector<TrainedParameter> parameters_;
  std::unique_ptr<Program> program_;
  std::optional<Arena> arena_;
};

class Optimizers : public ::testing::TestWithParam<Case> {
 protected:
  const SafetensorsFile file_ = std::move(
      SafetensorsFile::open(std::filesystem::path(INGOT_SOURCE_DIR) / "tests/golden/optimizers.safetensors").value());
};

TEST_P(Optimizers, TenStepsGiveWhatPyTorchGivesOnAnyNumberOfThreads) {
  std::vector<std::byte> first;
  for (const int threads : {1, 2, 3, 5, 8}) {
    Updates run(file_, GetParam().config, threads);
    for (int64_t t = 1; t <= kSteps; ++t) run.step(t);
    if (threads > 1) {
      EXPECT_EQ(run.bytes(), first) << threads << " threads";
      continue;
    }
    first = run.bytes();
    for (const TrainedParameter& one : run.parameters()) {
      const std::span<const float> found = run.values(one.name);
      const std::vector<float> expected = floats(file_, GetParam().name + "." + one.name);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], GetParam().tolerance) << one.name << " element " << i;
      }
    }
  }
}

// A gradient that is not finite leaves every byte of parameters and state as it is.
TEST_P(Optimizers, ANonFiniteGradientChangesNothing) {
  Updates run(file_, GetParam().config, 2);
  run.step(1);
  const std::vector<std::byte> before = run.bytes();
  run.step(2, true);
  EXPECT_EQ(run.bytes(), before);
  run.step(2);
  EXPECT_NE(run.bytes(), before);
}

// Powers of two change no bit of what they scale and are taken back exactly: parameters, state and norm are the same.
TEST_P(Optimizers, ScaledGradientsGiveTheBitsOfPlainOnes) {
  Updates plain(file_, GetParam().config, 2);
  for (int64_t t = 1; t <= kSteps; ++t) plain.step(t);
  for (const float scale : {65536.0f, 0.125f, 0x1p30f}) {
    Updates scaled(file_, GetParam().config, 2);
    for (int64_t t = 1; t <= kSteps; ++t) scaled.step(t, false, scale);
    EXPECT_EQ(scaled.bytes(), plain.bytes()) << scale;
    EXPECT_EQ(scaled.clip(), (std::array<float, 3>{1 / scale, 0, plain.clip()[2]}));
  }
}

// Gradients so large that their squares leave fp32's range: nothing changes, and the next step is as if there had been
// none.
TEST_P(Optimizers, AnOverflowOfScaledGradientsChangesNothingAndTheNextStepIsAsWithoutIt) {
  Updates run(file_, GetParam().config, 2), without(file_, GetParam().config, 2);
  for (Updates* one : {&run, &without}) one->step(1, false, 0x1p16f);
  run.step(2, false, 0x1p120f);
  EXPECT_EQ(run.clip()[1], 1.0f);
  EXPECT_EQ(run.bytes(), without.bytes());
  run.step(2, false, 0x1p15f);
  without.step(2);
  EXPECT_EQ(run.clip()[1], 0.0f);
  EXPECT_EQ(run.bytes(), without.bytes());
}

std::vector<Case> cases() {
  OptimizerConfig relative = default_optimizer(OptimizerType::adafactor);
  relative.relative_step = true;
  return {{"adamw", default_optimizer(OptimizerType::adamw)},
          {"lion", default_optimizer(OptimizerType::lion)},
          {"adafactor", default_optimizer(OptimizerType::adafactor)},
          {"adafactor_relative", relative},
          // Five steps grow the smallest singular values, and the rounding errors beside them, up to 3.4^5 times.
          {"muon", default_optimizer(OptimizerType::muon), 1e-5},
          {"adamw_8bit", default_optimizer(OptimizerType::adamw_8bit)}};
}

INSTANTIATE_TEST_SUITE_P(All, Optimizers, ::testing::ValuesIn(cases()), [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace ingot
