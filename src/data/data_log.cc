#include "data/data_log.h"

#include "base/check.h"
#include "base/parallel.h"
#include "base/system.h"

namespace ingot {

std::string_view name_of(DataStage stage) {
  switch (stage) {
    case DataStage::reading:
      return "reading";
    case DataStage::tokenizing:
      return "tokenizing";
    case DataStage::packing:
      return "packing";
  }
  INGOT_CHECK(false, "stage {}", static_cast<int>(stage));
}

void DataLog::add(const DataSpan& span) {
  const size_t at = count_.load(std::memory_order_relaxed);
  // The last quarter is for whole steps: their figures say what limits the data.
  const size_t room = span.stage == DataStage::packing ? spans_.size() : spans_.size() - spans_.size() / 4;
  if (at >= room) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  spans_[at] = span;
  count_.store(at + 1, std::memory_order_release);
}

DataScope::DataScope(DataLog* log, DataStage stage) : log_(log != nullptr && log->listens() ? log : nullptr) {
  if (log_ == nullptr) return;
  span_.stage = stage;
  if (stage == DataStage::packing) {
    span_.queued = -thread_queued_ns();  // the longer way, so the outermost
    span_.cpu = -thread_cpu_ns();
  }
  span_.begin = steady_ns();
}

DataScope::~DataScope() {
  if (log_ == nullptr) return;
  span_.end = steady_ns();
  if (span_.stage == DataStage::packing) {
    span_.cpu += thread_cpu_ns();
    span_.queued += thread_queued_ns();
  }
  log_->add(span_);
}

}  // namespace ingot
