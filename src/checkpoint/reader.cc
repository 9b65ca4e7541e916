#include "checkpoint/reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/log.h"
#include "checkpoint/convert.h"

namespace ingot {
namespace {

constexpr std::string_view kStepPrefix = "step-";

// The step of "step-00000500" or "step-00000500.tmp-77"; none for other names. `rest` is what follows the digits.
std::optional<int64_t> parse_name(std::string_view name, std::string_view& rest) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || step < 0 || end - name.data() < 8) return std::nullopt;
  rest = name.substr(static_cast<size_t>(end - name.data()));
  return step;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Size and XXH3-64 of a file, read rather than mapped: a bad disk is then an error and not a signal.
Result<ManifestFile> hash_file(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return input_error("cannot read {}: {}", path.string(), std::strerror(errno));
  std::vector<std::byte> chunk(size_t{1} << 20);
  StreamHash hash;
  ManifestFile file{path.filename().string(), 0, 0};
  ssize_t n = 0;
  while ((n = ::read(fd, chunk.data(), chunk.size())) != 0) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    hash.add(std::span(chunk).first(static_cast<size_t>(n)));
    file.bytes += static_cast<uint64_t>(n);
  }
  const int problem = n < 0 ? errno : 0;
  ::close(fd);
  if (problem != 0) return input_error("cannot read {}: {}", path.string(), std::strerror(problem));
  file.hash = hash.digest();
  return file;
}

std::string find_damage(const fs::path& path, const ManifestFile& expected) {
  if (!is_there(path)) return "it is missing";
  const Result<ManifestFile> found = hash_file(path);
  if (!found.ok()) return found.error().message;
  if (found->bytes != expected.bytes) return fmt::format("it has {} bytes, expected {}", found->bytes, expected.bytes);
  if (found->hash != expected.hash)
    return fmt::format("its checksum is {}, expected {}", hash_text(found->hash), hash_text(expected.hash));
  return {};
}

Error no_checkpoint(const fs::path& directory) {
  if (!is_there(directory)) return input_error("{} does not exist", directory.string());
  return input_error("{} is no checkpoint: it has no {} (which a save writes last)", directory.string(), kManifestName);
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  return fmt::format("{}{:08}", kStepPrefix, step);
}

Result<Checkpoint> Checkpoint::open(const fs::path& directory) {
  const fs::path manifest_path = directory / kManifestName;
  if (!is_there(manifest_path)) return no_checkpoint(directory);
  INGOT_ASSIGN(const std::string text, ingot::read_file(manifest_path));
  Checkpoint checkpoint;
  checkpoint.path_ = directory;
  INGOT_ASSIGN(checkpoint.manifest_, parse_manifest(text, manifest_path.string()));
  INGOT_TRY(checkpoint.check_files());
  INGOT_TRY(checkpoint.open_boxes());
  checkpoint.group_tensors();
  return checkpoint;
}

Status Checkpoint::check_files() const {
  for (const ManifestFile& file : manifest_.files) {
    std::error_code error;
    const uint64_t bytes = fs::file_size(path_ / file.name, error);
    if (error) return input_error("{}: its file {} cannot be read: {}", path_.string(), file.name, error.message());
    if (bytes != file.bytes)
      return input_error("{}: its file {} has {} bytes, expected {}", path_.string(), file.name, bytes, file.bytes);
  }
  return {};
}

Status Checkpoint::open_boxes() {
  for (const ManifestPiece& piece : manifest_.pieces) {
    auto box = boxes_.find(piece.file);
    if (box == boxes_.end()) {
      INGOT_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path_ / piece.file));
      box = boxes_.emplace(piece.file, std::move(file)).first;
    }
    const TensorInfo* info = box->second.find(piece.key);
    if (info == nullptr)
      return input_error("{}: {} holds no \"{}\", which the manifest places there", path_.string(), piece.file,
                         piece.key);
    if (info->dtype != piece.dtype || info->shape != piece.box.shape())
      return input_error("{}: \"{}\" in {} is {}{}, the manifest says {}{}", path_.string(), piece.key, piece.file,
                         name_of(info->dtype), info->shape.to_string(), name_of(piece.dtype),
                         piece.box.shape().to_string());
  }
  return {};
}

void Checkpoint::group_tensors() {
  for (size_t i = 0; i < manifest_.pieces.size(); ++i) {
    const ManifestPiece& piece = manifest_.pieces[i];
    if (tensors_.empty() || tensors_.back().name != piece.tensor || tensors_.back().kind != piece.kind)
      tensors_.push_back({piece.tensor, piece.kind, piece.dtype, piece.shape, i, 0});
    ++tensors_.back().pieces;
  }
}

uint64_t Checkpoint::bytes() const {
  uint64_t total = 0;
  for (const ManifestFile& file : manifest_.files) total += file.bytes;
  return total;
}

