#include "checkpoint/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/hash.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/strict_json.h"

namespace ingot {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "ingot-checkpoint";
constexpr int kVersion = 1;
constexpr std::string_view kChecksumBegin = "\n\"checksum\":\"";
constexpr std::string_view kChecksumEnd = "\"}\n";
constexpr size_t kMaxPiecesOfTensor = 4096;

auto order_of(const ManifestPiece& piece) {
  return std::make_tuple(std::string_view(piece.kind), std::string_view(piece.tensor),
                         std::vector<int64_t>(piece.box.start.begin(), piece.box.start.end()));
}

bool is_kind(const std::string& kind) {
  return !kind.empty() && std::all_of(kind.begin(), kind.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::optional<uint64_t> parse_hash(const std::string& text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != text.npos) return std::nullopt;
  return std::stoull(text, nullptr, 16);
}

// Reads members of one JSON object and remembers the first that is not as it should be.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {
    if (!object.is_object()) problem_ = "an entry is not an object";
  }
  const std::string& problem() const { return problem_; }

  std::string text(const char* key) {
    const json* value = get(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return wrong(key, "is not a string"), std::string();
    return value->get<std::string>();
  }
  uint64_t number(const char* key) {
    const json* value = get(key);
    if (value == nullptr) return 0;
    if (!value->is_number_unsigned() || value->get<uint64_t>() > INT64_MAX)
      return wrong(key, "is not an integer from 0 to 2^63-1"), 0;
    return value->get<uint64_t>();
  }
  Shape shape(const char* key) {
    const json* value = get(key);
    if (value == nullptr) return {};
    if (!value->is_array() || value->size() > Shape::kMaxRank)
      return wrong(key, "is not a list of dimensions"), Shape();
    std::vector<int64_t> dims;
    for (const json& dim : *value) {
      if (!dim.is_number_unsigned() || dim.get<uint64_t>() > INT64_MAX)
        return wrong(key, "has a bad dimension"), Shape();
      dims.push_back(dim.get<int64_t>());
    }
    return Shape(std::span<const int64_t>(dims));
  }
  void require(bool holds, const std::string& otherwise) {
    if (problem_.empty() && !holds) problem_ = otherwise;
  }

 private:
  const json* get(const char* key) {
    if (!problem_.empty()) return nullptr;
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    wrong(key, "is missing");
    return nullptr;
  }
  void wrong(const char* key, const char* what) { problem_ = fmt::format("\"{}\" {}", key, what); }

  const json& object_;
  std::string problem_;
};

ManifestFile read_file_entry(Fields& fields) {
  ManifestFile file;
  file.name = fields.text("name");
  file.bytes = fields.number("bytes");
  const auto hash = parse_hash(fields.text("xxh3"));
  fields.require(hash.has_value(), "\"xxh3\" is not 16 hexadecimal digits");
  fields.require(is_plain_file_name(file.name) && file.name != kManifestName, "\"name\" is not the name of a file");
  if (hash) file.hash = *hash;
  return file;
}

bool box_is_within(const Box& box, const Shape& shape) {
  if (box.start.rank() != shape.rank() || box.stop.rank() != shape.rank()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (box.start[axis] > box.stop[axis] || box.stop[axis] > shape[axis]) return false;
  return true;
}

// Elements of a shape, none where they cannot be counted in 60 bits (bytes must fit 63).
std::optional<int64_t> count_elements(const Shape& shape) {
  int64_t count = 1;
  for (int64_t dim : shape.dims())
    if (__builtin_mul_overflow(count, dim, &count) || count > (int64_t{1} << 60)) return std::nullopt;
  return count;
}

ManifestPiece read_piece_entry(Fields& fields) {
  ManifestPiece piece;
  piece.tensor = fields.text("tensor");
  piece.kind = fields.text("kind");
  const auto dtype = dtype_from_name(fields.text("dtype"));
  piece.shape = fields.shape("shape");
  piece.box.start = fields.shape("start");
  piece.box.stop = fields.shape("stop");
  piece.file = fields.text("file");
  piece.key = fields.text("key");
  fields.require(is_kind(piece.kind), "\"kind\" is not a word");
  fields.require(dtype.has_value(), "\"dtype\" is unknown");
  fields.require(count_elements(piece.shape).has_value(), "\"shape\" has more elements than can be addressed");
  fields.require(box_is_within(piece.box, piece.shape), "its box is not within its shape");
  if (dtype) piece.dtype = *dtype;
  return piece;
}

// Pieces [first, last) are those of one tensor and kind.
Status check_coverage(std::span<const ManifestPiece> pieces, const std::string& where) {
  const ManifestPiece& head = pieces.front();
  const auto wrong = [&](const std::string& problem) {
    return input_error("{}: {} of tensor \"{}\": {}", where, head.kind, head.tensor, problem);
  };
  if (pieces.size() > kMaxPiecesOfTensor) return wrong(fmt::format("{} pieces are too many", pieces.size()));
  int64_t covered = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const ManifestPiece& piece = pieces[i];
    if (piece.shape != head.shape || piece.dtype != head.dtype) return wrong("its pieces disagree on shape or dtype");
    for (size_t j = 0; j < i; ++j)
      if (intersect(piece.box, pieces[j].box))
        return wrong(fmt::format("the pieces {} and {} overlap", pieces[j].box.to_string(), piece.box.to_string()));
    covered += piece.box.shape().elements();
  }
  if (covered != head.shape.elements())
    return wrong(fmt::format("its pieces hold {} elements of the {} of shape {}", covered, head.shape.elements(),
                             head.shape.to_string()));
  return {};
}

Status check_consistency(const Manifest& manifest, const std::string& where) {
  std::set<std::string_view> names;
  for (const ManifestFile& file : manifest.files)
    if (!names.insert(file.name).second) return input_error("{}: the file {} is listed twice", where, file.name);
  std::set<std::pair<std::string_view, std::string_view>> keys;
  for (const ManifestPiece& piece : manifest.pieces) {
    if (!names.contains(piece.file))
      return input_error("{}: tensor \"{}\" is said to be in {}, which is not listed", where, piece.tensor, piece.file);
    if (!keys.insert({piece.file, piece.key}).second)
      return input_error("{}: two pieces are said to be \"{}\" in {}", where, piece.key, piece.file);
  }
  for (size_t begin = 0; begin < manifest.pieces.size();) {
    size_t end = begin;
    while (end < manifest.pieces.size() && manifest.pieces[end].kind == manifest.pieces[begin].kind &&
           manifest.pieces[end].tensor == manifest.pieces[begin].tensor)
      ++end;
    INGOT_TRY(check_coverage(std::span(manifest.pieces).subspan(begin, end - begin), where));
    begin = end;
  }
  return {};
}

// The text before the checksum, once that agrees with it.
Result<std::string_view> check_checksum(std::string_view text, const std::string& where) {
  const size_t tail = kChecksumBegin.size() + 16 + kChecksumEnd.size();
  if (text.size() < tail || text.substr(text.size() - tail, kChecksumBegin.size()) != kChecksumBegin ||
      !text.ends_with(kChecksumEnd))
    return input_error("{}: it does not end in its checksum: it is cut off, damaged, or no checkpoint's manifest",
                       where);
  const std::string_view body = text.substr(0, text.size() - tail);
  const std::string_view stored = text.substr(body.size() + kChecksumBegin.size(), 16);
  const std::string found = hash_text(hash_bytes(body));
  if (stored != found)
    return input_error("{}: its checksum is {}, its content has {}: it is damaged", where, stored, found);
  return body;
}

template <class T>
Status read_list(const json& document, const char* key, const std::string& where, T (*read)(Fields&),
                 std::vector<T>& list) {
  const auto found = document.find(key);
  if (found == document.end() || !found->is_array()) return input_error("{}: \"{}\" is not a list", where, key);
  for (size_t i = 0; i < found->size(); ++i) {
    Fields fields((*found)[i]);
    list.push_back(read(fields));
    if (!fields.problem().empty()) return input_error("{}: {}[{}]: {}", where, key, i, fields.problem());
  }
  return {};
}

template <class T, class F>
void append_list(std::string& text, const char* key, const std::vector<T>& list, F entry) {
  text += fmt::format("\"{}\":[", key);
  for (size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "\n" : ",\n") + entry(list[i]).dump();
  text += "],\n";
}

}  // namespace

