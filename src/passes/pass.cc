#include "passes/pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/glob.h"

namespace ingot {

bool PassContext::may_fuse(std::string_view pattern, std::string_view path) const {
  return std::ranges::none_of(
      no_fuse, [&](const std::string& glob) { return glob_match(glob, pattern) || glob_match(glob, path); });
}

void PassContext::applied(std::string_view pattern, std::string_view path) {
  notes.push_back({std::string(pattern), std::string(path), true, ""});
}

void PassContext::missed(std::string_view pattern, std::string_view path, std::string reason) {
  FusionNote note{std::string(pattern), std::string(path), false, std::move(reason)};
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
}

bool PassContext::allowed(std::string_view pattern, std::string_view path) {
  if (may_fuse(pattern, path)) return true;
  missed(pattern, path, "switched off by compile.no_fuse");
  return false;
}

std::string fusion_report(std::span<const FusionNote> notes) {
  std::vector<std::string> patterns;
  for (const FusionNote& note : notes)
    if (std::ranges::find(patterns, note.pattern) == patterns.end()) patterns.push_back(note.pattern);
  if (patterns.empty()) return "no pattern was found\n";
  std::string report;
  for (const std::string& pattern : patterns) {
    const auto count = [&](bool applied) {
      return std::ranges::count_if(
          notes, [&](const FusionNote& note) { return note.pattern == pattern && note.applied == applied; });
    };
    report += fmt::format("{}: applied {}, not applied {}\n", pattern, count(true), count(false));
    for (const FusionNote& note : notes) {
      if (note.pattern != pattern) continue;
      const std::string_view path = note.path.empty() ? "(no path)" : std::string_view(note.path);
      report += note.applied ? fmt::format("  + {}\n", path) : fmt::format("  - {}: {}\n", path, note.reason);
    }
  }
  return report;
}

}  // namespace ingot