bool Checkpoint::has_file(std::string_view name) const {
  return std::any_of(manifest_.files.begin(), manifest_.files.end(),
                     [&](const ManifestFile& f) { return f.name == name; });
}

Result<std::string> Checkpoint::read_file(std::string_view name) const {
  for (const ManifestFile& file : manifest_.files) {
    if (file.name != name) continue;
    INGOT_ASSIGN(std::string content, ingot::read_file(path_ / file.name));
    if (content.size() == file.bytes && hash_bytes(content) == file.hash) return content;
    return input_error("{}: its file {} is damaged: the checksum differs", path_.string(), name);
  }
  return input_error("{} holds no file {}", path_.string(), name);
}

const Checkpoint::Tensor* Checkpoint::find(std::string_view name, std::string_view kind) const {
  const auto key = std::make_pair(kind, name);
  const auto key_of = [](const Tensor& t) {
    return std::make_pair(std::string_view(t.kind), std::string_view(t.name));
  };
  const auto found = std::lower_bound(tensors_.begin(), tensors_.end(), key,
                                      [&](const Tensor& tensor, const auto& k) { return key_of(tensor) < k; });
  return found != tensors_.end() && key_of(*found) == key ? &*found : nullptr;
}

ConstTensorView Checkpoint::piece_view(const ManifestPiece& piece) const {
  return boxes_.find(piece.file)->second.view(piece.key);
}

std::optional<ConstTensorView> Checkpoint::whole_view(const Tensor& tensor) const {
  if (tensor.pieces != 1) return std::nullopt;
  return piece_view(manifest_.pieces[tensor.first_piece]);
}

Status Checkpoint::assemble(std::string_view name, std::string_view kind, const Shape& shape, const Box& box,
                            const TensorView& destination) const {
  const Tensor* tensor = find(name, kind);
  if (tensor == nullptr) return input_error("{} holds no {} of tensor \"{}\"", path_.string(), kind, name);
  if (tensor->shape != shape)
    return input_error("{}: {} of tensor \"{}\" has shape {}, expected {}", path_.string(), kind, name,
                       tensor->shape.to_string(), shape.to_string());
  if (!is_convertible(tensor->dtype, destination.dtype))
    return input_error("{}: {} of tensor \"{}\" is {}, expected {}", path_.string(), kind, name, name_of(tensor->dtype),
                       name_of(destination.dtype));
  INGOT_CHECK(box.shape() == destination.shape, "box {} assembled into memory of shape {}", box.to_string(),
              destination.shape.to_string());
  for (size_t i = 0; i < tensor->pieces; ++i) {
    const ManifestPiece& piece = manifest_.pieces[tensor->first_piece + i];
    if (const auto part = intersect(piece.box, box)) copy_box(*part, piece_view(piece), piece.box, destination, box);
  }
  return {};
}

Status Checkpoint::read_tensor(std::string_view name, std::string_view kind, const TensorView& destination) const {
  return assemble(name, kind, destination.shape, Box::whole(destination.shape), destination);
}

std::string VerifyReport::to_string() const {
  std::string text;
  for (const Damage& damage : damaged)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", damage.file, damage.problem);
  return text;
}

Result<VerifyReport> verify_checkpoint(const fs::path& directory) {
  const fs::path manifest_path = directory / kManifestName;
  if (!is_there(manifest_path)) return no_checkpoint(directory);
  VerifyReport report;
  report.files = 1;
  const Result<std::string> text = read_file(manifest_path);
  const Result<Manifest> manifest = text.ok() ? parse_manifest(*text, std::string(kManifestName)) : text.error();
  if (!manifest.ok()) {
    report.damaged.push_back({std::string(kManifestName), manifest.error().message});
    return report;
  }
  report.step = manifest->step;
  report.bytes = text->size();
  for (const ManifestFile& file : manifest->files) {
    ++report.files;
    report.bytes += file.bytes;
    const std::string problem = find_damage(directory / file.name, file);
    if (!problem.empty()) report.damaged.push_back({file.name, problem});
  }
  if (!report.damaged.empty()) return report;
  if (const auto opened = Checkpoint::open(directory); !opened.ok())
    report.damaged.push_back({std::string(kManifestName), opened.error().message});
  return report;
}

Result<std::vector<CheckpointEntry>> list_checkpoints(const fs::path& directory) {
  std::vector<CheckpointEntry> entries;
  if (!is_there(directory)) return entries;
  std::error_code error;
  for (fs::directory_iterator item(directory, error), end; !error && item != end; item.increment(error)) {
    const std::string name = item->path().filename().string();
    std::string_view rest;
    const auto step = parse_name(name, rest);
    if (!step) continue;
    CheckpointEntry entry{item->path(), *step, false, {}};
    if (rest.starts_with(".tmp-"))
      entry.problem = "its save did not end";
    else if (rest.starts_with(".old-"))
      entry.problem = "it was about to be deleted";
    else if (!rest.empty())
      continue;
    else if (!is_there(entry.path / kManifestName))
      entry.problem = fmt::format("it has no {}", kManifestName);
    entry.complete = entry.problem.empty();
    entries.push_back(std::move(entry));
  }
  if (error) return input_error("cannot list {}: {}", directory.string(), error.message());
  std::sort(entries.begin(), entries.end(), [](const CheckpointEntry& a, const CheckpointEntry& b) {
    return a.step != b.step ? a.step < b.step : a.path < b.path;
  });
  return entries;
}

