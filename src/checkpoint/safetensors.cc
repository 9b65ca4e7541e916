#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/log.h"
#include "checkpoint/strict_json.h"

namespace ingot {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are mapped as they are: little-endian");

using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr uint64_t kMaxIndexBytes = 100'000'000;

struct NamedDType {
  std::string_view name;
  DType dtype;
};
constexpr NamedDType kDTypes[] = {{"F32", DType::f32}, {"BF16", DType::bf16}, {"F16", DType::f16},
                                  {"F64", DType::f64}, {"I64", DType::i64},   {"I32", DType::i32},
                                  {"I8", DType::i8},   {"U8", DType::u8},     {"BOOL", DType::u8}};

std::optional<DType> dtype_of(const std::string& name) {
  for (const NamedDType& known : kDTypes)
    if (known.name == name) return known.dtype;
  return std::nullopt;
}

// One tensor's entry in the header, its offset still relative to the data.
class EntryParser {
 public:
  EntryParser(const std::string& where, const std::string& name, uint64_t data_bytes)
      : where_(where), data_bytes_(data_bytes) {
    info_.name = name;
  }

  Result<TensorInfo> parse(const json& entry) {
    if (!entry.is_object()) return wrong("its entry in the header is not an object");
    for (const auto& [key, value] : entry.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets") return wrong("unknown key \"" + key + "\"");
    INGOT_TRY(read_dtype(entry));
    INGOT_TRY(read_shape(entry));
    INGOT_TRY(read_offsets(entry));
    return info_;
  }

 private:
  Error wrong(const std::string& problem) const {
    return input_error("{}: tensor \"{}\": {}", where_, info_.name, problem);
  }

  Status read_dtype(const json& entry) {
    const auto found = entry.find("dtype");
    if (found == entry.end() || !found->is_string()) return wrong("it has no dtype");
    const auto dtype = dtype_of(found->get_ref<const std::string&>());
    if (!dtype)
      return wrong("dtype " + found->get<std::string>() +
                   " is not supported (F64, F32, F16, BF16, I64, I32, U8, BOOL are)");
    info_.dtype = *dtype;
    return {};
  }

  Status read_shape(const json& entry) {
    const auto found = entry.find("shape");
    if (found == entry.end() || !found->is_array()) return wrong("it has no shape");
    if (found->size() > Shape::kMaxRank)
      return wrong(fmt::format("it has {} dimensions, at most {} are supported", found->size(), Shape::kMaxRank));
    std::vector<int64_t> dims;
    uint64_t bytes = size_of(info_.dtype);
    bool overflows = false, empty = false;
    for (const json& dim : *found) {
      if (!dim.is_number_unsigned() || dim.get<uint64_t>() > INT64_MAX)
        return wrong("dimension " + dim.dump() + " is not an integer from 0 to 2^63-1");
      dims.push_back(dim.get<int64_t>());
      empty = empty || dims.back() == 0;
      overflows = overflows || __builtin_mul_overflow(bytes, dim.get<uint64_t>(), &bytes) || bytes > INT64_MAX;
    }
    // The product of the other dimensions must not overflow even where a zero makes the tensor empty: strides are
    // computed.
    if (overflows) return wrong("its shape " + found->dump() + " has more bytes than can be addressed");
    info_.shape = Shape(std::span<const int64_t>(dims));
    info_.bytes = empty ? 0 : bytes;
    return {};
  }

  Status read_offsets(const json& entry) {
    const auto found = entry.find("data_offsets");
    if (found == entry.end() || !found->is_array() || found->size() != 2 || !(*found)[0].is_number_unsigned() ||
        !(*found)[1].is_number_unsigned())
      return wrong("its data_offsets are not two non-negative integers");
    const auto begin = (*found)[0].get<uint64_t>(), end = (*found)[1].get<uint64_t>();
    if (begin > end || end > data_bytes_)
      return wrong(
          fmt::format("its bytes [{}, {}) are outside of the file's {} bytes of data", begin, end, data_bytes_));
    if (end - begin != info_.bytes)
      return wrong(fmt::format("shape {} of {} needs {} bytes, data_offsets give {}", info_.shape.to_string(),
                               name_of(info_.dtype), info_.bytes, end - begin));
    info_.offset = begin;
    return {};
  }

