// The stored numbers of the reference implementation.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace ingot {

inline std::filesystem::path references() {
  return std::filesystem::path(INGOT_SOURCE_DIR) / "tests" / "golden" / "references";
}

inline std::vector<std::string> reference_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(references()))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace ingot