Result<std::optional<Checkpoint>> find_newest_checkpoint(const fs::path& directory) {
  INGOT_ASSIGN(const auto entries, list_checkpoints(directory));
  std::string damaged;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const std::string name = entry->path.filename().string();
    if (!entry->complete) {
      log_warning("the checkpoint {} is passed over: {}", name, entry->problem);
      continue;
    }
    INGOT_ASSIGN(const VerifyReport report, verify_checkpoint(entry->path));
    if (report.damaged.empty()) {
      INGOT_ASSIGN(Checkpoint checkpoint, Checkpoint::open(entry->path));
      return std::optional<Checkpoint>(std::move(checkpoint));
    }
    log_warning("the checkpoint {} is passed over: it is damaged: {}", name, report.to_string());
    damaged += (damaged.empty() ? "" : ", ") + name;
  }
  if (damaged.empty()) return std::optional<Checkpoint>();
  return input_error("every checkpoint in {} is damaged ({}): restore one, or remove them all to start anew",
                     directory.string(), damaged);
}

Result<std::vector<fs::path>> resolve_checkpoints(const fs::path& path) {
  if (is_there(path / kManifestName)) return std::vector<fs::path>{path};
  if (!is_there(path)) return input_error("{} does not exist", path.string());
  std::vector<fs::path> complete;
  for (const fs::path& directory : {path, path / "checkpoints"}) {
    INGOT_ASSIGN(const auto entries, list_checkpoints(directory));
    for (const CheckpointEntry& entry : entries)
      if (entry.complete) complete.push_back(entry.path);
    if (!complete.empty()) return complete;
  }
  return input_error(
      "{} is no checkpoint and holds none: a checkpoint is a directory with {}, a run keeps them in checkpoints/",
      path.string(), kManifestName);
}

namespace {

// Collects the weights of a checkpoint: whole pieces stay in their file's map, others are put together in memory.
class WeightCollector {
 public:
  explicit WeightCollector(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  Status add(const Checkpoint::Tensor& tensor) {
    const ManifestPiece& piece = checkpoint_.manifest().pieces[tensor.first_piece];
    SafetensorsModel::Tensor weight;
    weight.info.name = tensor.name;
    weight.info.dtype = tensor.dtype;
    weight.info.shape = tensor.shape;
    weight.info.bytes = static_cast<uint64_t>(tensor.shape.elements()) * size_of(tensor.dtype);
    weight.file = checkpoint_.path() / piece.file;
    if (tensor.pieces == 1) {
      INGOT_TRY(open(piece.file));
      const SafetensorsFile& file = files_.at(piece.file);
      weight.info.offset = file.find(piece.key)->offset;
      weight.data = file.view(piece.key).data;
    } else {
      owned_.push_back(std::make_unique<std::byte[]>(weight.info.bytes));
      weight.data = owned_.back().get();
      INGOT_TRY(checkpoint_.read_tensor(tensor.name, tensor.kind, {owned_.back().get(), tensor.dtype, tensor.shape}));
    }
    weights_.push_back(std::move(weight));
    return {};
  }

  SafetensorsModel finish() && {
    std::vector<SafetensorsFile> files;
    for (auto& [name, file] : files_) files.push_back(std::move(file));
    return SafetensorsModel(std::move(weights_), std::move(files), std::move(owned_));
  }

 private:
  Status open(const std::string& name) {
    if (files_.contains(name)) return {};
    INGOT_ASSIGN(SafetensorsFile file, SafetensorsFile::open(checkpoint_.path() / name));
    files_.emplace(name, std::move(file));
    return {};
  }

  const Checkpoint& checkpoint_;
  std::map<std::string, SafetensorsFile> files_;
  SafetensorsModel::OwnedBytes owned_;
  std::vector<SafetensorsModel::Tensor> weights_;
};

}  // namespace

Result<SafetensorsModel> open_weights(const fs::path& path) {
  if (!is_there(path / kManifestName)) return SafetensorsModel::open(path);
  INGOT_ASSIGN(const Checkpoint checkpoint, Checkpoint::open(path));
  WeightCollector collector(checkpoint);
  for (const Checkpoint::Tensor& tensor : checkpoint.tensors())
    if (tensor.kind == "weight") INGOT_TRY(collector.add(tensor));
  return std::move(collector).finish();
}

}  // namespace ingot
