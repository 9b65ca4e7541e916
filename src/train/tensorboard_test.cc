#include "train/tensorboard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <optional>

#include "base/files.h"

namespace ingot {
namespace {

fs::path fresh_directory(const std::string& name) {
  const fs::path path = fs::path(::testing::TempDir()) / ("ingot_tensorboard_" + name);
  fs::remove_all(path);
  return path;
}

double fixed_clock() {
  return 1234567890.5;
}

// A reader of its own, bit by bit and field by field, that shares nothing with the writer.
uint32_t crc_by_bits(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

template <class T>
T take_fixed(std::string_view& bytes) {
  T value{};
  EXPECT_GE(bytes.size(), sizeof(T));
  if (bytes.size() < sizeof(T)) return value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[0]);
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

struct ParsedField {
  uint64_t number = 0, integer = 0;
  std::string_view bytes;
};

std::optional<ParsedField> take_field(std::string_view& message) {
  if (message.empty()) return std::nullopt;
  const uint64_t key = take_varint(message);
  ParsedField field{key >> 3, 0, {}};
  if ((key & 7) == 0) field.integer = take_varint(message);
  if ((key & 7) == 1) field.integer = take_fixed<uint64_t>(message);
  if ((key & 7) == 5) field.integer = take_fixed<uint32_t>(message);
  if ((key & 7) != 2) return field;
  const uint64_t length = take_varint(message);
  field.bytes = message.substr(0, length);
  message.remove_prefix(field.bytes.size());
  return field;
}

struct ParsedEvent {
  double wall_time = 0;
  uint64_t step = 0;
  std::string file_version;
  uint64_t session_status = 0;
  std::vector<std::pair<std::string, float>> values;
};

std::pair<std::string, float> parse_value(std::string_view message) {
  std::pair<std::string, float> value;
  while (const auto field = take_field(message)) {
    if (field->number == 1) value.first = field->bytes;
    if (field->number == 2) value.second = std::bit_cast<float>(static_cast<uint32_t>(field->integer));
  }
  return value;
}

ParsedEvent parse_event(std::string_view message) {
  ParsedEvent event;
  while (const auto field = take_field(message)) {
    if (field->number == 1) event.wall_time = std::bit_cast<double>(field->integer);
    if (field->number == 2) event.step = field->integer;
    if (field->number == 3) event.file_version = field->bytes;
    std::string_view inner = field->bytes;
    if (field->number == 7) event.session_status = take_field(inner).value_or(ParsedField{}).integer;
    if (field->number != 5) continue;
    while (const auto value = take_field(inner)) event.values.push_back(parse_value(value->bytes));
  }
  return event;
}

std::vector<ParsedEvent> parse_file(const fs::path& path) {
  const std::string content = read_file(path).value();
  std::string_view rest = content;
  std::vector<ParsedEvent> events;
  const auto unmask = [](uint32_t masked) {
    const uint32_t rotated = masked - 0xa282ead8u;
    return (rotated >> 17) | (rotated << 15);
  };
  while (!rest.empty()) {
    const std::string_view head = rest.substr(0, 8);
    const auto length = take_fixed<uint64_t>(rest);
    EXPECT_EQ(unmask(take_fixed<uint32_t>(rest)), crc_by_bits(head));
    const std::string_view data = rest.substr(0, length);
    EXPECT_EQ(data.size(), length);
    rest.remove_prefix(data.size());
    EXPECT_EQ(unmask(take_fixed<uint32_t>(rest)), crc_by_bits(data));
    events.push_back(parse_event(data));
  }
  return events;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

// The bytes were put together outside this project, from the two specifications.
TEST(TensorBoard, WritesTheBytesOfTheFormat) {
  auto writer = EventWriter::create(fresh_directory("golden"), 300, fixed_clock).value();
  writer.write(300, std::vector<Scalar>{{"train/loss", 2.5}, {"a", -1}});
  EXPECT_EQ(hex(read_file(writer.path()).value()),
            "1800000000000000a37f4b22090000a0b48065d2411a0d627261696e2e4576656e743a32f5e8f0161000000000000000"
            "95fbfe18090000a0b48065d24110ad023a0208012c095ea92b00000000000000861bc34b090000a0b48065d24110ac02"
            "2a1d0a110a0a747261696e2f6c6f737315000020400a080a016115000080bfd69f112c");
}

TEST(TensorBoard, EventsReadBack) {
  auto writer = EventWriter::create(fresh_directory("read"), 0, fixed_clock).value();
  const std::vector<Scalar> first = scalars_of(StepMetrics{.step = 1, .loss = 10.75, .learning_rate = 3e-4});
  writer.write(1, first);
  writer.write(int64_t{1} << 40, scalars_of(EvaluationMetrics{1, 2.0, 7.5, 1.25}));
  const std::vector<ParsedEvent> events = parse_file(writer.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1234567890.5);
  EXPECT_EQ(events[1].step, 1u);
  ASSERT_EQ(events[1].values.size(), first.size());
  EXPECT_EQ(events[1].values[0], (std::pair<std::string, float>("train/loss", 10.75f)));
  EXPECT_EQ(events[1].values[1], (std::pair<std::string, float>("train/learning_rate", 3e-4f)));
  EXPECT_EQ(events[2].step, uint64_t{1} << 40);
  EXPECT_EQ(events[2].values[2], (std::pair<std::string, float>("eval/bits_per_byte", 1.25f)));
}

TEST(TensorBoard, AResumedRunStartsANewFileThatReplacesLaterSteps) {
  const fs::path directory = fresh_directory("resume");
  const fs::path first = EventWriter::create(directory, 0, fixed_clock).value().path();
  const auto second = EventWriter::create(directory, 20, fixed_clock).value();
  EXPECT_NE(second.path(), first);
  EXPECT_EQ(first.parent_path(), directory / "tensorboard");
  EXPECT_EQ(first.filename().string().substr(0, 31), "events.out.tfevents.1234567890.");
  EXPECT_EQ(parse_file(first).size(), 1u);
  const std::vector<ParsedEvent> events = parse_file(second.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[1].session_status, 1u);
  EXPECT_EQ(events[1].step, 21u);
}

TEST(TensorBoard, AnUnwritableDirectoryIsAnError) {
  const auto writer = EventWriter::create("/proc/ingot", 0);
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().kind, ErrorKind::failed);
}

}  // namespace
}  // namespace ingot
