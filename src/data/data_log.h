// DataLog: when the data worker read, tokenized and packed, for a profile. Its buffer is made once; noting allocates
// nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ingot {

// packing: a whole step's batches, with the reading and tokenizing in it.
enum class DataStage : uint8_t { reading, tokenizing, packing };
std::string_view name_of(DataStage stage);

// Times in ns, begin and end in steady_ns().
struct DataSpan {
  DataStage stage = DataStage::packing;
  int64_t begin = 0, end = 0;
  // Of packing alone: the worker's time on a core, and waiting for one. What is left it waited for something else: the
  // disk.
  int64_t cpu = 0, queued = 0;
};

// One thread at a time notes; any thread may listen.
class DataLog {
 public:
  explicit DataLog(size_t spans) : spans_(spans) {}
  DataLog(const DataLog&) = delete;
  DataLog& operator=(const DataLog&) = delete;

  void listen(bool on) { listening_.store(on, std::memory_order_relaxed); }
  bool listens() const { return listening_.load(std::memory_order_relaxed); }
  void add(const DataSpan& span);

  // Those noted so far, in the order of their ends. They stay as they are while more are noted.
  std::span<const DataSpan> spans() const { return {spans_.data(), count_.load(std::memory_order_acquire)}; }
  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }  // did not fit
  static size_t bytes_a_span() { return sizeof(DataSpan); }

 private:
  std::vector<DataSpan> spans_;
  std::atomic<size_t> count_ = 0;
  std::atomic<int64_t> dropped_ = 0;
  std::atomic<bool> listening_ = false;
};

// Notes the time from its making to its end; nothing where there is no log or it does not listen. What a data source of
// one's own does in fill() is noted by `DataScope scope(row.log, DataStage::tokenizing);`.
class DataScope {
 public:
  DataScope(DataLog* log, DataStage stage);
  ~DataScope();
  DataScope(const DataScope&) = delete;
  DataScope& operator=(const DataScope&) = delete;

 private:
  DataLog* log_;
  DataSpan span_;
};

}  // namespace ingot
