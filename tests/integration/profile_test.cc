// profile.start_step: the files and lines of `ingot train`, and what they say of slow data.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "base/parallel.h"
#include "command_line.h"
#include "train/trainer.h"
#include "training_testing.h"

namespace ingot::integration {
namespace {

using Json = nlohmann::json;

// A run of 8 steps of two micro-batches each, of which the steps from 3 on are profiled, with an evaluation in between.
class ProfiledRun {
 public:
  ProfiledRun() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += fmt::format("Line {} of the text, whose square is {}.\n", i, i * i);
    EXPECT_TRUE(write_file_atomic(scratch_ / "text.txt", text).ok());
    EXPECT_TRUE(write_file_atomic(scratch_ / "config.yaml", fmt::format(R"(
output_dir: {0}/run
model: {{config: {{model_type: llama, hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 2}}}}
tokenizer: {{path: {0}/tokenizer.json, train_vocab_size: 300}}
data: {{train: [{{path: {0}/text.txt}}], validation_fraction: 0.2, sequence_length: 32}}
training: {{steps: 8, global_batch_size: 4, micro_batch_size: 2}}
evaluation: {{every_steps: 4}}
checkpoint: {{every_steps: 4}}
logging: {{every_steps: 1}}
threads: 2
)",
                                                                        scratch_.path().string()))
                    .ok());
  }

  Outcome train(std::vector<std::string> overrides) const {
    overrides.insert(overrides.begin(), {"train", scratch_ / "config.yaml"});
    return run_ingot(overrides);
  }
  std::string operator/(const std::string& name) const { return scratch_ / ("run/" + name); }
  Json timeline() const { return Json::parse(read_file(*this / "profile/timeline.json").value()); }
  std::vector<std::map<std::string, std::string>> op_summary() const {
    std::istringstream csv(read_file(*this / "profile/op_summary.csv").value());
    std::vector<std::string> names = fields(csv);
    std::vector<std::map<std::string, std::string>> rows;
    for (auto row = fields(csv); !row.empty(); row = fields(csv)) {
      rows.emplace_back();
      for (size_t i = 0; i < names.size(); ++i) rows.back()[names[i]] = row.at(i);
    }
    return rows;
  }

 private:
  static std::vector<std::string> fields(std::istream& csv) {
    std::vector<std::string> all;
    std::string line, one;
    std::getline(csv, line);
    for (std::istringstream in(line); std::getline(in, one, ',');) all.push_back(one);
    if (line.ends_with(',')) all.emplace_back();
    return all;
  }

  ScratchDirectory scratch_;
};

struct Event {
  std::string name, category, op, source, kernel;
  int lane;
  double begin, end;  // us
};

std::vector<Event> events_of(const Json& trace) {
  std::vector<Event> events;
  for (const Json& e : trace.at("traceEvents")) {
    if (e.at("ph") != "X") continue;
    const Json& args = e.at("args");
    const double begin = e.at("ts");
    events.push_back({e.at("name"), e.at("cat"), args.value("op", ""), args.value("source", ""),
                      args.value("kernel", ""), e.at("tid"), begin, begin + e.at("dur").get<double>()});
  }
  std::ranges::stable_sort(events, {}, &Event::begin);
  return events;
}

