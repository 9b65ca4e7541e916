// Measuring a training step: the same program as `ingot train`, on random tokens.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/result.h"
#include "data/batch.h"
#include "models/model.h"
#include "train/config.h"

namespace ingot::cli {

struct BenchTrainOptions {
  int64_t batch = 1, tokens = 1024;
  int64_t steps = 5;
  bool fuse = true;
  Precision precision = Precision::fp32;
  RecomputeSection recompute;
  bool profile = false;  // measure what recording a profile costs, too
};

struct BenchTrainResult {
  double step_ms = 0;  // the median
  double tokens_per_second = 0;
  double model_tflops = 0;  // of the model's own FLOPs (DESIGN's formula), whatever was recomputed
  double mfu = 0;           // the median over stretches of steps, each of the peak before and after it
  double peak_gflops = 0;   // the larger of a register-only loop and the own products, the median of those measurements
  int64_t planned_arena_bytes = 0, planned_bytes = 0, peak_rss_bytes = 0;
  int64_t activations = 0, kept = 0, lower_bound = 0;  // as MemoryEstimate has them
  std::string recomputed;                              // in which layers
  double compile_ms = 0;
  int64_t page_faults = 0;  // in the measured steps
  std::vector<double> losses;
  std::optional<double> profile_overhead;   // part of a step's time: the median of pairs of steps, without and with it
  std::map<std::string, double> breakdown;  // milliseconds by op, of one step more
};

// Random tokens, each row one document; the same for the same step.
Batch random_batch(int64_t rows, int64_t tokens, int64_t vocab_size, uint64_t step);

Result<BenchTrainResult> bench_train(const Model& model, const BenchTrainOptions& options, const ThreadPool& pool);

}  // namespace ingot::cli
