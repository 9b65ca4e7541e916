// Profiles of made-up times, whose figures can be told by hand, and of a program that really runs.
#include "runtime/profile.h"

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "graph/text.h"
#include "ops/registry.h"
#include "runtime/profile_report.h"
#include "runtime/timeline.h"

namespace ingot {
namespace {

constexpr int64_t kMs = 1'000'000;  // ns

// A step of two micro-batches' worth of ops: a product, two elementwise ops, a view and a cast.
constexpr const char* kGraph = R"(graph "g"
%0 = state "x" : f32[64,128]
%1 = state "w" : f32[128,256]
%2 = matmul(%0, %1) {transpose_a=false, transpose_b=false} : f32[64,256] @"model.layers.0.mlp"
%3 = exp(%2) : f32[64,256] @"model.layers.0.mlp"
%4 = reshape(%3) {shape=[16384]} : f32[16384] @"model.layers.1"
%5 = exp(%4) : f32[16384] @"model.layers.1.mlp"
output "y" = %5
)";

struct Loaded {
  explicit Loaded(int threads) : pool(threads) {
    auto graph = parse_graph(kGraph, find_op);
    if (!graph.ok()) throw std::runtime_error(graph.error().message);
    VariableLayout variables;
    add_variables_of(*graph, variables);
    program = Program::create(std::move(*graph), variables, threads).value();
    arena = std::make_unique<Arena>(Arena::create(variables, pool).value());
    if (!arena->reserve(program->plan().workspace_bytes, program->scratch_bytes(), pool).ok())
      throw std::runtime_error("no memory");
  }
  void note(Profile& profile, size_t step, int64_t begin, int64_t end) const {
    profile.add(NodeEvent{*program, *arena, step, program->node_at(step), begin, end});
  }

  ThreadPool pool;
  std::unique_ptr<Program> program;
  std::unique_ptr<Arena> arena;
};

// Two steps of 100 ms: 10 ms waiting for data, the product 40 ms, the exps 20 ms and 5 us; two gaps of 15 ms.
void note_two_steps(const Loaded& loaded, Profile& profile) {
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t at = (1000 + 200 * i) * kMs;
    profile.begin_step(i + 7, at);
    profile.add(Activity::wait_for_data, 0, at, at + 10 * kMs);
    loaded.note(profile, 0, at + 10 * kMs, at + 50 * kMs);
    loaded.note(profile, 1, at + 65 * kMs, at + 85 * kMs);
    loaded.note(profile, 2, at + 85 * kMs, at + 85 * kMs);  // the view
    loaded.note(profile, 3, at + 85 * kMs, at + 85 * kMs + 5000);
    profile.add(Activity::micro_step, 1, at + 10 * kMs, at + 90 * kMs);
    profile.end_step(at + 100 * kMs);
    profile.add(Activity::evaluation, 0, at + 100 * kMs, at + 150 * kMs);
  }
}

// One multiply-add a nanosecond and 8 bytes: the product of 64 x 128 x 256 takes 2.1 ms, an exp of 16384 elements
// 0.25 ms.
constexpr MachineLimits kLimits{.peak_gflops = 4, .product_gflops = 2, .copy_gbytes_per_s = 8};

