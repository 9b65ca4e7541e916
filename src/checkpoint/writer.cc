#include "checkpoint/writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/reader.h"
#include "checkpoint/save_directory.h"

namespace ingot {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kTile = uint64_t{4} << 20;

uint64_t align(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Memory in huge pages where the system gives them, touched once and kept.
class Staging {
 public:
  ~Staging() { release(); }

  Status reserve(uint64_t bytes) {
    if (bytes <= size_) return {};
    release();
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return failed_error("cannot allocate {} bytes to stage checkpoints: {}", bytes, std::strerror(errno));
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    std::memset(memory, 0, bytes);
    memory_ = static_cast<std::byte*>(memory);
    size_ = bytes;
    return {};
  }
  std::byte* data() const { return memory_; }
  uint64_t size() const { return size_; }

 private:
  void release() {
    if (memory_ != nullptr) ::munmap(memory_, size_);
    memory_ = nullptr;
    size_ = 0;
  }
  std::byte* memory_ = nullptr;
  uint64_t size_ = 0;
};

struct Copy {
  std::byte* to;
  const std::byte* from;
  uint64_t bytes;
};

// Copies the pieces' data into the staging memory and points them there.
Status stage(std::vector<SavedPiece>& pieces, Staging& staging, const ThreadPool* pool) {
  uint64_t total = 0;
  for (const SavedPiece& piece : pieces) total += align(piece.data.bytes());
  INGOT_TRY(staging.reserve(total));
  std::vector<Copy> tiles;
  std::byte* at = staging.data();
  for (SavedPiece& piece : pieces) {
    const uint64_t bytes = piece.data.bytes();
    for (uint64_t done = 0; done < bytes; done += kTile)
      tiles.push_back({at + done, piece.data.data + done, std::min(kTile, bytes - done)});
    piece.data.data = at;
    at += align(bytes);
  }
  const auto copy = [&](int64_t tile, int) {
    const Copy& c = tiles[static_cast<size_t>(tile)];
    std::memcpy(c.to, c.from, c.bytes);
  };
  if (pool != nullptr)
    pool->run(static_cast<int64_t>(tiles.size()), copy);
  else
    for (size_t tile = 0; tile < tiles.size(); ++tile) copy(static_cast<int64_t>(tile), 0);
  return {};
}

void check_snapshot(const Snapshot& snapshot) {
  INGOT_CHECK(snapshot.step >= 0, "a snapshot of step {}", snapshot.step);
  for (const SavedPiece& piece : snapshot.pieces)
    INGOT_CHECK(piece.box.rank() == piece.shape.rank() && piece.box.shape() == piece.data.shape,
                "{} of \"{}\": data of shape {} for the box {}", piece.kind, piece.tensor, piece.data.shape.to_string(),
                piece.box.to_string());
  for (const SavedFile& file : snapshot.files)
    INGOT_CHECK(is_plain_file_name(file.name) && file.name != kManifestName && file.name != kStateName &&
                    !file.name.ends_with(".safetensors"),
                "a checkpoint cannot take a file named \"{}\"", file.name);
}

enum class Claim { held, taken, unsupported };

// The claim on a directory is a lock on its descriptor, which the system drops when the process dies in whatever way.
Claim claim_directory(const fs::path& directory, int& fd) {
  fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Claim::unsupported;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return Claim::held;
  return errno == EWOULDBLOCK ? Claim::taken : Claim::unsupported;
}

bool owner_is_alive(const std::string& name) {
  const size_t dash = name.rfind('-');
  pid_t pid = 0;
  const auto parsed = std::from_chars(name.data() + dash + 1, name.data() + name.size(), pid);
  return parsed.ec == std::errc() && pid > 0 && pid != ::getpid() && (::kill(pid, 0) == 0 || errno == EPERM);
}

// Removes directories of saves and deletions that were cut short. Holding the claim, nobody else can be at work in
// them.
Status clean_leftovers(const fs::path& directory, bool claimed) {
  INGOT_ASSIGN(const auto entries, list_checkpoints(directory));
  for (const CheckpointEntry& entry : entries) {
    const std::string name = entry.path.filename().string();
    const bool unfinished = name.find(".tmp-") != name.npos, deleted = name.find(".old-") != name.npos;
    if (!unfinished && !deleted) continue;
    if (!claimed && owner_is_alive(name)) continue;
    if (unfinished) log_warning("removed {}: a save that was cut short", name);
    INGOT_TRY(ingot::remove_all(entry.path));
  }
  return {};
}

}  // namespace

struct CheckpointWriter::State {
  CheckpointWriterOptions options;
  int claim = -1;  // descriptor of the directory, locked where the file system can
  Staging staging;
  std::thread thread;
  std::atomic<bool> busy = false;
  mutable std::mutex mutex;
  Status result;

  ~State() {
    if (thread.joinable()) thread.join();
    if (claim >= 0) ::close(claim);
  }

  // Tells of a failure only where the caller will not: behind its back.
  Status write(const Snapshot& snapshot) {
    Status status = write_caught(snapshot);
    if (!status.ok() && options.background)
      log_warning("the checkpoint of step {} could not be saved: {}; earlier checkpoints are as they were",
                  snapshot.step, status.error().message);
    std::lock_guard lock(mutex);
    result = status;
    return status;
  }

