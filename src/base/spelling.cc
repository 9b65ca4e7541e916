#include "base/spelling.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace ingot {
namespace {

// Levenshtein's distance, one row of the table at a time.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  const auto best = std::ranges::min_element(known, {}, [&](const std::string& one) { return distance(name, one); });
  return best == known.end() ? std::string() : *best;
}

}  // namespace ingot
