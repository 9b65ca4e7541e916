#include "checkpoint/safetensors_writer.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/convert.h"

namespace ingot {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

std::vector<std::byte> make_header(const std::vector<TensorInfo>& tensors, const SafetensorsMetadata& metadata) {
  ordered_json header = ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const TensorInfo& info : tensors)
    header.emplace(info.name, ordered_json{{"dtype", safetensors_name(info.dtype)},
                                           {"shape", info.shape.dims()},
                                           {"data_offsets", {info.offset, info.offset + info.bytes}}});
  std::string text = header.dump();  // throws where a name is not UTF-8
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::vector<std::byte> bytes(8 + text.size());
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, text.data(), text.size());
  return bytes;
}

std::string shard_name(size_t shard, size_t shards) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
}

bool is_shard_name(std::string_view name) {
  constexpr std::string_view kPattern = "model-#####-of-#####.safetensors";
  return std::equal(name.begin(), name.end(), kPattern.begin(), kPattern.end(),
                    [](char c, char p) { return p == '#' ? c >= '0' && c <= '9' : c == p; });
}

Status remove_if_exists(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) return failed_error("cannot remove {}: {}", path.string(), error.message());
  return {};
}

// Removes the shards of an earlier model that are not of this one.
Status remove_other_shards(const fs::path& directory, size_t shards) {
  std::vector<fs::path> stale;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool ours = shards > 1 && name.ends_with(fmt::format("-of-{:05}.safetensors", shards));
    if (is_shard_name(name) && !ours) stale.push_back(entry->path());
  }
  if (error) return failed_error("cannot list {}: {}", directory.string(), error.message());
  for (const fs::path& path : stale) INGOT_TRY(remove_if_exists(path));
  return {};
}

DType stored_dtype(const ConstTensorView& view, const ModelWriteOptions& options) {
  return options.float_dtype && is_float(view.dtype) ? *options.float_dtype : view.dtype;
}

uint64_t stored_bytes(const ConstTensorView& view, const ModelWriteOptions& options) {
  return static_cast<uint64_t>(view.shape.elements()) * size_of(stored_dtype(view, options));
}

// A tensor that is read part by part: rows of its first dimension, some at a time.
Status write_parts(SafetensorsWriter& writer, const TensorInfo& info, const NamedTensor& tensor) {
  constexpr int64_t kChunk = int64_t{1} << 18;  // elements, or one row
  const Shape& shape = info.shape;
  if (shape.elements() == 0) return {};
  const DType from = tensor.view.dtype;
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0], width = shape.elements() / rows;
  const int64_t step = std::clamp<int64_t>(kChunk / width, 1, rows);
  std::vector<std::byte> raw(static_cast<size_t>(step * width) * size_of(from)),
      stored(static_cast<size_t>(step * width) * size_of(info.dtype));
  for (int64_t row = 0; row < rows; row += step) {
    Box box = Box::whole(shape);
    if (shape.rank() > 0) box.start[0] = row, box.stop[0] = std::min(rows, row + step);
    const auto count = static_cast<size_t>(box.shape().elements());
    INGOT_TRY(tensor.read(box, TensorView{raw.data(), from, box.shape()}));
    convert_elements(from, raw.data(), info.dtype, stored.data(), count);
    INGOT_TRY(writer.write(info.name, std::span(stored).first(count * size_of(info.dtype))));
  }
  return {};
}

Status write_shard(const fs::path& path, std::span<const NamedTensor> tensors, const ModelWriteOptions& options) {
  std::vector<TensorInfo> infos;
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : tensors) {
    infos.push_back({tensor.name, stored_dtype(tensor.view, options), tensor.view.shape, 0, 0});
    by_name[tensor.name] = &tensor;
  }
  INGOT_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, std::move(infos), options.metadata));
  for (const TensorInfo& info : writer.order()) {
    const NamedTensor& tensor = *by_name.at(info.name);
    INGOT_TRY(tensor.read ? write_parts(writer, info, tensor) : writer.write(info.name, tensor.view));
  }
  return writer.finish();
}

// Cuts tensors (by name) into runs of at most max_shard_bytes; each result is the index after a run's last.
std::vector<size_t> cut_shards(const std::vector<NamedTensor>& tensors, const ModelWriteOptions& options) {
  std::vector<size_t> ends;
  uint64_t filled = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t bytes = stored_bytes(tensors[i].view, options);
    if (filled > 0 && filled + bytes > options.max_shard_bytes) {
      ends.push_back(i);
      filled = 0;
    }
    filled += bytes;
  }
  ends.push_back(tensors.size());
  return ends;
}

