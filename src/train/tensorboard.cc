#include "train/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>

#include "base/files.h"
#include "base/hash.h"

namespace ingot {
namespace {

template <class T>
void put_fixed(std::string& out, T value) {  // little-endian
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(static_cast<uint8_t>(value >> (8 * i)));
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(static_cast<uint8_t>(value | 0x80));
  out += static_cast<char>(value);
}

// Field numbers with their wire types: 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
void put_key(std::string& out, unsigned field, unsigned wire_type) {
  put_varint(out, field << 3 | wire_type);
}

void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_key(out, field, 2);
  put_varint(out, bytes.size());
  out += bytes;
}

// Event: 1 wall_time (double), 2 step (int64), and one of 3 file_version, 5 summary, 7 session_log.
std::string event(double wall_time, int64_t step, unsigned field, std::string_view content) {
  std::string out;
  put_key(out, 1, 1);
  put_fixed(out, std::bit_cast<uint64_t>(wall_time));
  if (step != 0) {
    put_key(out, 2, 0);
    put_varint(out, static_cast<uint64_t>(step));
  }
  put_bytes(out, field, content);
  return out;
}

// Summary: repeated 1 value { 1 tag (string), 2 simple_value (float) }.
std::string summary(std::span<const Scalar> scalars) {
  std::string out;
  for (const Scalar& scalar : scalars) {
    std::string value;
    put_bytes(value, 1, scalar.tag);
    put_key(value, 2, 5);
    put_fixed(value, std::bit_cast<uint32_t>(static_cast<float>(scalar.value)));
    put_bytes(out, 1, value);
  }
  return out;
}

// SessionLog: 1 status (enum; START is 1).
std::string session_start() {
  std::string out;
  put_key(out, 1, 0);
  put_varint(out, 1);
  return out;
}

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::string record(std::string_view data) {
  std::string out;
  put_fixed(out, static_cast<uint64_t>(data.size()));
  put_fixed(out, masked_crc(out));
  out += data;
  put_fixed(out, masked_crc(data));
  return out;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<Scalar> scalars_of(const StepMetrics& metrics) {
  return {{"train/loss", metrics.loss},
          {"train/learning_rate", metrics.learning_rate},
          {"train/grad_norm", metrics.grad_norm},
          {"train/tokens_per_second", metrics.tokens_per_second},
          {"train/step_ms", metrics.step_ms},
          {"train/data_wait_ms", metrics.data_wait_ms},
          {"train/mfu", metrics.mfu},
          {"train/peak_memory_mb", metrics.peak_memory_mb},
          {"train/skipped", static_cast<double>(metrics.skipped)}};
}

std::vector<Scalar> scalars_of(const EvaluationMetrics& metrics) {
  return {{"eval/loss", metrics.loss},
          {"eval/perplexity", metrics.perplexity},
          {"eval/bits_per_byte", metrics.bits_per_byte}};
}

Result<EventWriter> EventWriter::create(const fs::path& output_dir, int64_t resumed_step,
                                        std::function<double()> clock) {
  const fs::path directory = output_dir / "tensorboard";
  INGOT_TRY(ingot::create_directories(directory));
  const std::string stem =
      fmt::format("events.out.tfevents.{:010}.{}.{}", static_cast<int64_t>(clock()), host_name(), ::getpid());
  fs::path path;
  std::error_code problem;
  for (int n = 0; path.empty() || fs::exists(path, problem); ++n) path = directory / fmt::format("{}.{}", stem, n);
  INGOT_ASSIGN(AppendFile file, AppendFile::open(path));
  EventWriter writer(std::move(path), std::move(file), std::move(clock));
  writer.file_.append(record(event(writer.clock_(), 0, 3, "brain.Event:2")));
  if (resumed_step > 0) writer.file_.append(record(event(writer.clock_(), resumed_step + 1, 7, session_start())));
  return writer;
}

void EventWriter::write(int64_t step, std::span<const Scalar> scalars) {
  file_.append(record(event(clock_(), step, 5, summary(scalars))));
}

}  // namespace ingot
