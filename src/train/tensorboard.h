// TensorBoard event files, as tensorflow's event_file_writer makes them: TFRecord frames (length, masked CRC-32C of the
// length, data, masked CRC-32C of the data) around protocol buffers `Event` (tensorflow/core/util/event.proto), encoded
// by hand: six fields of them are all that scalars need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/metrics.h"

namespace ingot {

struct Scalar {
  std::string tag;
  double value = 0;  // stored as a 32-bit float, which is what the format has
};

std::vector<Scalar> scalars_of(const StepMetrics& metrics);        // train/loss, train/learning_rate, …
std::vector<Scalar> scalars_of(const EvaluationMetrics& metrics);  // eval/loss, …

double seconds_since_epoch();

// One event file. Events go to the system at once; what cannot be written is kept and tried again (AppendFile). Not
// thread-safe.
class EventWriter {
 public:
  // Makes output_dir/tensorboard/events.out.tfevents.TIME.HOST.PID.N, always a new file. With resumed_step > 0 it
  // begins with a session start at resumed_step + 1, upon which TensorBoard forgets what earlier files say from that
  // step on. Errors: failed.
  static Result<EventWriter> create(const std::filesystem::path& output_dir, int64_t resumed_step,
                                    std::function<double()> clock = seconds_since_epoch);

  void write(int64_t step, std::span<const Scalar> scalars);
  void sync() { file_.sync(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  EventWriter(std::filesystem::path path, AppendFile file, std::function<double()> clock)
      : path_(std::move(path)), file_(std::move(file)), clock_(std::move(clock)) {}

  std::filesystem::path path_;
  AppendFile file_;
  std::function<double()> clock_;
};

}  // namespace ingot
