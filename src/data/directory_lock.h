// DirectoryLock: at most one process at a time builds a directory. The lock is the kernel's (flock), so it ends with
// its process, however that ends.
#pragma once

#include <utility>

#include "base/files.h"
#include "base/result.h"

namespace ingot {

class DirectoryLock {
 public:
  // Waits until no other process holds the lock of `directory`, a file beside it. On a file system that knows no locks
  // a warning is logged and the lock holds nobody off.
  static Result<DirectoryLock> acquire(const fs::path& directory);
  DirectoryLock(DirectoryLock&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();  // removes the file

 private:
  DirectoryLock(fs::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  fs::path path_;
  int fd_ = -1;
};

}  // namespace ingot
