// Reading a .model: the wire format of protocol buffers, of which the file needs four kinds of fields.
#include "text/sentencepiece_file.h"

#include <bit>
#include <cmath>
#include <functional>

#include "text/utf8.h"

namespace ingot {
namespace {

struct Field {
  uint64_t number = 0;
  enum class Wire { varint, fixed64, bytes, fixed32 } wire = Wire::varint;
  uint64_t value = 0;      // varint, fixed32, fixed64
  std::string_view bytes;  // bytes
};

// The fields of one message, in order.
class Message {
 public:
  Message(std::string_view all, std::string_view part, std::string_view source)
      : all_(all), rest_(part), source_(source) {}

  bool done() const { return rest_.empty(); }
  Result<Field> next() {
    INGOT_ASSIGN(const uint64_t key, varint());
    Field field;
    field.number = key >> 3;
    switch (key & 7) {
      case 0: {
        INGOT_ASSIGN(field.value, varint());
        return field;
      }
      case 1:
        field.wire = Field::Wire::fixed64;
        return fixed(8, field);
      case 2: {
        field.wire = Field::Wire::bytes;
        INGOT_ASSIGN(const uint64_t size, varint());
        if (size > rest_.size())
          return wrong(fmt::format("a field of {} bytes, of which {} are there", size, rest_.size()));
        field.bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return field;
      }
      case 5:
        field.wire = Field::Wire::fixed32;
        return fixed(4, field);
      default:
        return wrong(fmt::format("a field of wire type {}", key & 7));
    }
  }
  Error wrong(std::string_view what) const {
    return input_error("{}: no SentencePiece model: at byte {}: {}", source_, rest_.data() - all_.data(), what);
  }

 private:
  Result<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return wrong("the file ends inside a number");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    return wrong("a number of more than 10 bytes");
  }
  Result<Field> fixed(size_t size, Field& field) {
    if (rest_.size() < size) return wrong("the file ends inside a number");
    for (size_t i = 0; i < size; ++i) field.value |= uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    rest_.remove_prefix(size);
    return field;
  }

