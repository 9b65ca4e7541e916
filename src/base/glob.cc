#include "base/glob.h"

#include <cstddef>

namespace ingot {
namespace {

// What one element of a pattern (not `*`) says about one byte, and how long the element is.
struct Element {
  bool matches = false;
  size_t length = 1;
};

Element match_set(std::string_view set, char byte) {  // `set` begins with '['
  const bool negated = set.size() > 1 && set[1] == '!';
  const size_t first = negated ? 2 : 1;
  bool found = false;
  for (size_t i = first; i < set.size();) {
    if (set[i] == ']' && i > first) return {found != negated, i + 1};
    const bool range = i + 2 < set.size() && set[i + 1] == '-' && set[i + 2] != ']';
    const auto low = static_cast<unsigned char>(set[i]), high = static_cast<unsigned char>(set[range ? i + 2 : i]);
    const auto value = static_cast<unsigned char>(byte);
    found = found || (low <= value && value <= high);
    i += range ? 3 : 1;
  }
  return {byte == '[', 1};
}

Element match_one(std::string_view pattern, char byte) {
  if (pattern[0] == '?') return {true, 1};
  if (pattern[0] == '[') return match_set(pattern, byte);
  return {pattern[0] == byte, 1};
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view name) {
  constexpr size_t kNone = std::string_view::npos;
  size_t p = 0, n = 0;
  size_t star = kNone, resume = 0;  // after the last `*`, and where in the name it was tried to end
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resume = n;
      continue;
    }
    const Element element = p < pattern.size() ? match_one(pattern.substr(p), name[n]) : Element{};
    if (element.matches) {
      p += element.length;
      ++n;
      continue;
    }
    if (star == kNone) return false;
    p = star;  // let the last `*` swallow one byte more; an earlier one never needs to
    n = ++resume;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace ingot
