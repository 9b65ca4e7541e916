// A profile as a timeline in Chrome's trace format ("Trace Event Format", Google, 2016): for chrome://tracing, Perfetto
// and others.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "runtime/profile.h"

namespace ingot {

// A lane beside the threads'. Its spans must lie one behind the other.
struct TimelineLane {
  struct Span {
    std::string name;
    int64_t begin = 0, end = 0;                                  // steady_ns()
    std::vector<std::pair<std::string, double>> arguments = {};  // figures shown with it
  };
  std::string name;
  std::vector<Span> spans;
};

// One complete event ("ph": "X") a span, in microseconds from the first step's begin: lane 0 is the thread that runs
// the programs (steps, what they consist of, and the ops, nested), the next are the threads that help it, each with its
// part of each op, then come `lanes`, whose spans are cut to the time from the first step's begin to the last one's
// end.
std::string timeline_json(const Profile& profile, std::span<const TimelineLane> lanes);

}  // namespace ingot