  // An exception would end the process when it left the thread.
  Status write_caught(const Snapshot& snapshot) {
    try {
      const auto begin = Clock::now();
      INGOT_ASSIGN(const uint64_t bytes, save_directory(options.directory, snapshot));
      log_info("saved {} ({:.1f} MB in {:.2f} s)", checkpoint_name(snapshot.step), static_cast<double>(bytes) * 1e-6,
               seconds_since(begin));
      const Status pruned = prune_checkpoints(options.directory, options.keep, snapshot.step, LaterSteps::all_go);
      if (!pruned.ok()) log_warning("{}; it stays until the next save", pruned.error().message);
      return {};
    } catch (const std::exception& problem) {
      return failed_error("{}", problem.what());
    }
  }
};

CheckpointWriter::CheckpointWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckpointWriter::~CheckpointWriter() = default;

Result<std::unique_ptr<CheckpointWriter>> CheckpointWriter::create(const CheckpointWriterOptions& options) {
  if (options.keep < 1) return usage_error("checkpoint.keep is {}, expected at least 1", options.keep);
  INGOT_TRY(ingot::create_directories(options.directory));
  auto state = std::make_unique<State>();
  state->options = options;
  const Claim claim = claim_directory(options.directory, state->claim);
  if (claim == Claim::taken)
    return usage_error("another process is saving checkpoints in {}: stop it, or choose another output_dir",
                       options.directory.string());
  INGOT_TRY(clean_leftovers(options.directory, claim == Claim::held));
  if (options.resumed_step)
    INGOT_TRY(prune_checkpoints(options.directory, options.keep, *options.resumed_step, LaterSteps::go_first));
  return std::unique_ptr<CheckpointWriter>(new CheckpointWriter(std::move(state)));
}

Status CheckpointWriter::reserve(uint64_t bytes) {
  INGOT_TRY(wait());
  return state_->options.background ? state_->staging.reserve(bytes) : Status();
}

Status CheckpointWriter::save(Snapshot snapshot, const ThreadPool* pool) {
  check_snapshot(snapshot);
  (void)wait();  // the outcome of an earlier save was logged and does not bear on this one
  if (!state_->options.background) return state_->write(snapshot);
  INGOT_TRY(stage(snapshot.pieces, state_->staging, pool));
  state_->busy = true;
  try {
    state_->thread = std::thread([state = state_.get(), snapshot = std::move(snapshot)] {
      (void)state->write(snapshot);  // kept for wait()
      state->busy = false;
    });
  } catch (const std::system_error& problem) {
    state_->busy = false;
    return failed_error("cannot start the thread that writes checkpoints: {}", problem.what());
  }
  return {};
}

Status CheckpointWriter::wait() {
  if (state_->thread.joinable()) state_->thread.join();
  return last_result();
}

Status CheckpointWriter::last_result() const {
  std::lock_guard lock(state_->mutex);
  return state_->result;
}

bool CheckpointWriter::busy() const {
  return state_->busy;
}
uint64_t CheckpointWriter::staging_bytes() const {
  return state_->staging.size();
}

SavedPiece whole_piece(std::string tensor, std::string kind, const ConstTensorView& data) {
  return {std::move(tensor), std::move(kind), data.shape, Box::whole(data.shape), data};
}

uint64_t checkpoint_bytes(const Snapshot& snapshot) {
  constexpr uint64_t kBlock = 4096, kEntry = 512;  // a piece's entries in the manifest and in its file's header
  const auto blocks = [](uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; };
  uint64_t total = blocks(snapshot.state.size()) + blocks(snapshot.layout.size()) + 16 * kBlock;
  for (const SavedFile& file : snapshot.files) total += blocks(file.content.size());
  for (const SavedPiece& piece : snapshot.pieces) total += piece.data.bytes() + 3 * piece.tensor.size() + kEntry;
  return blocks(total);
}

Status check_disk_space(const fs::path& directory, uint64_t one_checkpoint, int keep) {
  INGOT_ASSIGN(uint64_t room, free_disk_bytes(directory));
  INGOT_ASSIGN(const auto entries, list_checkpoints(directory));
  for (const CheckpointEntry& entry : entries) {
    std::error_code error;
    for (fs::directory_iterator file(entry.path, error), end; !error && file != end; file.increment(error)) {
      std::error_code gone;  // another process may be pruning
      const uint64_t bytes = file->file_size(gone);
      if (!gone) room += bytes;
    }
  }
  const uint64_t needed = required_disk_bytes(one_checkpoint, keep);
  if (needed <= room) return {};
  const uint64_t fit = one_checkpoint == 0 ? 0 : room / one_checkpoint;
  return usage_error(
      "{} checkpoints of {:.1f} MB and the one being written need {:.1f} MB of disk, {} has {:.1f} MB: {}", keep,
      static_cast<double>(one_checkpoint) * 1e-6, static_cast<double>(needed) * 1e-6, directory.string(),
      static_cast<double>(room) * 1e-6,
      fit >= 2 ? fmt::format("set checkpoint.keep to {} or less, or free space", fit - 1)
               : "free space, or choose another output_dir");
}

}  // namespace ingot
