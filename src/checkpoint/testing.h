// What the tests of this folder share.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/rng.h"

namespace ingot::testing {

// A directory that is removed with all that is in it. In memory where the system has such a place: thousands of small
// files that are written and synced are slow on a disk.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const fs::path parent = ::access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string name = (parent / "ingot-checkpoint-test-XXXXXX").string();
    INGOT_CHECK(::mkdtemp(name.data()) != nullptr, "no temporary directory");
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_content(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// The names in a directory, sorted.
inline std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::vector<std::byte> pattern(size_t bytes, uint64_t key) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(philox(key, i)[0] & 0xff);
  return data;
}

}  // namespace ingot::testing