  std::string_view all_, rest_, source_;
};

class FileReader {
 public:
  FileReader(std::string_view bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  Result<SentencePieceFile> read() {
    INGOT_TRY(each(bytes_, [&](const Field& field) { return read_field(field); }));
    if (file_.pieces.empty()) return input_error("{}: no SentencePiece model: it holds no pieces", source_);
    return std::move(file_);
  }

 private:
  using Wire = Field::Wire;

  Status read_field(const Field& field) {
    if (field.number == 1) return read_piece(field);
    if (field.number == 2) return read_trainer(field);
    if (field.number == 3) return read_normalizer(field);
    if (field.number == 5) return read_denormalizer(field);
    return {};  // 4: test data
  }

  Status each(std::string_view part, const std::function<Status(const Field&)>& take) {
    for (Message message(bytes_, part, source_); !message.done();) {
      INGOT_ASSIGN(const Field field, message.next());
      INGOT_TRY(take(field));
    }
    return {};
  }
  Status is(const Field& field, Wire wire, std::string_view name) const {
    if (field.wire == wire) return {};
    return input_error("{}: no SentencePiece model: {} has another type than in its definition", source_, name);
  }
  Error unsupported(std::string_view what) const { return input_error("{}: {} is not supported", source_, what); }

  Status read_piece(const Field& message) {
    INGOT_TRY(is(message, Wire::bytes, "pieces"));
    SentencePieceFile::Piece piece;
    INGOT_TRY(each(message.bytes, [&](const Field& field) { return read_piece_field(field, piece); }));
    const size_t id = file_.pieces.size();
    if (id == static_cast<size_t>(kMostTokens)) return unsupported(fmt::format("more than {} pieces", kMostTokens));
    if (piece.text.empty() || valid_utf8_end(piece.text, 0) != piece.text.size())
      return input_error("{}: pieces[{}].piece: expected UTF-8 text that is not empty", source_, id);
    if (!std::isfinite(piece.score)) return input_error("{}: pieces[{}].score: expected a finite number", source_, id);
    file_.pieces.push_back(std::move(piece));
    return {};
  }

  Status read_piece_field(const Field& field, SentencePieceFile::Piece& piece) const {
    if (field.number == 1) {
      INGOT_TRY(is(field, Wire::bytes, "pieces.piece"));
      piece.text = field.bytes;
    } else if (field.number == 2) {
      INGOT_TRY(is(field, Wire::fixed32, "pieces.score"));
      piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    } else if (field.number == 3) {
      INGOT_TRY(is(field, Wire::varint, "pieces.type"));
      if (field.value < 1 || field.value > 6) return unsupported(fmt::format("a piece of type {}", field.value));
      piece.type = static_cast<SentencePieceFile::Type>(field.value);
    }
    return {};
  }

  Status read_trainer(const Field& message) {
    INGOT_TRY(is(message, Wire::bytes, "trainer_spec"));
    return each(message.bytes, [&](const Field& field) -> Status {
      const auto id = static_cast<int64_t>(static_cast<int32_t>(field.value));
      switch (field.number) {
        case 3:
          INGOT_TRY(is(field, Wire::varint, "trainer_spec.model_type"));
          if (field.value != 1 && field.value != 2)
            return unsupported(fmt::format("trainer_spec.model_type {} (known: 1, Unigram; 2, BPE)", field.value));
          file_.model_type = static_cast<SentencePieceFile::ModelType>(field.value);
          return {};
        case 24:
          INGOT_TRY(is(field, Wire::varint, "trainer_spec.treat_whitespace_as_suffix"));
          if (field.value != 0) return unsupported("trainer_spec.treat_whitespace_as_suffix");
          return {};
        case 35:
          INGOT_TRY(is(field, Wire::varint, "trainer_spec.byte_fallback"));
          file_.byte_fallback = field.value != 0;
          return {};
        case 41:
          INGOT_TRY(is(field, Wire::varint, "trainer_spec.bos_id"));
          file_.bos = id;
          return {};
        case 42:
          INGOT_TRY(is(field, Wire::varint, "trainer_spec.eos_id"));
          file_.eos = id;
          return {};
        default:
          return {};  // how it was trained
      }
    });
  }

  Status read_normalizer(const Field& message) {
    INGOT_TRY(is(message, Wire::bytes, "normalizer_spec"));
    return each(message.bytes, [&](const Field& field) -> Status {
      switch (field.number) {
        case 2:
          INGOT_TRY(is(field, Wire::bytes, "normalizer_spec.precompiled_charsmap"));
          file_.rules = field.bytes;
          return {};
        case 3:
          INGOT_TRY(is(field, Wire::varint, "normalizer_spec.add_dummy_prefix"));
          file_.add_dummy_prefix = field.value != 0;
          return {};
        case 4:
          INGOT_TRY(is(field, Wire::varint, "normalizer_spec.remove_extra_whitespaces"));
          file_.remove_extra_whitespaces = field.value != 0;
          return {};
        case 5:
          INGOT_TRY(is(field, Wire::varint, "normalizer_spec.escape_whitespaces"));
          if (field.value == 0) return unsupported("normalizer_spec.escape_whitespaces: false");
          return {};
        default:
          return {};
      }
    });
  }

  Status read_denormalizer(const Field& message) {
    INGOT_TRY(is(message, Wire::bytes, "denormalizer_spec"));
    return each(message.bytes, [&](const Field& field) -> Status {
      if (field.number == 2 && !field.bytes.empty()) return unsupported("denormalizer_spec.precompiled_charsmap");
      return {};
    });
  }

  std::string_view bytes_, source_;
  SentencePieceFile file_;
};

}  // namespace

bool looks_like_sentencepiece(std::string_view bytes) {
  // The key of the first piece is a line end; what follows it is a size and not the start of an object.
  const size_t start = bytes.find_first_not_of(" \t\r\n");
  return !bytes.empty() && bytes[0] == '\n' && start != std::string_view::npos && bytes[start] != '{';
}

Result<SentencePieceFile> read_sentencepiece_file(std::string_view bytes, std::string_view source_name) {
  return FileReader(bytes, source_name).read();
}

}  // namespace ingot
