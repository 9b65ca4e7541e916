#include "data/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace ingot {
namespace {

int lock_waiting(int fd, const fs::path& path) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
  if (errno == EWOULDBLOCK) {
    log_info("waiting for another process that builds what {} guards", path.string());
    while (::flock(fd, LOCK_EX) != 0)
      if (errno != EINTR) return errno;
    return 0;
  }
  return errno;
}

// The last holder removes the file: a lock on a file that is no longer the one at `path` guards nothing.
bool is_at(int fd, const fs::path& path) {
  struct stat open_file {
  }, file{};
  return ::fstat(fd, &open_file) == 0 && ::stat(path.c_str(), &file) == 0 && open_file.st_ino == file.st_ino &&
         open_file.st_dev == file.st_dev;
}

}  // namespace

Result<DirectoryLock> DirectoryLock::acquire(const fs::path& directory) {
  fs::path path = directory;
  path += ".lock";
  for (;;) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return failed_error("cannot create {}: {}", path.string(), std::strerror(errno));
    const int problem = lock_waiting(fd, path);
    if (problem != 0)
      log_warning("cannot lock {}: {}; do not build it in two processes at once", path.string(),
                  std::strerror(problem));
    if (problem != 0 || is_at(fd, path)) return DirectoryLock(std::move(path), fd);
    ::close(fd);
  }
}

DirectoryLock::~DirectoryLock() {
  if (fd_ < 0) return;
  ::unlink(path_.c_str());  // before the lock is let go
  ::close(fd_);
}

}  // namespace ingot