Status write_shards(const fs::path& directory, const std::vector<NamedTensor>& tensors, const std::vector<size_t>& ends,
                    const ModelWriteOptions& options) {
  ordered_json map = ordered_json::object();
  uint64_t total = 0;
  size_t begin = 0;
  for (size_t shard = 0; shard < ends.size(); ++shard) {
    const std::string name = shard_name(shard, ends.size());
    INGOT_TRY(write_shard(directory / name, std::span(tensors).subspan(begin, ends[shard] - begin), options));
    for (; begin < ends[shard]; ++begin) {
      map[tensors[begin].name] = name;
      total += stored_bytes(tensors[begin].view, options);
    }
  }
  const ordered_json index{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
  return write_file_atomic(directory / kIndex, index.dump(2) + "\n");
}

}  // namespace

Result<SafetensorsWriter> SafetensorsWriter::create(const fs::path& path, std::vector<TensorInfo> tensors,
                                                    const SafetensorsMetadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    const size_t size_a = size_of(a.dtype), size_b = size_of(b.dtype);
    return size_a != size_b ? size_a > size_b : a.name < b.name;
  });
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (TensorInfo& info : tensors) {
    if (info.name == "__metadata__" || !names.insert(info.name).second)
      return failed_error("cannot write {}: two tensors are named \"{}\", or the format reserves that name",
                          path.string(), info.name);
    info.bytes = static_cast<uint64_t>(info.shape.elements()) * size_of(info.dtype);
    info.offset = offset;
    offset += info.bytes;
  }
  std::vector<std::byte> header;
  try {
    header = make_header(tensors, metadata);
  } catch (const nlohmann::json::exception& problem) {
    return failed_error("cannot write {}: a tensor's name or the metadata is not UTF-8 ({})", path.string(),
                        problem.what());
  }
  for (TensorInfo& info : tensors) info.offset += header.size();
  INGOT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  INGOT_TRY(file.write(header));
  SafetensorsWriter writer(std::move(file), std::move(tensors));
  writer.skip_complete();
  return writer;
}

void SafetensorsWriter::skip_complete() {
  while (next_ < tensors_.size() && written_ == tensors_[next_].bytes) {
    ++next_;
    written_ = 0;
  }
}

Status SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};  // empty tensors are complete from the start
  INGOT_CHECK(next_ < tensors_.size(), "tensor \"{}\" written to a file that is complete", name);
  const TensorInfo& info = tensors_[next_];
  INGOT_CHECK(info.name == name, "tensor \"{}\" written where \"{}\" is due", name, info.name);
  INGOT_CHECK(bytes.size() <= info.bytes - written_, "{} bytes written to \"{}\", which lacks {}", bytes.size(), name,
              info.bytes - written_);
  INGOT_TRY(file_.write(bytes));
  written_ += bytes.size();
  skip_complete();
  return {};
}

Status SafetensorsWriter::write(std::string_view name, const ConstTensorView& view) {
  if (view.bytes() == 0) return {};
  INGOT_CHECK(next_ < tensors_.size() && tensors_[next_].name == name, "tensor \"{}\" written out of order", name);
  const DType from = view.dtype, to = tensors_[next_].dtype;
  INGOT_CHECK(view.shape == tensors_[next_].shape, "tensor \"{}\" of shape {} written as {}", name,
              view.shape.to_string(), tensors_[next_].shape.to_string());
  if (from == to) return write(name, {view.data, view.bytes()});
  constexpr size_t kChunk = size_t{1} << 18;
  std::vector<std::byte> chunk(kChunk * size_of(to));
  const auto count = static_cast<size_t>(view.shape.elements());
  for (size_t done = 0; done < count; done += kChunk) {
    const size_t n = std::min(kChunk, count - done);
    convert_elements(from, view.data + done * size_of(from), to, chunk.data(), n);
    INGOT_TRY(write(name, std::span(chunk).first(n * size_of(to))));
  }
  return {};
}

Status SafetensorsWriter::finish() {
  INGOT_CHECK(next_ == tensors_.size(), "a file finished before its tensor \"{}\" was written", tensors_[next_].name);
  return file_.publish();
}

Status write_model(const fs::path& directory, std::vector<NamedTensor> tensors, const ModelWriteOptions& options) {
  INGOT_TRY(ingot::create_directories(directory));
  INGOT_TRY(remove_abandoned_files(directory));
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
  const std::vector<size_t> ends = cut_shards(tensors, options);
  if (ends.size() == 1) {
    INGOT_TRY(write_shard(directory / kSingle, tensors, options));  // readers prefer it to an index from now on
    INGOT_TRY(remove_if_exists(directory / kIndex));
    return remove_other_shards(directory, 1);
  }
  // An old index must not lead to new shards of the same names.
  INGOT_TRY(remove_if_exists(directory / kIndex));
  INGOT_TRY(sync_directory(directory));
  INGOT_TRY(write_shards(directory, tensors, ends, options));
  INGOT_TRY(remove_if_exists(directory / kSingle));
  return remove_other_shards(directory, ends.size());
}

}  // namespace ingot
