#include "runtime/profile_report.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ingot {
namespace {

double part(int64_t of, int64_t whole) {
  return whole > 0 ? static_cast<double>(of) / static_cast<double>(whole) : 0;
}

std::vector<OpTotals> totals_of(const Profile& profile, const MachineLimits& limits) {
  std::map<std::tuple<std::string, std::string, std::string>, OpTotals> rows;
  for (size_t i = 0; i < profile.op_count(); ++i) {
    const OpSpan& span = profile.op(i);
    const Node& node = span.node();
    const std::string kernel = span.kernel();
    OpTotals& row = rows[{std::string(node.op->name), kernel, node.path}];
    if (row.calls == 0) std::tie(row.op, row.kernel, row.source) = std::tie(node.op->name, kernel, node.path);
    const OpCost cost = cost_of(span.program->graph(), node);
    ++row.calls;
    row.time += span.end - span.begin;
    row.cost += cost;
    row.limit_seconds += seconds_at_limit(cost, limits);
  }
  std::vector<OpTotals> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(sorted, std::greater<>(), &OpTotals::time);
  return sorted;
}

std::vector<Loss> losses_of(const std::vector<OpTotals>& rows) {
  std::map<std::string, Loss> by_op;
  std::map<std::string, double> worst;
  for (const OpTotals& row : rows) {
    Loss& loss = by_op[row.op];
    loss.op = row.op;
    loss.seconds += row.seconds();
    loss.limit_seconds += row.limit_seconds;
    const double lost = row.seconds() - row.limit_seconds;
    if (const auto [at, is_first] = worst.try_emplace(row.op, lost); is_first || lost > at->second) {
      at->second = lost;
      loss.source = row.source;
    }
  }
  std::vector<Loss> sorted;
  for (auto& [op, loss] : by_op)
    if (loss.lost() > 0) sorted.push_back(std::move(loss));
  std::ranges::stable_sort(sorted, std::greater<>(), &Loss::lost);
  return sorted;
}

void count(Count& counted, int64_t time) {
  ++counted.number;
  counted.time += time;
}

void count_ops(const Profile& profile, ProfileReport& report) {
  int64_t helpers_busy = 0;
  for (size_t i = 0; i < profile.op_count(); ++i) {
    const OpSpan& span = profile.op(i);
    const int64_t time = span.end - span.begin;
    report.kernel_time += time;
    if (span.node().op->name == "cast") count(report.casts, time);
    if (time < kTinyOp) count(report.tiny_ops, time);
    for (int thread = 1; thread < profile.threads(); ++thread) helpers_busy += profile.share(i, thread).busy;
  }
  if (profile.threads() > 1) report.helpers_idle = 1 - part(helpers_busy, report.kernel_time * (profile.threads() - 1));
}

// The part of [begin, end) in which the step waited for data.
int64_t waited(std::span<const ActivitySpan> activities, int64_t begin, int64_t end) {
  int64_t time = 0;
  for (const ActivitySpan& span : activities)
    if (span.activity == Activity::wait_for_data)
      time += std::max<int64_t>(0, std::min(end, span.end) - std::max(begin, span.begin));
  return time;
}

// Gaps and waits of one step, whose ops are [op, …); gives the first op of the next step.
size_t add_step(const Profile& profile, const ActivitySpan& step, size_t op, ProfileReport& report) {
  const auto note_gap = [&](int64_t begin, int64_t end, const Node* next) {
    if (end - begin < kGap) return;
    const int64_t gap = end - begin - waited(profile.activities(), begin, end);
    if (gap < kGap) return;
    count(report.gaps, gap);
    if (gap <= report.longest_gap) return;
    report.longest_gap = gap;
    report.longest_gap_before = next != nullptr ? place_of(*next) : "the end of the step";
  };
  int64_t at = step.begin;
  for (; op < profile.op_count() && profile.op(op).begin < step.end; ++op) {
    note_gap(at, profile.op(op).begin, &profile.op(op).node());
    at = profile.op(op).end;
  }
  note_gap(at, step.end, nullptr);
  report.step_time += step.end - step.begin;
  report.data_wait += waited(profile.activities(), step.begin, step.end);
  if (report.steps++ == 0) report.first_step = step.number;
  report.last_step = step.number;
  return op;
}

// As RFC 4180 has it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + '"';
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.3f} ms", seconds * 1e3);
}

}  // namespace

