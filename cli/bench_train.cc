#include "bench_train.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/clock.h"
#include "base/median.h"
#include "base/rng.h"
#include "base/system.h"
#include "data/sequences.h"
#include "kernels/peak/peak.h"
#include "optim/loss_scale.h"
#include "runtime/profile.h"
#include "train/model_directory.h"
#include "train/programs.h"
#include "train/recompute_choice.h"

namespace ingot::cli {
namespace {

constexpr int64_t kWarmUpSteps = 2;
constexpr uint64_t kSeed = 1;

double peak_gflops(const ThreadPool& pool, DType dtype) {
  return std::max(kernels::peak_gflops(pool, dtype), kernels::matmul_gflops(pool, dtype));
}

// Steps as `ingot train` takes them, fp16's scale of the loss included: a step that overflows is skipped and counts.
class Steps {
 public:
  Steps(TrainingPrograms& programs, Precision precision)
      : programs_(programs), is_scaled_(precision == Precision::fp16), scaler_(LossScaleConfig()) {}

  Result<double> run(const Batch& batch, uint64_t step, const NodeObserver* observer = nullptr) {
    const double scale = is_scaled_ ? scaler_.scale() : 1;
    const double factor = scale / static_cast<double>(std::max<int64_t>(batch.counted, 1));
    INGOT_ASSIGN(const double loss, programs_.micro_step(batch, static_cast<float>(factor), false,
                                                         {kSeed, step, 0, batch.rows}, observer));
    INGOT_ASSIGN(const UpdateResult update, programs_.update(1e-4, updates_ + 1, observer, scale));
    if (update.skipped && !is_scaled_) return failed_error("a gradient is not finite at step {}", step);
    update.skipped ? scaler_.overflowed() : scaler_.stayed_finite();
    if (!update.skipped) ++updates_;
    return loss / scale;
  }

  // As `ingot train` records it.
  Result<double> run_profiled(const Batch& batch, uint64_t step, Profile& profile) {
    profile.begin_step(static_cast<int64_t>(step));
    INGOT_ASSIGN(const double loss, run(batch, step, &profile.observer()));
    profile.end_step();
    return loss;
  }

  TrainingPrograms& programs() { return programs_; }

 private:
  TrainingPrograms& programs_;
  bool is_scaled_;
  LossScaler scaler_;
  int64_t updates_ = 0;
};

// Steps in stretches of some seconds, and the machine's peak before, between and after them: its host's other guests
// change its speed from one moment to the next.
class StepsAndPeaks {
 public:
  StepsAndPeaks(const ThreadPool& pool, DType dtype) : pool_(pool), dtype_(dtype) {
    peaks_.push_back(peak_gflops(pool, dtype));
  }

  void add(double step_seconds) {
    steps_.push_back(step_seconds);
    stretch_ += step_seconds;
    ++in_stretch_;
    if (stretch_ >= kStretchSeconds) finish();
  }
  // After the last step.
  void finish() {
    if (in_stretch_ == 0) return;
    peaks_.push_back(peak_gflops(pool_, dtype_));
    const double around = (peaks_[peaks_.size() - 2] + peaks_.back()) / 2;
    parts_.push_back(in_stretch_ / stretch_ / (around * 1e9));
    in_stretch_ = stretch_ = 0;
  }
  double step_seconds() const { return median(steps_); }
  double peak() const { return median(peaks_); }
  // Of the peak, the median over the stretches, where a step is so many FLOPs.
  double utilization(double step_flops) const { return median(parts_) * step_flops; }

 private:
  static constexpr double kStretchSeconds = 2;

