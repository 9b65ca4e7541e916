#include "export/gguf_file.h"

#include <array>
#include <bit>
#include <cstring>

namespace ingot {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kVersion = 3;

// The format's numbers for the types of metadata.
enum class ValueType : uint32_t { uint32 = 4, int32 = 5, float32 = 6, boolean = 7, string = 8, array = 9 };

uint64_t aligned(uint64_t offset) {
  return (offset + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
}

class Bytes {
 public:
  template <class T>
  void number(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  void type(ValueType type) { number(static_cast<uint32_t>(type)); }
  void raw(std::string_view text) { bytes_.append(text); }
  void string(std::string_view text) {
    number<uint64_t>(text.size());
    raw(text);
  }
  void pad() { bytes_.resize(aligned(bytes_.size())); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct WriteValue {
  Bytes& out;

  void operator()(uint32_t value) const {
    out.type(ValueType::uint32);
    out.number(value);
  }
  void operator()(float value) const {
    out.type(ValueType::float32);
    out.number(value);
  }
  void operator()(bool value) const {
    out.type(ValueType::boolean);
    out.number<uint8_t>(value ? 1 : 0);
  }
  void operator()(const std::string& value) const {
    out.type(ValueType::string);
    out.string(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    array(ValueType::string, values.size());
    for (const std::string& value : values) out.string(value);
  }
  void operator()(const std::vector<float>& values) const {
    array(ValueType::float32, values.size());
    for (const float value : values) out.number(value);
  }
  void operator()(const std::vector<int32_t>& values) const {
    array(ValueType::int32, values.size());
    for (const int32_t value : values) out.number(value);
  }
  void array(ValueType of, size_t count) const {
    out.type(ValueType::array);
    out.type(of);
    out.number<uint64_t>(count);
  }
};

std::string make_header(const GgufMetadata& metadata, const std::vector<GgufTensor>& tensors) {
  Bytes out;
  out.raw(kMagic);
  out.number(kVersion);
  out.number<uint64_t>(tensors.size());
  out.number<uint64_t>(metadata.size());
  for (const auto& [key, value] : metadata) {
    out.string(key);
    std::visit(WriteValue{out}, value);
  }
  uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    out.string(tensor.name);
    out.number(static_cast<uint32_t>(tensor.shape.rank()));
    for (int axis = tensor.shape.rank(); axis-- > 0;) out.number(static_cast<uint64_t>(tensor.shape[axis]));
    out.number(static_cast<uint32_t>(tensor.type));
    out.number(offset);
    offset = aligned(offset + tensor.bytes());
  }
  out.pad();
  return out.bytes();
}

}  // namespace

std::string_view name_of(GgufType type) {
  switch (type) {
    case GgufType::f32:
      return "f32";
    case GgufType::f16:
      return "f16";
    case GgufType::bf16:
      return "bf16";
    case GgufType::q8_0:
      return "q8_0";
  }
  return "";
}

uint64_t stored_bytes(GgufType type, int64_t elements) {
  const auto count = static_cast<uint64_t>(elements);
  switch (type) {
    case GgufType::f32:
      return count * 4;
    case GgufType::f16:
    case GgufType::bf16:
      return count * 2;
    case GgufType::q8_0:
      INGOT_CHECK(elements % kQ8Block == 0, "{} elements in blocks of {}", elements, kQ8Block);
      return count / kQ8Block * (2 + kQ8Block);
  }
  return 0;
}

Result<GgufWriter> GgufWriter::create(const fs::path& path, const GgufMetadata& metadata,
                                      std::vector<GgufTensor> tensors) {
  const std::string header = make_header(metadata, tensors);
  INGOT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  INGOT_TRY(file.write(header));
  return GgufWriter(std::move(file), std::move(tensors));
}

Status GgufWriter::write(std::span<const std::byte> bytes) {
  INGOT_CHECK(next_ < tensors_.size(), "{} bytes written to a file that is complete", bytes.size());
  const GgufTensor& tensor = tensors_[next_];
  INGOT_CHECK(bytes.size() <= tensor.bytes() - written_, "{} bytes written to {}, which lacks {}", bytes.size(),
              tensor.name, tensor.bytes() - written_);
  INGOT_TRY(file_.write(bytes));
  written_ += bytes.size();
  if (written_ < tensor.bytes()) return {};
  ++next_;
  written_ = 0;
  return pad();
}

Status GgufWriter::pad() {
  static constexpr std::array<std::byte, kGgufAlignment> kZeros{};
  return file_.write(std::span(kZeros).first(aligned(file_.size()) - file_.size()));
}

Status GgufWriter::finish() {
  INGOT_CHECK(next_ == tensors_.size(), "a file finished before its tensor {} was written", tensors_[next_].name);
  return file_.publish();
}

}  // namespace ingot