  const std::string& where_;
  uint64_t data_bytes_;
  TensorInfo info_;
};

// The tensors' bytes must be the data, exactly once: no overlap, no hole, nothing after the last.
Status check_extents(const std::vector<TensorInfo>& tensors, uint64_t data_bytes, const std::string& where) {
  std::vector<const TensorInfo*> by_offset;
  for (const TensorInfo& info : tensors) by_offset.push_back(&info);
  std::sort(by_offset.begin(), by_offset.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return std::tie(a->offset, a->bytes, a->name) < std::tie(b->offset, b->bytes, b->name);
  });
  uint64_t at = 0;
  for (const TensorInfo* info : by_offset) {
    if (info->offset != at)
      return input_error("{}: tensor \"{}\" begins at byte {} of the data, but the tensors before it end at {} ({})",
                         where, info->name, info->offset, at, info->offset < at ? "they overlap" : "there is a hole");
    at += info->bytes;
  }
  if (at != data_bytes) return input_error("{}: {} bytes after the last tensor belong to none", where, data_bytes - at);
  return {};
}

Status read_metadata(const json& entry, const std::string& where, SafetensorsMetadata& metadata) {
  if (!entry.is_object()) return input_error("{}: __metadata__ is not an object of strings", where);
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return input_error("{}: __metadata__ \"{}\" is not a string", where, key);
    metadata[key] = value.get<std::string>();
  }
  return {};
}

template <class Range, class Name>
auto find_by_name(const Range& range, std::string_view name, Name name_of_element) -> decltype(range.data()) {
  const auto found = std::lower_bound(range.begin(), range.end(), name, [&](const auto& element, std::string_view n) {
    return name_of_element(element) < n;
  });
  return found != range.end() && name_of_element(*found) == name ? &*found : nullptr;
}

Result<SafetensorsModel> open_single(const fs::path& path) {
  INGOT_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  std::vector<SafetensorsModel::Tensor> tensors;
  for (const TensorInfo& info : file.tensors()) tensors.push_back({info, file.view(info).data, path});
  std::vector<SafetensorsFile> files;
  files.push_back(std::move(file));
  return SafetensorsModel(std::move(tensors), std::move(files), {});
}

Result<SafetensorsModel> open_sharded(const fs::path& index_path) {
  INGOT_ASSIGN(const std::string text, read_file(index_path));
  INGOT_ASSIGN(const auto shards, parse_safetensors_index(text, index_path.string()));
  std::map<std::string, SafetensorsFile> files;
  std::vector<SafetensorsModel::Tensor> tensors;
  for (const auto& [name, shard] : shards) {
    const fs::path path = index_path.parent_path() / shard;
    if (!files.contains(shard)) {
      std::error_code ignored;
      if (!fs::exists(path, ignored))
        return input_error("{}: the shard {} (which holds tensor \"{}\") is missing from {}", index_path.string(),
                           shard, name, index_path.parent_path().string());
      INGOT_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
      files.emplace(shard, std::move(file));
    }
    const SafetensorsFile& file = files.at(shard);
    const TensorInfo* info = file.find(name);
    if (info == nullptr)
      return input_error("{}: tensor \"{}\" is not in the shard {} that the index names for it", index_path.string(),
                         name, shard);
    tensors.push_back({*info, file.view(*info).data, path});
  }
  std::vector<SafetensorsFile> opened;
  for (auto& [shard, file] : files) {
    for (const TensorInfo& info : file.tensors()) {
      const auto listed = shards.find(info.name);
      if (listed != shards.end() && listed->second == shard) continue;
      log_warning("{}: tensor \"{}\" is left out: the index {} does not list it there", file.path().string(), info.name,
                  index_path.filename().string());
    }
    opened.push_back(std::move(file));
  }
  return SafetensorsModel(std::move(tensors), std::move(opened), {});
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const NamedDType& known : kDTypes)
    if (known.dtype == dtype) return known.name;
  return "";
}

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

