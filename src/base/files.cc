#include "base/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

namespace ingot {
namespace {

Error read_problem(const fs::path& path, int error) {
  return input_error("cannot read {}: {}", path.string(), std::strerror(error));
}
Error write_problem(const char* what, const fs::path& path, int error) {
  return failed_error("cannot {} {}: {}", what, path.string(), std::strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status write_fully(int fd, std::span<const std::byte> bytes, int64_t offset, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n =
        offset < 0 ? ::write(fd, bytes.data(), bytes.size()) : ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return write_problem("write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    if (offset >= 0) offset += n;
  }
  return {};
}

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return read_problem(path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return read_problem(path, errno);
  if (S_ISDIR(info.st_mode)) return read_problem(path, EISDIR);
  std::string content;
  content.resize(static_cast<size_t>(info.st_size));
  size_t at = 0;
  for (;;) {  // to the end of the file, whatever size it was said to have (pipes, /proc)
    if (at == content.size()) content.resize(content.size() + 65536);
    const ssize_t n = ::read(fd.get(), content.data() + at, content.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return read_problem(path, errno);
    if (n == 0) break;
    at += static_cast<size_t>(n);
  }
  content.resize(at);
  return content;
}

Result<MappedFile> MappedFile::open(const fs::path& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return read_problem(path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return read_problem(path, errno);
  if (!S_ISREG(info.st_mode)) return input_error("cannot read {}: it is not a regular file", path.string());
  MappedFile file;
  if (info.st_size == 0) return file;
  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return read_problem(path, errno);
  file.bytes_ = {static_cast<const std::byte*>(address), size};
  return file;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<AtomicFile> AtomicFile::create(const fs::path& path) {
  AtomicFile file;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  // A rename would put a file in the place of a device or a pipe.
  if (fs::exists(status) && !fs::is_regular_file(status))
    return usage_error("{} is there and is no regular file; choose another name", path.string());
  const bool is_link = fs::exists(status) && fs::is_symlink(fs::symlink_status(path, ignored));
  file.path_ = is_link ? fs::canonical(path, ignored) : path;  // what a link points at is written, the link stays
  file.temporary_ = file.path_;
  file.temporary_ += fmt::format(".tmp-{}", ::getpid());
  file.fd_ = ::open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file.fd_ < 0) return write_problem("create", file.temporary_, errno);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      hash_(std::move(other.hash_)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(hash_, other.hash_);
  return *this;
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::discard() {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  ::unlink(temporary_.c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  INGOT_TRY(write_fully(fd_, bytes, -1, temporary_));
  hash_.add(bytes);
  size_ += bytes.size();
  return {};
}

Status AtomicFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  return write_fully(fd_, bytes, static_cast<int64_t>(offset), temporary_);
}

Status AtomicFile::publish() {
  if (::fsync(fd_) != 0) return write_problem("fsync", temporary_, errno);
  if (::close(std::exchange(fd_, -1)) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    return write_problem("close", temporary_, error);
  }
  Status renamed = rename_durably(temporary_, path_);
  if (!renamed.ok()) ::unlink(temporary_.c_str());
  return renamed;
}

Status write_file_atomic(const fs::path& path, std::string_view content) {
  INGOT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  INGOT_TRY(file.write(content));
  return file.publish();
}

namespace {

// Whether a name is "NAME.tmp-PID" of a process that is no more.
bool is_abandoned(std::string_view name) {
  constexpr std::string_view kMark = ".tmp-";
  const size_t mark = name.rfind(kMark);
  if (mark == name.npos) return false;
  pid_t pid = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + mark + kMark.size(), end, pid);
  return parsed.ec == std::errc() && parsed.ptr == end && pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

Status remove_abandoned_files(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  if (!fs::exists(directory, error)) return {};
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    if (entry->is_regular_file(gone) && is_abandoned(entry->path().filename().string())) found.push_back(entry->path());
  }
  if (error) return failed_error("cannot list {}: {}", directory.string(), error.message());
  for (const fs::path& path : found)
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return write_problem("remove", path, errno);
  return {};
}

Status sync_directory(const fs::path& path) {
  const fs::path directory = path.empty() ? fs::path(".") : path;
  Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return write_problem("open", directory, errno);
  if (::fsync(fd.get()) != 0) return write_problem("fsync", directory, errno);
  return {};
}

Status create_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return failed_error("cannot create the directory {}: {}", path.string(), error.message());
  return {};
}

Status rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    return failed_error("cannot rename {} to {}: {}", from.string(), to.string(), std::strerror(errno));
  return sync_directory(to.parent_path());
}

Status remove_all(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return failed_error("cannot remove {}: {}", path.string(), error.message());
  return {};
}

Status publish_directory(const fs::path& fresh, const fs::path& place, const fs::path& aside) {
  if (::rename(fresh.c_str(), place.c_str()) == 0) return sync_directory(place.parent_path());
  if (errno != ENOTEMPTY && errno != EEXIST)
    return failed_error("cannot rename {} to {}: {}", fresh.string(), place.string(), std::strerror(errno));
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) {
    INGOT_TRY(sync_directory(place.parent_path()));
    INGOT_TRY(rename_durably(fresh, aside));
  } else {
    INGOT_TRY(rename_durably(place, aside));
    if (Status moved = rename_durably(fresh, place); !moved.ok()) {
      INGOT_TRY(rename_durably(aside, place));
      return moved;
    }
  }
  return ingot::remove_all(aside);
}

Result<uint64_t> free_disk_bytes(const fs::path& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error);
  while (!at.empty() && at != at.root_path() && !fs::exists(at, error)) at = at.parent_path();
  struct statvfs info {};
  if (::statvfs(at.c_str(), &info) != 0)
    return failed_error("cannot read the free space of {}: {}", at.string(), std::strerror(errno));
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace ingot