// Of one lane: each lies inside the last one that goes on, or behind it.
void expect_nested(const std::vector<Event>& events, int lane) {
  std::vector<Event> open;
  std::vector<Event> of_lane;
  std::ranges::copy_if(events, std::back_inserter(of_lane), [&](const Event& e) { return e.lane == lane; });
  std::ranges::stable_sort(
      of_lane, [](const Event& a, const Event& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  for (const Event& event : of_lane) {
    while (!open.empty() && open.back().end <= event.begin + 1e-3) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(event.end, open.back().end + 1e-3) << event.name << " in " << open.back().name;
    }
    open.push_back(event);
  }
}

TEST(Profile, ARunWritesATimelineAndASummaryThatAgree) {
  const ProfiledRun run;
  const Outcome outcome = run.train({"profile.start_step=3", "profile.steps=3"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json trace = run.timeline();
  const std::vector<Event> events = events_of(trace);
  std::map<std::string, Event> steps;
  std::map<std::string, int> activities;
  for (const Event& event : events) {
    if (event.category != "step") continue;
    ++activities[event.name];
    if (event.name.starts_with("step ")) steps.emplace(event.name, event);
  }
  EXPECT_EQ(activities, (std::map<std::string, int>{{"step 3", 1},
                                                    {"step 4", 1},
                                                    {"step 5", 1},
                                                    {"wait for data", 3},
                                                    {"micro-step 1", 3},
                                                    {"micro-step 2", 3},
                                                    {"update", 3},
                                                    {"evaluation", 1},
                                                    {"checkpoint", 1}}));
  for (int lane = 0; lane < 5; ++lane) expect_nested(events, lane);

  std::map<std::string, double> ms;  // of op and source
  std::map<std::string, int> calls;
  for (const Event& event : events) {
    if (event.category != "op") continue;
    EXPECT_LT(event.lane, 2);
    EXPECT_TRUE(std::ranges::any_of(steps, [&](const auto& step) {
      return step.second.begin <= event.begin && event.end <= step.second.end + 1e-3;
    })) << event.name;
    if (event.lane != 0) continue;
    ms[event.op + "," + event.source] += (event.end - event.begin) * 1e-3;
    ++calls[event.op + "," + event.source];
  }
  double percent = 0;
  const auto rows = run.op_summary();
  EXPECT_EQ(rows.size(), ms.size());
  for (const auto& row : rows) {
    const std::string key = row.at("op") + "," + row.at("source");
    EXPECT_NEAR(std::stod(row.at("total_ms")), ms[key], 1e-4) << key;
    EXPECT_EQ(std::stoi(row.at("calls")), calls[key]) << key;
    EXPECT_NEAR(std::stod(row.at("avg_ms")) * calls[key], ms[key], 1e-3) << key;
    percent += std::stod(row.at("percent"));
  }
  EXPECT_NEAR(percent, 100, 1e-3);
  for (const auto& row : rows) EXPECT_NE(row.at("source"), "") << row.at("op");
  for (const char* source : {"model.layers.0.self_attn", "model.layers.1.mlp", "model.norm", "loss",
                             "optimizer.model.layers.1.mlp.down_proj.weight"})
    EXPECT_TRUE(std::ranges::any_of(rows, [&](const auto& row) { return row.at("source") == source; })) << source;

  std::set<std::string> lanes;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "M" && event["name"] == "thread_name") lanes.insert(event["args"]["name"]);
  for (const char* lane : {"thread 1", "data: reading", "data: tokenizing", "data: packing"})
    EXPECT_TRUE(lanes.contains(lane)) << lane;

  for (const char* part : {"profile of steps 3 to 5", "time per step spent outside kernels",
                           "loss 1: ", "loss 3: ", "casts", "tiny ops", "gaps", "data pipeline"})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in: " << outcome.err;
}

TEST(Profile, ChangesNothingThatTheRunComputes) {
  const ProfiledRun plain, profiled;
  ASSERT_EQ(plain.train({}).status, 0);
  const Outcome outcome = profiled.train({"profile.start_step=1", "profile.steps=8", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(Json::parse(outcome.out).at("finished").get<bool>()) << "one JSON object and nothing else";
  EXPECT_FALSE(fs::exists(plain / "profile"));
  EXPECT_EQ(read_file(plain / "model/model.safetensors").value(),
            read_file(profiled / "model/model.safetensors").value());
}

TEST(Profile, StepsThatWillNotRunAreSaidSo) {
  const ProfiledRun run;
  const auto says = [&](std::vector<std::string> overrides, const char* text, bool writes) {
    const Outcome outcome = run.train(std::move(overrides));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << text << " in: " << outcome.err;
    EXPECT_EQ(fs::exists(run / "profile/timeline.json"), writes);
  };
  says({"training.steps=4", "profile.start_step=5"}, "start_step 5 lies behind the last step, 4", false);
  says({"training.steps=8", "profile.start_step=2", "profile.steps=3"}, "the steps 2 to 4 are done already", false);
  says({"training.steps=10", "profile.start_step=8", "profile.steps=5"}, "only 9 to 10 will run", true);
  EXPECT_EQ(events_of(run.timeline()).front().name, "step 9");
  expect_error({"train", run / "../config.yaml", "profile.start_step=1", "profile.steps=0"}, 2,
               {"profile.steps", "from 1 to"});
  expect_error({"train", run / "../config.yaml", "profile.start_step=0"}, 2, {"profile.start_step"});
}

TEST(Profile, EagerModeIsProfiledToo) {
  const ProfiledRun run;
  const Outcome outcome = run.train({"training.steps=2", "training.mode=eager", "profile.start_step=2"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = run.op_summary();
  EXPECT_TRUE(std::ranges::any_of(rows, [](const auto& row) { return row.at("op") == "softmax"; }))
      << "the plain ops one by one";
  EXPECT_TRUE(std::ranges::any_of(rows, [](const auto& row) { return row.at("op") == "adamw"; }));
}

// Sequences of random tokens, each of which takes its time: asleep, or at work.
class SlowSource final : public SequenceSource {
 public:
  SlowSource(bool works, int64_t milliseconds) : works_(works), ns_(milliseconds * 1'000'000) {}
  int64_t count() const override { return 1000; }
  int64_t length(int64_t) const override { return 16; }
  Status fill(int64_t index, const RowView& row) const override {
    {
      const DataScope scope(row.log, works_ ? DataStage::tokenizing : DataStage::reading);
      wait();
    }
    std::ranges::fill(row.ids, static_cast<int32_t>(index % 100));
    fill_as_one_document(row);
    return {};
  }
  uint64_t fingerprint() const override { return 1; }

 private:
  void wait() const {
    if (!works_) std::this_thread::sleep_for(std::chrono::nanoseconds(ns_));
    for (const int64_t start = steady_ns(); works_ && steady_ns() - start < ns_;) {
    }
  }
  bool works_;
  int64_t ns_;
};

// The log of a profiled run on such data.
std::string log_of_run_on(bool works, int64_t milliseconds, int64_t prefetch, int64_t step_milliseconds = 0) {
  const ScratchDirectory scratch;
  RunConfig config = value_of(parse_config(
      fmt::format(
          "output_dir: {}/run\nmodel: {{config: {{model_type: gpt2, vocab_size: 101, n_positions: 16, n_embd: 24, "
          "n_layer: 1, n_head: 3}}}}\ndata: {{sequence_length: 16, prefetch_batches: {}}}\n"
          "training: {{steps: 9, global_batch_size: 2}}\nprofile: {{start_step: 6}}\nthreads: 1\n",
          scratch.path().string(), prefetch),
      "test"));
  TrainerHooks hooks;
  hooks.sources = {{std::make_shared<SlowSource>(works, milliseconds), std::nullopt}};
  hooks.on_step_end.push_back([&](const StepView&) -> Status {
    std::this_thread::sleep_for(std::chrono::milliseconds(step_milliseconds));
    return {};
  });
  const auto result = train(config, hooks);
  EXPECT_TRUE(result.ok()) << result.error().message;
  const Json trace = Json::parse(read_file(scratch / "run/profile/timeline.json").value());
  EXPECT_TRUE(std::ranges::any_of(events_of(trace), [&](const Event& event) {
    return event.category == "data" && event.name == (works ? "tokenizing" : "reading");
  }));
  return read_file(scratch / "run/log.txt").value();
}

TEST(Profile, SaysForWhatASlowSourceOfDataWaits) {
  for (const int64_t prefetch : {0, 1}) {
    const std::string disk = log_of_run_on(false, 60, prefetch), cpu = log_of_run_on(true, 60, prefetch);
    EXPECT_NE(disk.find("the data pipeline is the bottleneck, for disk"), std::string::npos) << disk;
    EXPECT_NE(cpu.find("the data pipeline is the bottleneck, for CPU"), std::string::npos) << cpu;
  }
  // Steps so long that no pause of the scheduler's makes them wait noticeably.
  const std::string fast = log_of_run_on(true, 0, 4, 100);
  EXPECT_NE(fast.find("the data pipeline keeps up"), std::string::npos) << fast;
}

}  // namespace
}  // namespace ingot::integration