TEST(Profile, AReportSaysWhereTheTimeOfTheStepsWent) {
  const Loaded loaded(1);
  Profile profile(1, 100, 100);
  note_two_steps(loaded, profile);
  const ProfileReport r = summarize(profile, kLimits);
  EXPECT_EQ(r.steps, 2);
  EXPECT_EQ(r.first_step, 7);
  EXPECT_EQ(r.last_step, 8);
  EXPECT_EQ(r.step_time, 200 * kMs);
  EXPECT_EQ(r.data_wait, 20 * kMs);
  EXPECT_EQ(r.kernel_time, 120 * kMs + 10'000);
  EXPECT_EQ(r.other_time(), 60 * kMs - 10'000);
  EXPECT_EQ(r.tiny_ops.number, 2);
  EXPECT_EQ(r.tiny_ops.time, 10'000);
  EXPECT_EQ(r.casts.number, 0);
  EXPECT_EQ(r.gaps.number, 4);  // before the first exp, and behind the last op
  EXPECT_EQ(r.gaps.time, 60 * kMs - 10'000);
  EXPECT_EQ(r.longest_gap, 15 * kMs);
  EXPECT_EQ(r.longest_gap_before, "exp model.layers.0.mlp");
  EXPECT_EQ(r.dropped, 0);
}

TEST(Profile, OpsAreHeldAgainstTheMachineAndTheLargestLossComesFirst) {
  const Loaded loaded(1);
  Profile profile(1, 100, 100);
  note_two_steps(loaded, profile);
  const ProfileReport r = summarize(profile, kLimits);
  ASSERT_EQ(r.ops.size(), 3u);
  const OpTotals& product = r.ops[0];
  EXPECT_EQ(product.op, "matmul");
  EXPECT_EQ(product.source, "model.layers.0.mlp");
  EXPECT_TRUE(product.kernel.starts_with("matmul.f32.")) << product.kernel;
  EXPECT_EQ(product.calls, 2);
  EXPECT_EQ(product.time, 80 * kMs);
  const double flops = 2.0 * 64 * 128 * 256, bytes = 4.0 * (64 * 128 + 128 * 256 + 64 * 256);
  EXPECT_NEAR(product.gflops(), flops / 40e6, 1e-12);
  EXPECT_NEAR(product.gbytes_per_s(), bytes / 40e6, 1e-12);
  EXPECT_NEAR(product.percent_of_peak(), 100 * flops / 2 / 40e6, 1e-9);
  EXPECT_EQ(r.ops[1].source, "model.layers.0.mlp");
  EXPECT_EQ(r.ops[2].source, "model.layers.1.mlp");
  ASSERT_EQ(r.losses.size(), 2u);
  EXPECT_EQ(r.losses[0].op, "matmul");
  EXPECT_NEAR(r.losses[0].lost(), 2 * (40e-3 - flops / 2 * 1e-9), 1e-12);
  EXPECT_EQ(r.losses[1].op, "exp");
  EXPECT_EQ(r.losses[1].source, "model.layers.0.mlp");
  const std::string text = fmt::format("{}", fmt::join(describe(r), "\n"));
  for (const char* expected :
       {"steps 7 to 8", "100.000 ms a step", "10.00% waiting for data",
        "time per step spent outside kernels: 39.995 ms", "loss 1: matmul takes 40.000 ms a step",
        "at model.layers.0.mlp", "0 casts", "1 tiny ops", "2 gaps"})
    EXPECT_NE(text.find(expected), std::string::npos) << expected << " in\n" << text;
}

TEST(Profile, AStepThatDoesNotFitIsLeftOutAsAWhole) {
  const Loaded loaded(1);
  for (const auto& [ops, activities] : {std::pair<size_t, size_t>{4, 100}, {100, 5}}) {
    Profile profile(1, ops, activities);  // room for one step and a part of the second
    note_two_steps(loaded, profile);
    EXPECT_GT(profile.dropped(), 0);
    EXPECT_EQ(profile.op_count(), 3u);
    const ProfileReport r = summarize(profile, kLimits);
    EXPECT_EQ(r.steps, 1);
    EXPECT_EQ(r.last_step, 7);
    EXPECT_EQ(r.kernel_time, 60 * kMs + 5000);
    EXPECT_EQ(r.dropped, profile.dropped());
  }
}

TEST(Profile, TheSummaryOfOpsIsATableThatSumsUp) {
  const Loaded loaded(1);
  Profile profile(1, 100, 100);
  note_two_steps(loaded, profile);
  std::istringstream csv(op_summary_csv(summarize(profile, kLimits)));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line, "op,kernel,calls,total_ms,avg_ms,percent,gflops,gbytes_per_s,percent_of_peak,source");
  std::getline(csv, line);
  EXPECT_TRUE(line.starts_with("matmul,matmul.f32.")) << line;
  EXPECT_NE(line.find(",2,80.000000,40.000000,66.661112,"), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with(",model.layers.0.mlp")) << line;
}

using Json = nlohmann::json;

// The complete events of a lane.
std::vector<Json> lane_of(const Json& trace, int lane, const std::string& category) {
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("ph") == "X" && event.at("tid") == lane && event.at("cat") == category) events.push_back(event);
  std::ranges::sort(events, {}, [](const Json& event) { return event.at("ts").get<double>(); });
  return events;
}

double end_of(const Json& event) {
  return event.at("ts").get<double>() + event.at("dur").get<double>();
}

TEST(Profile, ATimelineHasALaneForEachThreadAndCutsWhatIsOutsideTheSteps) {
  const Loaded loaded(1);
  Profile profile(1, 100, 100);
  note_two_steps(loaded, profile);
  const std::vector<TimelineLane> lanes{
      {"data: \"reading\"", {{"reading", 990 * kMs, 1001 * kMs, {{"cpu_ms", 1.5}}}, {"late", 1300 * kMs, 1400 * kMs}}}};
  const Json trace = Json::parse(timeline_json(profile, lanes));
  const auto ops = lane_of(trace, 0, "op"), activities = lane_of(trace, 0, "step"), data = lane_of(trace, 1, "data");
  ASSERT_EQ(ops.size(), 6u);
  EXPECT_EQ(ops[0]["name"], "matmul model.layers.0.mlp");
  EXPECT_EQ(ops[0]["ts"], 10000.0);
  EXPECT_EQ(ops[0]["dur"], 40000.0);
  EXPECT_EQ(ops[0]["args"]["source"], "model.layers.0.mlp");
  EXPECT_EQ(ops[2]["dur"], 5.0);
  ASSERT_EQ(activities.size(), 8u);
  EXPECT_EQ(activities[0]["ts"], 0.0);
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0]["ts"], 0.0);
  EXPECT_EQ(data[0]["dur"], 1000.0);
  EXPECT_EQ(data[0]["args"]["cpu_ms"], 1.5);
  bool named = false;
  for (const Json& event : trace["traceEvents"])
    named |= event["ph"] == "M" && event["tid"] == 1 && event["args"].value("name", "") == "data: \"reading\"";
  EXPECT_TRUE(named);
}

