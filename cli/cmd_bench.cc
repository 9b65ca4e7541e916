// ingot bench: repeatable measurements, with the machine's limit beside each figure.
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/system.h"
#include "bench_ablate.h"
#include "bench_ops.h"
#include "bench_tokenizer.h"
#include "bench_train.h"
#include "choice_option.h"
#include "command.h"
#include "train/config_codec.h"
#include "train/plan_run.h"
#include "train/setup.h"
#include "train/trainer.h"

namespace ingot::cli {
namespace {

struct BenchTrainFlags {
  std::string model;
  BenchTrainOptions options;
  std::string memory_budget;
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
            << fmt::format("activations     {:10.1f} MB (lower bound {:.1f} MB), kept for backward {:.1f} MB\n",
                           r.activations / 1048576.0, r.lower_bound / 1048576.0, r.kept / 1048576.0)
            << fmt::format("recomputed      {:>10}\n", r.recomputed)
            << fmt::format("compilation     {:10.1f} ms\n", r.compile_ms)
            << fmt::format("page faults     {:10} in the measured steps\n", r.page_faults);
  if (r.profile_overhead)
    std::cout << fmt::format("profile         {:10.2f}% of a step for recording it\n", 100 * *r.profile_overhead);
  double total = 0;
  for (const auto& [op, ms] : r.breakdown) total += ms;
  std::vector<std::pair<double, std::string>> ops;
  for (const auto& [op, ms] : r.breakdown) ops.emplace_back(ms, op);
  std::ranges::sort(ops, std::greater<>());
  for (const auto& [ms, op] : ops) std::cout << fmt::format("  {:26} {:9.2f} ms {:5.1f}%\n", op, ms, 100 * ms / total);
}

// As recompute.memory_budget is written in a configuration.
Status read_memory_budget(const std::string& text, RecomputeSection& recompute) {
  if (text.empty()) return {};
  const config::Codec<int64_t> size = config::byte_size();
  config::Value value;
  value.kind = config::Value::Kind::scalar;
  value.text = text;
  int64_t bytes = 0;
  if (!size.read(value, bytes)) return usage_error("--memory-budget: expected {}, found {}", size.expected, text);
  recompute.memory_budget = bytes;
  return {};
}

Status run_train(BenchTrainFlags flags) {
  INGOT_TRY(read_memory_budget(flags.memory_budget, flags.options.recompute));
  const RecomputeSection& recompute = flags.options.recompute;
  if ((recompute.policy == RecomputePolicy::budget) != recompute.memory_budget.has_value())
    return usage_error("--memory-budget goes with --recompute budget, and only with it");
  INGOT_ASSIGN(const Model model, model_of(flags.model));
  INGOT_TRY(model.check_length(flags.options.tokens, "--seq"));
  const ThreadPool pool(default_threads(flags.threads));
  INGOT_ASSIGN(const BenchTrainResult r, bench_train(model, flags.options, pool));
  if (!flags.json) {
    print_table(r);
    return {};
  }
  nlohmann::ordered_json json{{"step_ms", r.step_ms},
                              {"tokens_per_second", r.tokens_per_second},
                              {"model_tflops", r.model_tflops},
                              {"mfu", r.mfu},
                              {"peak_gflops", r.peak_gflops},
                              {"planned_arena_bytes", r.planned_arena_bytes},
                              {"planned_bytes", r.planned_bytes},
                              {"peak_rss_bytes", r.peak_rss_bytes},
                              {"activations_bytes", r.activations},
                              {"activations_lower_bound_bytes", r.lower_bound},
                              {"activations_kept_bytes", r.kept},
                              {"recomputed", r.recomputed},
                              {"compile_ms", r.compile_ms},
                              {"page_faults", r.page_faults},
                              {"losses", r.losses},
                              {"breakdown", r.breakdown}};
  if (r.profile_overhead) json["profile_overhead"] = *r.profile_overhead;
  print_json(json);
  return {};
}

struct GraphFlags {
  std::vector<std::string> ops;
  OpSizes sizes;
  AttentionSizes attention;
  std::string model;
  int64_t batch = 1, tokens = 1024;
  int64_t repetitions = 5;
  int threads = 0;
  bool json = false;
};

Status run_ops(const GraphFlags& flags) {
  const ThreadPool pool(default_threads(flags.threads));
  const MachineLimits limits = measure_machine(pool);
  std::vector<BenchRow> rows;
  for (const std::string& name : flags.ops.empty() ? op_cases() : flags.ops) {
    INGOT_ASSIGN(BenchRow row, bench_op(name, flags.sizes, flags.repetitions, limits, pool));
    rows.push_back(std::move(row));
  }
  print_rows(rows, limits, flags.json);
  return {};
}

Status run_attention(const GraphFlags& flags) {
  const ThreadPool pool(default_threads(flags.threads));
  const MachineLimits limits = measure_machine(pool);
  INGOT_ASSIGN(const auto rows, bench_attention(flags.attention, flags.repetitions, limits, pool));
  print_rows(rows, limits, flags.json);
  return {};
}

Status run_layer(const GraphFlags& flags) {
  INGOT_ASSIGN(const Model model, model_of(flags.model));
  const ThreadPool pool(default_threads(flags.threads));
  const MachineLimits limits = measure_machine(pool);
  INGOT_ASSIGN(const auto rows, bench_layer(model, flags.batch, flags.tokens, flags.repetitions, limits, pool));
  print_rows(rows, limits, flags.json);
  return {};
}

struct TokenizerFlags {
  std::string tokenizer, input;
  int64_t repetitions = 3;
  bool json = false;
};

Status run_tokenizer(const TokenizerFlags& flags) {
  INGOT_ASSIGN(const TokenizerBench r, bench_tokenizer(flags.tokenizer, flags.input, flags.repetitions));
  if (flags.json) {
    print_json({{"bytes", r.bytes},
                {"tokens", r.tokens},
                {"encode_mb_per_s", r.encode_mb_per_s},
                {"decode_mb_per_s", r.decode_mb_per_s},
                {"read_gbytes_per_s", r.read_gbytes_per_s}});
    return {};
  }
  std::cout << fmt::format("text    {:10.2f} MB, {} tokens, one thread\n", static_cast<double>(r.bytes) * 1e-6,
                           r.tokens)
            << fmt::format("encode  {:10.2f} MB/s\n", r.encode_mb_per_s)
            << fmt::format("decode  {:10.2f} MB/s\n", r.decode_mb_per_s)
            << fmt::format("limit   {:10.2f} MB/s (reading memory)\n", r.read_gbytes_per_s * 1e3) << std::flush;
  return {};
}

using Run = Status (*)(const GraphFlags&);

CLI::App* add_graph_bench(CLI::App& verb, const char* name, const char* about, const std::shared_ptr<GraphFlags>& flags,
                          Run run, Command& command) {
  CLI::App* app = verb.add_subcommand(name, about);
  app->add_option("--repetitions", flags->repetitions, "Measured runs, after one of warm-up; the median counts")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app->add_option("--threads", flags->threads, "Threads")->check(CLI::Range(1, 4096));
  app->add_flag("--json", flags->json, "Print one JSON object");
  app->callback([flags, run, &command] { command.run = [flags, run] { return run(*flags); }; });
  return app;
}

void add_size(CLI::App& app, const char* name, int64_t& value, const char* about, int64_t least = 1) {
  app.add_option(name, value, about)->check(CLI::Range(least, int64_t{1} << 24))->capture_default_str();
}

void add_ops(CLI::App& verb, Command& command) {
  auto flags = std::make_shared<GraphFlags>();
  CLI::App* op = add_graph_bench(verb, "op", "Single ops by their kernels", flags, run_ops, command);
  op->add_option("ops", flags->ops, fmt::format("Which (default: all of {})", fmt::join(op_cases(), ", ")));
  add_size(*op, "--rows", flags->sizes.rows, "Rows: sequences times tokens");
  add_size(*op, "--width", flags->sizes.width, "Width of the residual stream");
  add_size(*op, "--inner", flags->sizes.inner, "Width of the MLP; the other side of products");
  add_size(*op, "--vocab", flags->sizes.vocabulary, "Vocabulary");
  op->footer("Example: ingot bench op matmul layer_norm --rows 4096 --width 768");
}

void add_attention(CLI::App& verb, Command& command) {
  auto flags = std::make_shared<GraphFlags>();
  CLI::App* app =
      add_graph_bench(verb, "attention", "Causal attention, forward and backward", flags, run_attention, command);
  AttentionSizes& sizes = flags->attention;
  add_size(*app, "--batch", sizes.batch, "Sequences");
  add_size(*app, "--seq", sizes.tokens, "Tokens of a sequence");
  add_size(*app, "--heads", sizes.heads, "Query heads");
  add_size(*app, "--kv-heads", sizes.kv_heads, "Key and value heads (0: as many)", 0);
  add_size(*app, "--head-dim", sizes.head_dim, "Width of a head");
  add_size(*app, "--window", sizes.window, "Keys that a query sees at most (0: all before it)", 0);
  app->footer("Example: ingot bench attention --seq 1024 --heads 12 --head-dim 64");
}

void add_layer(CLI::App& verb, Command& command) {
  auto flags = std::make_shared<GraphFlags>();
  CLI::App* app =
      add_graph_bench(verb, "layer", "One block of a model, op by op, forward and backward", flags, run_layer, command);
  app->add_option("--model", flags->model, "A preset's name or a Hugging Face directory")->required();
  add_size(*app, "--batch", flags->batch, "Sequences");
  add_size(*app, "--seq", flags->tokens, "Tokens of a sequence", 2);
  app->footer("Example: ingot bench layer --model gpt2-124m --batch 4 --seq 1024");
}

void add_tokenizer_bench(CLI::App& verb, Command& command) {
  auto flags = std::make_shared<TokenizerFlags>();
  CLI::App* app = verb.add_subcommand("tokenizer", "Encoding and decoding of a text on one thread");
  app->add_option("--tokenizer", flags->tokenizer, "tokenizer.json, or a directory that holds one")->required();
  app->add_option("--input", flags->input, "A text file")->required();
  app->add_option("--repetitions", flags->repetitions, "Measured runs, after one of warm-up; the median counts")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app->add_flag("--json", flags->json, "Print one JSON object");
  app->footer("Example: ingot bench tokenizer --tokenizer tokenizer.json --input corpus.txt");
  app->callback([flags, &command] { command.run = [flags] { return run_tokenizer(*flags); }; });
}

void add_train_bench(CLI::App& verb, Command& command) {
  auto flags = std::make_shared<BenchTrainFlags>();
  CLI::App* train =
      verb.add_subcommand("train", "A whole training step, AdamW and clipping included, on random tokens");
  train->footer("Example: ingot bench train --model gpt2-124m --batch 1 --seq 1024 --steps 5");
  train->add_option("--model", flags->model, "A preset's name or a Hugging Face directory")->required();
  train->add_option("--batch", flags->options.batch, "Sequences")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  train->add_option("--seq", flags->options.tokens, "Tokens of a sequence")
      ->check(CLI::Range(2, 1 << 24))
      ->capture_default_str();
  train->add_option("--steps", flags->options.steps, "Measured steps, after two of warm-up")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  add_precision(*train, flags->options.precision);
  add_choice(*train, "--recompute", flags->options.recompute.policy,
             {RecomputePolicy::none, RecomputePolicy::selective, RecomputePolicy::full, RecomputePolicy::budget},
             "What the backward pass computes again");
  train->add_option("--memory-budget", flags->memory_budget, "Of the whole process, such as 3.4GB");
  train->add_flag("!--no-fuse", flags->options.fuse, "Run the plain ops one by one");
  train->add_flag("--profile", flags->options.profile, "Also measure what recording a profile costs");
  train->add_option("--threads", flags->threads, "Threads")->check(CLI::Range(1, 4096));
  train->add_flag("--json", flags->json, "Print one JSON object");
  train->callback([flags, &command] { command.run = [flags] { return run_train(*flags); }; });
}

struct AblateFlags {
  std::string config;
  std::vector<std::string> overrides;
  AblateOptions options;
  bool json = false;
};

Status run_ablate(const AblateFlags& flags) {
  INGOT_ASSIGN(const RunConfig config, load_config(flags.config, flags.overrides));
  INGOT_TRY(check_supported(config));
  const ThreadPool pool(default_threads(static_cast<int>(config.threads.value_or(0))));
  INGOT_ASSIGN(const PlannedModel planned, plan_model(config));
  INGOT_ASSIGN(const int64_t micro_batch, choose_micro_batch(config, planned.model, pool.threads()));
  INGOT_ASSIGN(const auto rows, ablate(planned.model, program_settings(config, micro_batch), flags.options, pool));
  print_ablation(rows, flags.json);
  return {};
}

void add_ablate(CLI::App& verb, Command& command) {
  auto flags = std::make_shared<AblateFlags>();
  CLI::App* app =
      verb.add_subcommand("ablate", "Switches each optimisation on and off alone: time, memory, differences");
  app->footer("Example: ingot bench ablate config.yaml data.sequence_length=512 --rounds 5");
  app->add_option("config", flags->config, "Configuration file (YAML)")->required();
  app->add_option("overrides", flags->overrides, "Keys to override, as key=value");
  app->add_option("--rounds", flags->options.rounds, "Runs of each form, in turn")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app->add_flag("--json", flags->json, "Print one JSON object");
  app->callback([flags, &command] { command.run = [flags] { return run_ablate(*flags); }; });
}

}  // namespace

void add_bench(CLI::App& app, Command& command) {
  CLI::App* verb = app.add_subcommand("bench", "Measures, with the machine's limit beside each figure");
  verb->require_subcommand(1);
  add_train_bench(*verb, command);
  add_layer(*verb, command);
  add_ops(*verb, command);
  add_attention(*verb, command);
  add_tokenizer_bench(*verb, command);
  add_ablate(*verb, command);
}

}  // namespace ingot::cli