ProfileReport summarize(const Profile& profile, const MachineLimits& limits) {
  ProfileReport report;
  report.limits = limits;
  report.threads = profile.threads();
  report.dropped = profile.dropped();
  report.ops = totals_of(profile, limits);
  report.losses = losses_of(report.ops);
  count_ops(profile, report);
  size_t op = 0;
  for (const ActivitySpan& span : profile.activities())
    if (span.activity == Activity::step) op = add_step(profile, span, op, report);
  return report;
}

std::string op_summary_csv(const ProfileReport& report) {
  std::string csv = "op,kernel,calls,total_ms,avg_ms,percent,gflops,gbytes_per_s,percent_of_peak,source\n";
  for (const OpTotals& row : report.ops)
    csv += fmt::format("{},{},{},{:.6f},{:.6f},{:.6f},{:.3f},{:.3f},{:.2f},{}\n", row.op, row.kernel, row.calls,
                       row.seconds() * 1e3, row.seconds() * 1e3 / static_cast<double>(row.calls),
                       100 * part(row.time, report.kernel_time), row.gflops(), row.gbytes_per_s(),
                       row.percent_of_peak(), csv_field(row.source));
  return csv;
}

std::vector<std::string> describe(const ProfileReport& r) {
  const auto steps = static_cast<double>(std::max<int64_t>(r.steps, 1));
  const auto a_step = [&](int64_t time) { return static_cast<double>(time) * 1e-9 / steps; };
  const auto percent = [&](int64_t time) { return 100 * part(time, r.step_time); };
  const auto number = [&](const Count& counted) { return static_cast<double>(counted.number) / steps; };
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "profile of steps {} to {}: {} a step; {:.2f}% in kernels, {:.2f}% waiting for data, {:.2f}% ({}) else",
      r.first_step, r.last_step, milliseconds(a_step(r.step_time)), percent(r.kernel_time), percent(r.data_wait),
      percent(r.other_time()), milliseconds(a_step(r.other_time()))));
  lines.push_back(fmt::format("time per step spent outside kernels: {} ({:.2f}%)",
                              milliseconds(a_step(r.step_time - r.kernel_time)), percent(r.step_time - r.kernel_time)));
  lines.push_back(fmt::format("the machine's limit: {:.1f} GFLOP/s in products, {:.1f} GB/s copying, {} threads",
                              r.limits.product_gflops, r.limits.copy_gbytes_per_s, r.threads));
  for (size_t i = 0; i < std::min<size_t>(r.losses.size(), 3); ++i) {
    const Loss& loss = r.losses[i];
    lines.push_back(
        fmt::format("loss {}: {} takes {} a step, {} more than at the limit ({:.0f}% of it reached), most of it at {}",
                    i + 1, loss.op, milliseconds(loss.seconds / steps), milliseconds(loss.lost() / steps),
                    100 * loss.limit_seconds / loss.seconds, loss.source));
  }
  lines.push_back(fmt::format(
      "a step has {:.0f} casts ({}), {:.0f} tiny ops of less than {} us ({}), {:.0f} gaps of {} us or more ({})",
      number(r.casts), milliseconds(a_step(r.casts.time)), number(r.tiny_ops), kTinyOp / 1000,
      milliseconds(a_step(r.tiny_ops.time)), number(r.gaps), kGap / 1000, milliseconds(a_step(r.gaps.time))));
  if (r.gaps.number > 0)
    lines.push_back(fmt::format("the longest gap: {} before {}",
                                milliseconds(static_cast<double>(r.longest_gap) * 1e-9), r.longest_gap_before));
  if (r.threads > 1)
    lines.push_back(fmt::format("the other {} had nothing to do in {:.1f}% of the kernels' time",
                                r.threads == 2 ? "thread" : "threads", 100 * r.helpers_idle));
  return lines;
}

}  // namespace ingot
