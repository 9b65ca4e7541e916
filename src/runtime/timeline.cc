#include "runtime/timeline.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cost/op_cost.h"

namespace ingot {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds, exact to the nanosecond.
std::string microseconds(int64_t ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
}

class Writer {
 public:
  explicit Writer(int64_t origin) : origin_(origin) {}

  void name_lane(size_t lane, const std::string& name) {
    metadata("thread_name", lane, fmt::format(R"("name":{})", quoted(name)));
    metadata("thread_sort_index", lane, fmt::format(R"("sort_index":{})", lane));
  }
  void event(size_t lane, const std::string& name, std::string_view category, int64_t begin, int64_t end,
             const std::string& arguments) {
    add(fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":0,"tid":{},"args":{{{}}}}})",
                    quoted(name), category, microseconds(begin - origin_), microseconds(end - begin), lane, arguments));
  }
  std::string finish() {
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  void metadata(std::string_view what, size_t lane, const std::string& arguments) {
    add(fmt::format(R"({{"name":"{}","ph":"M","pid":0,"tid":{},"args":{{{}}}}})", what, lane, arguments));
  }
  void add(const std::string& event) {
    text_ += is_first_ ? "\n" : ",\n";
    text_ += event;
    is_first_ = false;
  }

  int64_t origin_;
  std::string text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
  bool is_first_ = true;
};

void write_activities(const Profile& profile, Writer& writer) {
  for (const ActivitySpan& span : profile.activities()) {
    std::string name(name_of(span.activity));
    if (span.number > 0) name += fmt::format(" {}", span.number);
    writer.event(0, name, "step", span.begin, span.end, "");
  }
}

void write_op(const Profile& profile, size_t i, Writer& writer) {
  const OpSpan& span = profile.op(i);
  const Node& node = span.node();
  const std::string name = place_of(node);
  const std::string about = fmt::format(R"("op":"{}","source":{})", node.op->name, quoted(node.path));
  const OpCost cost = cost_of(span.program->graph(), node);
  const double ns = std::max(1.0, static_cast<double>(span.end - span.begin));
  writer.event(0, name, "op", span.begin, span.end,
               fmt::format(R"({},"kernel":"{}","gflops":{:.3f},"gbytes_per_s":{:.3f})", about, span.kernel(),
                           cost.flops / ns, cost.bytes / ns));
  for (int thread = 1; thread < profile.threads(); ++thread) {
    const OpShare& share = profile.share(i, thread);
    if (share.begin == 0) continue;
    writer.event(static_cast<size_t>(thread), name, "op", share.begin, share.end,
                 fmt::format(R"({},"busy_us":{})", about, microseconds(share.busy)));
  }
}

void write_lane(size_t number, const TimelineLane& lane, int64_t begin, int64_t end, Writer& writer) {
  writer.name_lane(number, lane.name);
  for (const TimelineLane::Span& span : lane.spans) {
    const int64_t from = std::max(span.begin, begin), to = std::min(span.end, end);
    if (from >= to) continue;
    std::string arguments;
    for (const auto& [name, value] : span.arguments)
      arguments += fmt::format("{}{}:{:.3f}", arguments.empty() ? "" : ",", quoted(name), value);
    writer.event(number, span.name, "data", from, to, arguments);
  }
}

}  // namespace

std::string timeline_json(const Profile& profile, std::span<const TimelineLane> lanes) {
  int64_t begin = 0, end = 0;
  for (const ActivitySpan& span : profile.activities()) {
    if (span.activity != Activity::step) continue;
    if (begin == 0) begin = span.begin;
    end = span.end;
  }
  Writer writer(begin);
  writer.name_lane(0, "thread 0: steps and ops");
  for (int thread = 1; thread < profile.threads(); ++thread)
    writer.name_lane(static_cast<size_t>(thread), fmt::format("thread {}", thread));
  write_activities(profile, writer);
  for (size_t i = 0; i < profile.op_count(); ++i) write_op(profile, i, writer);
  for (size_t i = 0; i < lanes.size(); ++i)
    write_lane(static_cast<size_t>(profile.threads()) + i, lanes[i], begin, end, writer);
  return writer.finish();
}

}  // namespace ingot