Result<std::string> render_manifest(Manifest manifest) {
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const ManifestFile& a, const ManifestFile& b) { return a.name < b.name; });
  std::sort(manifest.pieces.begin(), manifest.pieces.end(),
            [](const ManifestPiece& a, const ManifestPiece& b) { return order_of(a) < order_of(b); });
  try {
    ordered_json head{{"format", kFormat},
                      {"format_version", kVersion},
                      {"step", manifest.step},
                      {"layout", ordered_json::parse(manifest.layout)}};
    std::string text = head.dump();
    text.pop_back();
    text += ",\n";
    append_list(text, "files", manifest.files, [](const ManifestFile& file) {
      return ordered_json{{"name", file.name}, {"bytes", file.bytes}, {"xxh3", hash_text(file.hash)}};
    });
    append_list(text, "pieces", manifest.pieces, [](const ManifestPiece& piece) {
      return ordered_json{{"tensor", piece.tensor},
                          {"kind", piece.kind},
                          {"dtype", name_of(piece.dtype)},
                          {"shape", piece.shape.dims()},
                          {"start", piece.box.start.dims()},
                          {"stop", piece.box.stop.dims()},
                          {"file", piece.file},
                          {"key", piece.key}};
    });
    text.pop_back();  // the line's end belongs to the checksum
    return fmt::format("{}{}{}{}", text, kChecksumBegin, hash_text(hash_bytes(text)), kChecksumEnd);
  } catch (const json::exception& problem) {
    return failed_error("cannot write the checkpoint's manifest: {}", problem.what());
  }
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& where) {
  INGOT_TRY(check_checksum(text, where));
  INGOT_ASSIGN(const json document, parse_strict_json(text, where));
  Fields head(document);
  const std::string format = head.text("format");
  const uint64_t version = head.number("format_version");
  Manifest manifest;
  manifest.step = static_cast<int64_t>(head.number("step"));
  if (!head.problem().empty()) return input_error("{}: {}", where, head.problem());
  if (format != kFormat) return input_error("{}: its format is \"{}\", expected \"{}\"", where, format, kFormat);
  if (version != kVersion)
    return input_error("{}: format version {}, this program reads version {}", where, version, kVersion);
  const auto layout = document.find("layout");
  if (layout == document.end() || !layout->is_object()) return input_error("{}: \"layout\" is not an object", where);
  manifest.layout = layout->dump();
  INGOT_TRY(read_list(document, "files", where, &read_file_entry, manifest.files));
  INGOT_TRY(read_list(document, "pieces", where, &read_piece_entry, manifest.pieces));
  std::stable_sort(manifest.pieces.begin(), manifest.pieces.end(),
                   [](const ManifestPiece& a, const ManifestPiece& b) { return order_of(a) < order_of(b); });
  INGOT_TRY(check_consistency(manifest, where));
  return manifest;
}

}  // namespace ingot
