// AppendFile: a file that only grows, whose writer must go on when the disk does not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"

namespace ingot {

// Appends whole records. Each goes to the system at once, so that it survives the end of the process. What cannot be
// written is kept in memory and tried again before the next record; a record that was written in part is cut off first,
// so the file never holds half of one. Each cause is reported once, as a warning in the log. Not thread-safe.
class AppendFile {
 public:
  // Opens for appending; the file is made where there is none. Errors: failed.
  static Result<AppendFile> open(const std::filesystem::path& path);
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  void append(std::string_view record);
  // Tries again what is still in memory, and makes what was written durable; call it before a checkpoint is published.
  void sync();
  size_t unwritten_bytes() const { return pending_.size(); }

 private:
  AppendFile() = default;
  void write_pending();
  void report(int error);

  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t size_ = 0;  // of the file, up to the last whole record
  std::string pending_;
  std::set<int> reported_;  // causes (errno) that were warned of
};

}  // namespace ingot
