#include "train/metrics_append.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace ingot {

Result<AppendFile> AppendFile::open(const std::filesystem::path& path) {
  AppendFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file.fd_ < 0) return failed_error("cannot open {} for writing: {}", path.string(), std::strerror(errno));
  struct stat info {};
  if (::fstat(file.fd_, &info) != 0)
    return failed_error("cannot read the size of {}: {}", path.string(), std::strerror(errno));
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      pending_(std::exchange(other.pending_, {})),
      reported_(std::move(other.reported_)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(pending_, other.pending_);
  std::swap(reported_, other.reported_);
  return *this;
}

AppendFile::~AppendFile() {
  if (fd_ < 0) return;
  write_pending();
  if (!pending_.empty())
    log_warning("{} bytes of {} could not be written and are lost", pending_.size(), path_.string());
  ::close(fd_);
}

void AppendFile::append(std::string_view record) {
  pending_ += record;
  write_pending();
}

void AppendFile::sync() {
  write_pending();
  if (::fdatasync(fd_) != 0) report(errno);
}

void AppendFile::write_pending() {
  size_t written = 0;
  while (written < pending_.size()) {
    const ssize_t n = ::write(fd_, pending_.data() + written, pending_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n >= 0) {
      written += static_cast<size_t>(n);
      continue;
    }
    report(errno);
    // Also where nothing is said to have been written: what a failed call left must not precede the next try.
    if (::ftruncate(fd_, static_cast<off_t>(size_)) == 0) return;
    break;  // what was written stays, so only the rest may be tried again
  }
  size_ += written;
  pending_.erase(0, written);
}

void AppendFile::report(int error) {
  if (!reported_.insert(error).second) return;
  log_warning("cannot write {}: {}; training goes on, what is to be written is kept in memory and tried again",
              path_.string(), std::strerror(error));
}

}  // namespace ingot
