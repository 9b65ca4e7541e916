// ingot bench: repeatable measurements, with the machine's limit beside each figure.
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/system.h"
#include "bench_train.h"
#include "command.h"
#include "train/setup.h"

namespace ingot::cli {
namespace {

struct TrainFlags {
  std::string model;
  BenchTrainOptions options;
  std::string precision = "fp32";
  int threads = 0;
  bool json = false;
};

// A preset's name or a Hugging Face directory.
Result<Model> model_of(const std::string& name) {
  ModelSection section;
  (fs::is_directory(name) ? section.path : section.preset) = name;
  return resolve_model(section, kNone);
}

void print_table(const BenchTrainResult& r) {
  std::cout << fmt::format("step            {:10.1f} ms\n", r.step_ms)
            << fmt::format("throughput      {:10.1f} tokens/s\n", r.tokens_per_second)
            << fmt::format("model FLOPs     {:10.3f} TFLOP/s, MFU {:.3f} of {:.1f} GFLOP/s measured\n", r.model_tflops,
                           r.mfu, r.peak_gflops)
            << fmt::format("memory          {:10.1f} MB at peak, planned {:.1f} MB (arena {:.1f} MB)\n",
                           r.peak_rss_bytes / 1048576.0, r.planned_bytes / 1048576.0, r.planned_arena_bytes / 1048576.0)
            << fmt::format("compilation     {:10.1f} ms\n", r.compile_ms)
            << fmt::format("page faults     {:10} in the measured steps\n", r.page_faults);
  double total = 0;
  for (const auto& [op, ms] : r.breakdown) total += ms;
  std::vector<std::pair<double, std::string>> ops;
  for (const auto& [op, ms] : r.breakdown) ops.emplace_back(ms, op);
  std::ranges::sort(ops, std::greater<>());
  for (const auto& [ms, op] : ops) std::cout << fmt::format("  {:26} {:9.2f} ms {:5.1f}%\n", op, ms, 100 * ms / total);
}

Status run_train(const TrainFlags& flags) {
  if (flags.precision != "fp32")
    return usage_error("--precision {}: this version computes in fp32 only", flags.precision);
  INGOT_ASSIGN(const Model model, model_of(flags.model));
  const ThreadPool pool(default_threads(flags.threads));
  INGOT_ASSIGN(const BenchTrainResult r, bench_train(model, flags.options, pool));
  if (!flags.json) {
    print_table(r);
    return {};
  }
  print_json({{"step_ms", r.step_ms},
              {"tokens_per_second", r.tokens_per_second},
              {"model_tflops", r.model_tflops},
              {"mfu", r.mfu},
              {"peak_gflops", r.peak_gflops},
              {"planned_arena_bytes", r.planned_arena_bytes},
              {"planned_bytes", r.planned_bytes},
              {"peak_rss_bytes", r.peak_rss_bytes},
              {"compile_ms", r.compile_ms},
              {"page_faults", r.page_faults},
              {"losses", r.losses},
              {"breakdown", r.breakdown}});
  return {};
}

}  // namespace

void add_bench(CLI::App& app, Command& command) {
  CLI::App* verb = app.add_subcommand("bench", "Measures, with the machine's limit beside each figure");
  verb->require_subcommand(1);
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* train =
      verb->add_subcommand("train", "A whole training step, AdamW and clipping included, on random tokens");
  train->footer("Example: ingot bench train --model gpt2-124m --batch 1 --seq 1024 --steps 5");
  train->add_option("--model", flags->model, "A preset's name or a Hugging Face directory")->required();
  train->add_option("--batch", flags->options.batch, "Sequences")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  train->add_option("--seq", flags->options.tokens, "Tokens of a sequence")
      ->check(CLI::Range(2, 1 << 24))
      ->capture_default_str();
  train->add_option("--steps", flags->options.steps, "Measured steps, after two of warm-up")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  train->add_option("--precision", flags->precision, "fp32")->capture_default_str();
  train->add_flag("!--no-fuse", flags->options.fuse, "Run the plain ops one by one");
  train->add_option("--threads", flags->threads, "Threads")->check(CLI::Range(1, 4096));
  train->add_flag("--json", flags->json, "Print one JSON object");
  train->callback([flags, &command] { command.run = [flags] { return run_train(*flags); }; });
}

}  // namespace ingot::cli
