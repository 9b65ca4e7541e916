// Files: reading, mapping, and writing so that a reader sees either the old content or the whole new one.
// Every function that fails says which path and the system's reason. Errors of reading are ErrorKind::input, of writing
// ErrorKind::failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"

namespace ingot {

namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path& path);

// A read-only memory map of a whole file, unmapped on destruction. An empty file maps to an empty span.
class MappedFile {
 public:
  static Result<MappedFile> open(const fs::path& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  std::span<const std::byte> bytes_;
};

// Writes a file beside its final place ("NAME.tmp-PID") and publishes it with publish(): flush, fsync, rename, fsync of
// the directory. A writer that is destroyed unpublished removes what it wrote. Keeps size and XXH3-64 of what was
// written. A symbolic link is followed.
class AtomicFile {
 public:
  // Error (usage) for a path where something stands that is no regular file; failed where none can be made.
  static Result<AtomicFile> create(const fs::path& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Overwrites bytes that were written before (a header whose content is known last). They do not change digest().
  Status write_at(uint64_t offset, std::span<const std::byte> bytes);
  Status publish();
  uint64_t size() const { return size_; }
  uint64_t digest() const { return hash_.digest(); }

 private:
  AtomicFile() = default;
  void discard();
  fs::path path_, temporary_;
  int fd_ = -1;
  uint64_t size_ = 0;
  StreamHash hash_;
};

Status write_file_atomic(const fs::path& path, std::string_view content);
// Removes the temporary files ("NAME.tmp-PID") that AtomicFiles of processes which have died left in a directory.
Status remove_abandoned_files(const fs::path& directory);
Status sync_directory(const fs::path& path);
Status create_directories(const fs::path& path);
// Renames a file or directory and makes the rename durable.
Status rename_durably(const fs::path& from, const fs::path& to);
Status remove_all(const fs::path& path);
// Moves a complete directory to its place, durably. Where a directory that is not empty stands there the two change
// places in one step (or, on a file system that cannot, the old one makes room first), and the old one is removed by
// way of `aside`, a name beside it that must be free.
Status publish_directory(const fs::path& fresh, const fs::path& place, const fs::path& aside);
Result<uint64_t> free_disk_bytes(const fs::path& path);  // of the file system that holds the nearest existing parent

}  // namespace ingot
