// ingot check: is this installation sound?
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/system.h"
#include "check_kernels.h"
#include "check_libraries.h"
#include "command.h"
#include "kernels/instruction_set.h"
#include "kernels/peak/peak.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CheckFlags {
  int threads = 0;
  bool json = false;
};

struct Report {
  std::vector<LibraryVersion> libraries;
  std::string cpu, isa, bf16_instructions;
  std::vector<std::string> instruction_sets;
  int threads = 1;
  double fp32_gflops = 0, bf16_gflops = 0;
  double read_gbytes_per_s = 0, copy_gbytes_per_s = 0;
  uint64_t available_memory = 0;
  std::vector<KernelCheck> kernels;
  std::vector<std::string> problems;
};

// The ranks that an MPI launcher says there are; 1 without one. This program has no MPI.
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* value = std::getenv(name)) return std::max(1, std::atoi(value));
  return 1;
}

void find_problems(Report& report) {
  for (const LibraryVersion& library : report.libraries)
    if (!library.ok())
      report.problems.push_back(
          fmt::format("{} is version {}, the program was built with {}: install that version, or build again",
                      library.name, library.run, library.build));
  for (const KernelCheck& check : report.kernels)
    if (!check.ok())
      report.problems.push_back(fmt::format(
          "a training step of {} on {} is wrong: {} differs by {:.2g} of its largest entry, at most 1e-4 is expected",
          check.model, check.isa, check.where, check.error));
  if (report.fp32_gflops <= 0 || report.copy_gbytes_per_s <= 0)
    report.problems.emplace_back("the machine's speed could not be measured");
  if (const int ranks = launched_ranks(); ranks > 1)
    report.problems.push_back(
        fmt::format("started as one of {} ranks, but this program is built without MPI: each would work alone", ranks));
}

Result<Report> make_report(const ThreadPool& pool) {
  Report report;
  report.libraries = library_versions();
  report.cpu = cpu_name();
  report.isa = kernels::instruction_set();
  report.instruction_sets = kernels::all_instruction_sets();
  report.threads = pool.threads();
  report.fp32_gflops = std::max(kernels::fp32_peak_gflops(pool), kernels::matmul_gflops(pool, DType::f32));
  const kernels::Bf16Peak bf16 = kernels::bf16_peak(pool);
  report.bf16_gflops = std::max(bf16.gflops, kernels::matmul_gflops(pool, DType::bf16));
  report.bf16_instructions = bf16.instructions;
  report.read_gbytes_per_s = kernels::read_bandwidth(pool);
  report.copy_gbytes_per_s = kernels::copy_bandwidth(pool);
  report.available_memory = available_memory();
  INGOT_ASSIGN(report.kernels, check_kernel_paths(pool));
  find_problems(report);
  return report;
}

void print_report_json(const Report& report) {
  Json libraries = Json::array(), kernels = Json::array();
  for (const LibraryVersion& library : report.libraries)
    libraries.push_back({{"name", library.name}, {"build", library.build}, {"run", library.run}});
  for (const KernelCheck& check : report.kernels)
    kernels.push_back({{"isa", check.isa},
                       {"model", check.model},
                       {"max_error", check.error},
                       {"where", check.where},
                       {"ok", check.ok()}});
  print_json({{"version", INGOT_VERSION},
              {"libraries", libraries},
              {"cpu", report.cpu},
              {"isa", report.isa},
              {"instruction_sets", report.instruction_sets},
              {"bf16_instructions", report.bf16_instructions},
              {"threads", report.threads},
              {"peak_gflops", {{"fp32", report.fp32_gflops}, {"bf16", report.bf16_gflops}}},
              {"memory_gbytes_per_s", {{"read", report.read_gbytes_per_s}, {"copy", report.copy_gbytes_per_s}}},
              {"available_memory", report.available_memory},
              {"mpi", {{"enabled", false}, {"ranks", 1}}},
              {"kernels", kernels},
              {"problems", report.problems},
              {"ok", report.problems.empty()}});
}

void print_report(const Report& report) {
  std::cout << fmt::format("ingot       {}\n", INGOT_VERSION);
  for (const LibraryVersion& library : report.libraries)
    std::cout << fmt::format("  {:<14} built with {:<8} runs with {}\n", library.name, library.build, library.run);
  std::cout << fmt::format("cpu         {}\n", report.cpu)
            << fmt::format("kernels     {}{}\n", report.isa,
                           report.bf16_instructions.empty() ? "" : "; the CPU has " + report.bf16_instructions)
            << fmt::format("threads     {}\n", report.threads)
            << fmt::format("peak        {:.1f} GFLOP/s in fp32, {:.1f} in bf16\n", report.fp32_gflops,
                           report.bf16_gflops)
            << fmt::format("memory      {:.1f} GB/s reading, {:.1f} copying; {:.1f} GB available\n",
                           report.read_gbytes_per_s, report.copy_gbytes_per_s,
                           static_cast<double>(report.available_memory) * 1e-9)
            << "MPI         not in this program, 1 rank\n";
  for (const KernelCheck& check : report.kernels)
    std::cout << fmt::format("step        {:<8} {:<6} {} (largest error {:.1e}, {})\n", check.isa, check.model,
                             check.ok() ? "right" : "WRONG", check.error, check.where);
  std::cout << (report.problems.empty() ? "ok\n" : "not ok\n") << std::flush;
}

Status run_check(const CheckFlags& flags) {
  const ThreadPool pool(default_threads(flags.threads));
  INGOT_ASSIGN(const Report report, make_report(pool));
  flags.json ? print_report_json(report) : print_report(report);
  if (report.problems.empty()) return {};
  std::string message = report.problems.front();
  for (size_t i = 1; i < report.problems.size(); ++i) message += "; " + report.problems[i];
  return Error{ErrorKind::failed, message};
}

}  // namespace

void add_check(CLI::App& app, Command& command) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* verb = app.add_subcommand(
      "check", "Is this installation sound? Versions, speed, and every kernel path against references");
  verb->footer("Example: ingot check --json\nExit status 1 where something is not as it must be.");
  verb->add_option("--threads", flags->threads, "Threads (default: OMP_NUM_THREADS, else the usable cores)")
      ->check(CLI::Range(1, 4096));
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->callback([flags, &command] { command.run = [flags] { return run_check(*flags); }; });
}

}  // namespace ingot::cli