TEST(Profile, OfAProgramThatRunsIsInOrderOnEveryThread) {
  for (const int threads : {1, 2, 3}) {
    const Loaded loaded(threads);
    Profile profile(threads, 1000, 1000);
    for (int64_t step = 1; step <= 20; ++step) {
      profile.begin_step(step);
      {
        const ActivityScope scope(&profile, Activity::micro_step, 1);
        ASSERT_TRUE(loaded.program->run(*loaded.arena, loaded.pool, {}, {}, &profile.observer()).ok());
      }
      profile.end_step();
    }
    ASSERT_EQ(profile.op_count(), 60u) << "the view does nothing";
    const Json trace = Json::parse(timeline_json(profile, {}));
    const auto activities = lane_of(trace, 0, "step");
    ASSERT_EQ(activities.size(), 40u);
    for (int thread = 0; thread < threads; ++thread) {
      double at = 0;
      for (const Json& op : lane_of(trace, thread, "op")) {
        EXPECT_GE(op["ts"].get<double>() + 1e-6, at) << op;
        at = end_of(op);
        const bool inside = std::ranges::any_of(activities, [&](const Json& one) {
          return one["name"] == "micro-step 1" && one["ts"].get<double>() <= op["ts"].get<double>() &&
                 end_of(one) + 1e-6 >= at;
        });
        EXPECT_TRUE(inside) << op;
        if (thread > 0) {
          EXPECT_LE(op["args"]["busy_us"].get<double>(), op["dur"].get<double>() + 1e-6);
        }
      }
    }
    const ProfileReport r = summarize(profile, kLimits);
    int64_t time = 0;
    for (const OpTotals& row : r.ops) time += row.time;
    EXPECT_EQ(time, r.kernel_time);
    EXPECT_EQ(r.steps, 20);
    EXPECT_GE(r.other_time(), 0);
    EXPECT_GE(r.helpers_idle, threads == 1 ? 0.0 : -1e-9);
    EXPECT_LE(r.helpers_idle, 1.0);
  }
}

}  // namespace
}  // namespace ingot