Result<std::map<std::string, std::string>> parse_safetensors_index(std::string_view text, const std::string& where) {
  if (text.size() > kMaxIndexBytes) return input_error("{}: an index of {} bytes is too large", where, text.size());
  INGOT_ASSIGN(const json index, parse_strict_json(text, where));
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    return input_error("{}: it has no weight_map", where);
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string() || !is_plain_file_name(shard.get_ref<const std::string&>()))
      return input_error("{}: tensor \"{}\": {} is not the name of a file beside the index", where, tensor,
                         shard.dump());
    shards[tensor] = shard.get<std::string>();
  }
  return shards;
}

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file, const std::string& where) {
  if (file.size() < 8)
    return input_error("{}: {} bytes are too few for a safetensors file; it may be cut off", where, file.size());
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), 8);
  if (header_bytes > kMaxHeaderBytes)
    return input_error("{}: a header of {} bytes is beyond the format's limit of {}; is it a safetensors file?", where,
                       header_bytes, kMaxHeaderBytes);
  if (header_bytes > file.size() - 8)
    return input_error("{}: the header has {} bytes, but the file ends after {} of them; it may be cut off", where,
                       header_bytes, file.size() - 8);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, header_bytes);
  if (text.empty() || text.front() != '{') return input_error("{}: the header does not begin with '{{'", where);
  INGOT_ASSIGN(const json document, parse_strict_json(text, where, 4));
  const uint64_t data_bytes = file.size() - 8 - header_bytes;

  SafetensorsHeader header;
  for (const auto& [name, entry] : document.items()) {  // json's objects are ordered by key
    if (name == "__metadata__") {
      INGOT_TRY(read_metadata(entry, where, header.metadata));
      continue;
    }
    INGOT_ASSIGN(TensorInfo info, EntryParser(where, name, data_bytes).parse(entry));
    header.tensors.push_back(std::move(info));
  }
  INGOT_TRY(check_extents(header.tensors, data_bytes, where));
  for (TensorInfo& info : header.tensors) info.offset += 8 + header_bytes;
  return header;
}

Result<SafetensorsFile> SafetensorsFile::open(const fs::path& path) {
  SafetensorsFile result;
  result.path_ = path;
  INGOT_ASSIGN(result.file_, MappedFile::open(path));
  INGOT_ASSIGN(result.header_, parse_safetensors(result.file_.bytes(), path.string()));
  return result;
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  return find_by_name(header_.tensors, name, [](const TensorInfo& info) -> std::string_view { return info.name; });
}

ConstTensorView SafetensorsFile::view(const TensorInfo& info) const {
  return {file_.bytes().data() + info.offset, info.dtype, info.shape};
}

ConstTensorView SafetensorsFile::view(std::string_view name) const {
  const TensorInfo* info = find(name);
  INGOT_CHECK(info != nullptr, "{} has no tensor \"{}\"", path_.string(), name);
  return view(*info);
}

Result<SafetensorsModel> SafetensorsModel::open(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return input_error("{} does not exist", path.string());
  if (!fs::is_directory(path, ignored)) return path.extension() == ".json" ? open_sharded(path) : open_single(path);
  if (fs::exists(path / "model.safetensors", ignored)) return open_single(path / "model.safetensors");
  if (fs::exists(path / "model.safetensors.index.json", ignored))
    return open_sharded(path / "model.safetensors.index.json");
  const bool pickled =
      fs::exists(path / "pytorch_model.bin", ignored) || fs::exists(path / "pytorch_model.bin.index.json", ignored);
  return input_error(
      "{} has neither model.safetensors nor model.safetensors.index.json{}", path.string(),
      pickled ? "; its pytorch_model.bin must be converted: save the model with safe_serialization=True" : "");
}

SafetensorsModel::SafetensorsModel(std::vector<Tensor> tensors, std::vector<SafetensorsFile> files, OwnedBytes owned)
    : tensors_(std::move(tensors)), files_(std::move(files)), owned_(std::move(owned)) {
  std::sort(tensors_.begin(), tensors_.end(),
            [](const Tensor& a, const Tensor& b) { return a.info.name < b.info.name; });
}

const SafetensorsModel::Tensor* SafetensorsModel::find(std::string_view name) const {
  return find_by_name(tensors_, name, [](const Tensor& tensor) -> std::string_view { return tensor.info.name; });
}

uint64_t SafetensorsModel::bytes() const {
  uint64_t total = 0;
  for (const Tensor& tensor : tensors_) total += tensor.info.bytes;
  return total;
}

}  // namespace ingot