  const ThreadPool& pool_;
  DType dtype_;
  std::vector<double> steps_, peaks_, parts_;  // parts: steps a second over the peak around them
  double stretch_ = 0, in_stretch_ = 0;
};

// Steps without and with recording in turn, `step` being the first; which of a pair comes first changes.
Result<double> profile_overhead(Steps& steps, const BenchTrainOptions& options, int64_t vocab_size, uint64_t step,
                                int threads) {
  INGOT_ASSIGN(const Program* micro_step, steps.programs().micro_step_program(options.batch, options.tokens, false));
  const size_t ops = micro_step->step_count() + steps.programs().update_program().step_count();
  Profile profile(threads, ops * static_cast<size_t>(options.steps), static_cast<size_t>(options.steps));
  std::vector<double> ratios;
  for (int64_t i = 0; i < options.steps; ++i) {
    std::array<double, 2> seconds{};
    for (const bool second : {false, true}) {
      const bool recorded = second != (i % 2 != 0);
      const Batch batch = random_batch(options.batch, options.tokens, vocab_size, step);
      const auto start = Clock::now();
      const auto loss = recorded ? steps.run_profiled(batch, step, profile) : steps.run(batch, step);
      if (!loss.ok()) return loss.error();
      seconds[recorded ? 1 : 0] = seconds_since(start);
      ++step;
    }
    ratios.push_back(seconds[1] / seconds[0]);
  }
  return median(std::move(ratios)) - 1;
}

// Fills in what the steps after the first ones took.
Status measure_steps(Steps& steps, const Model& model, const BenchTrainOptions& options, const ThreadPool& pool,
                     BenchTrainResult& result) {
  std::optional<StepsAndPeaks> measured;
  for (int64_t step = 1; step <= kWarmUpSteps + options.steps; ++step) {
    if (step == kWarmUpSteps + 1) measured.emplace(pool, dtype_of(options.precision));
    const Batch batch =
        random_batch(options.batch, options.tokens, model.config().vocab_size, static_cast<uint64_t>(step));
    const auto faults = minor_page_faults();
    const auto start = Clock::now();
    INGOT_ASSIGN(const double loss, steps.run(batch, static_cast<uint64_t>(step)));
    const double seconds = seconds_since(start);
    result.losses.push_back(loss);
    if (!measured) continue;
    result.page_faults += static_cast<int64_t>(minor_page_faults() - faults);
    measured->add(seconds);
  }
  measured->finish();
  result.peak_rss_bytes = static_cast<int64_t>(peak_resident_bytes());
  result.step_ms = measured->step_seconds() * 1e3;
  result.tokens_per_second = static_cast<double>(options.batch * options.tokens) / measured->step_seconds();
  const double token_flops = model.flops_per_token(options.tokens);
  result.model_tflops = token_flops * result.tokens_per_second * 1e-12;
  result.peak_gflops = measured->peak();
  result.mfu = measured->utilization(token_flops * static_cast<double>(options.batch * options.tokens));
  return {};
}

}  // namespace

Batch random_batch(int64_t rows, int64_t tokens, int64_t vocab_size, uint64_t step) {
  Batch batch;
  batch.resize(rows, tokens);
  for (int64_t row = 0; row < rows; ++row) {
    const RowView view = batch.row(row);
    for (size_t t = 0; t < view.ids.size(); ++t)
      view.ids[t] =
          static_cast<int32_t>(bounded_at(stream_key(kSeed + step, "bench.tokens"),
                                          static_cast<uint64_t>(row * tokens) + t, static_cast<uint64_t>(vocab_size)));
    fill_as_one_document(view);
  }
  batch.counted = rows * (tokens - 1);
  return batch;
}

Result<BenchTrainResult> bench_train(const Model& model, const BenchTrainOptions& options, const ThreadPool& pool) {
  BenchTrainResult result;
  ProgramSettings settings;
  settings.fuse = options.fuse;
  settings.rows = options.batch;
  settings.tokens = options.tokens;
  settings.dropout = false;
  settings.precision.dtype = dtype_of(options.precision);
  settings.recompute = options.recompute;
  INGOT_ASSIGN(auto programs, TrainingPrograms::create(model, settings, pool));
  initialize_weights(model, kSeed, programs->arena(), pool);
  result.compile_ms = programs->compile_seconds() * 1e3;
  result.planned_arena_bytes = programs->arena().bytes();
  const MemoryEstimate memory = programs->memory();
  result.planned_bytes = memory.total();
  result.activations = memory.activations;
  result.kept = memory.kept;
  result.lower_bound = memory.lower_bound;
  result.recomputed = describe_levels(programs->passes().recompute);

  Steps steps(*programs, options.precision);
  INGOT_TRY(measure_steps(steps, model, options, pool, result));

  const NodeObserver observer{[&](const NodeEvent& event) -> Status {
    result.breakdown[std::string(event.node.op->name)] += event.seconds() * 1e3;
    return {};
  }};
  const auto extra = static_cast<uint64_t>(kWarmUpSteps + options.steps + 1);
  INGOT_ASSIGN(
      [[maybe_unused]] const double loss,
      steps.run(random_batch(options.batch, options.tokens, model.config().vocab_size, extra), extra, &observer));
  if (options.profile) {
    INGOT_ASSIGN(result.profile_overhead,
                 profile_overhead(steps, options, model.config().vocab_size, extra + 1, pool.threads()));
  }
  return result;
}

}  // namespace ingot::cli
