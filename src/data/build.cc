#include "data/build.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/hash.h"
#include "base/log.h"
#include "data/directory_lock.h"
#include "data/documents.h"
#include "data/shard_writer.h"

namespace ingot {
namespace {

constexpr size_t kWorkBytes = size_t{1} << 18;  // rows are encoded in groups of about this many bytes
constexpr std::string_view kBuilding = ".building-", kReplaced = ".replaced-";

// Some pieces and, once encoded, their text and tokens. Reused, so that memory is allocated once.
struct Work {
  struct Encoded {
    size_t text_end = 0, ids_end = 0;  // in `text` and `ids`
    int64_t prompt_tokens = 0;
  };
  std::vector<Piece> pieces;
  RowText row;  // scratch
  std::string text;
  std::vector<int32_t> ids;
  std::vector<Encoded> encoded;
  Status status;

  void clear() {
    pieces.clear();
    text.clear();
    ids.clear();
    encoded.clear();
    status = {};
  }
};

Status encode_pieces(Work& work, const TextEncoder& encoder) {
  for (const Piece& piece : work.pieces) {
    INGOT_TRY(text_of(piece, work.row));
    const size_t ids_before = work.ids.size();
    if (!work.row.prompt.empty()) encoder.encode(work.row.prompt, work.ids);
    const size_t prompt_tokens = work.ids.size() - ids_before;
    if (!work.row.text.empty()) encoder.encode(work.row.text, work.ids);
    work.text += work.row.prompt;
    work.text += work.row.text;
    work.encoded.push_back({work.text.size(), work.ids.size(), static_cast<int64_t>(prompt_tokens)});
  }
  return {};
}

// Passes the documents of the sources through the encoder, round by round, to a writer.
class Builder {
 public:
  Builder(const TextEncoder& encoder, const ThreadPool& pool, const ShardBuildOptions& options, uint64_t bytes_total,
          ShardWriter& writer)
      : encoder_(encoder),
        pool_(pool),
        options_(options),
        writer_(writer),
        works_(static_cast<size_t>(pool.threads()) * 4) {
    progress_.bytes_total = bytes_total;
  }

  Status add(DocumentReader& reader) {
    const uint64_t bytes_before = progress_.bytes_read;
    for (;;) {
      const Result<size_t> gathered = gather(reader);
      const size_t count =
          gathered.ok() ? *gathered : works_.size();  // what came before a faulty file may hold a fault too
      pool_.run(static_cast<int64_t>(count), [&](int64_t tile, int) {
        Work& work = works_[static_cast<size_t>(tile)];
        work.status = encode_pieces(work, encoder_);
      });
      for (size_t i = 0; i < count; ++i) INGOT_TRY(write(works_[i]));
      if (!gathered.ok()) return gathered.error();
      progress_.bytes_read = bytes_before + reader.bytes_read();
      progress_.documents = writer_.index().documents;
      progress_.tokens = writer_.index().tokens;
      if (options_.progress) options_.progress(progress_);
      if (count == 0) return {};
    }
  }

 private:
  // Fills works_ from the front; returns how many hold something.
  Result<size_t> gather(DocumentReader& reader) {
    for (Work& work : works_) work.clear();
    for (size_t i = 0; i < works_.size(); ++i) {
      for (size_t bytes = 0; bytes < kWorkBytes;) {
        INGOT_ASSIGN(std::optional<Piece> piece, reader.next());
        if (!piece) return works_[i].pieces.empty() ? i : i + 1;
        bytes += piece->raw.size() + 64;  // rows without text take room too
        works_[i].pieces.push_back(std::move(*piece));
      }
    }
    return works_.size();
  }

  Status write(const Work& work) {
    INGOT_TRY(work.status);
    size_t text_begin = 0, ids_begin = 0;
    for (size_t i = 0; i < work.pieces.size(); ++i) {
      const Work::Encoded& encoded = work.encoded[i];
      const std::string_view text = std::string_view(work.text).substr(text_begin, encoded.text_end - text_begin);
      hash_.add(std::as_bytes(std::span(text.data(), text.size())));
      document_bytes_ += static_cast<int64_t>(text.size());
      INGOT_TRY(writer_.add_tokens(std::span(work.ids).subspan(ids_begin, encoded.ids_end - ids_begin)));
      text_begin = encoded.text_end;
      ids_begin = encoded.ids_end;
      if (!work.pieces[i].ends_document) continue;
      INGOT_TRY(writer_.end_document(hash_.digest(), document_bytes_, encoded.prompt_tokens));
      hash_ = StreamHash();
      document_bytes_ = 0;
    }
    return {};
  }

  const TextEncoder& encoder_;
  const ThreadPool& pool_;
  const ShardBuildOptions& options_;
  ShardWriter& writer_;
  std::vector<Work> works_;
  BuildProgress progress_;
  StreamHash hash_;  // of the document being written
  int64_t document_bytes_ = 0;
};

// A directory that is removed again unless it was moved to its place.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> create(fs::path path) {
    INGOT_TRY(ingot::remove_all(path));
    INGOT_TRY(ingot::create_directories(path));
    return TemporaryDirectory(std::move(path));
  }
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;  // the next build tries again
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  void release() { path_.clear(); }

 private:
  explicit TemporaryDirectory(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

fs::path beside(const fs::path& directory, std::string_view suffix) {
  fs::path path = directory;
  path += fmt::format("{}{}", suffix, ::getpid());
  return path;
}

// What builds of `directory` that were killed left beside it. The caller holds its lock.
Status remove_leftovers(const fs::path& directory) {
  const fs::path parent = directory.has_parent_path() ? directory.parent_path() : fs::path(".");
  const std::string name = directory.filename().string();
  std::error_code problem;
  std::vector<fs::path> dead;
  for (auto entry = fs::directory_iterator(parent, problem); !problem && entry != fs::directory_iterator();
       entry.increment(problem)) {
    const std::string found = entry->path().filename().string();
    for (std::string_view suffix : {kBuilding, kReplaced})
      if (found.starts_with(name) && std::string_view(found).substr(name.size()).starts_with(suffix))
        dead.push_back(entry->path());
  }
  if (problem) return failed_error("cannot read the directory {}: {}", parent.string(), problem.message());
  for (const fs::path& path : dead) {
    log_info("removing {}, which a build that did not end left behind", path.string());
    INGOT_TRY(ingot::remove_all(path));
  }
  return {};
}

Status check_replaceable(const fs::path& directory) {
  std::error_code ignored;  // what is not there may be created
  if (!fs::exists(directory, ignored) || ShardSet::is_shard_directory(directory)) return {};
  if (!fs::is_directory(directory, ignored))
    return usage_error("{} is a file; expected a directory for shards, or a new name", directory.string());
  if (fs::is_empty(directory, ignored)) return {};
  return usage_error("the directory {} holds other files; expected a new name, an empty directory or one of shards",
                     directory.string());
}

Status publish(TemporaryDirectory& built, const fs::path& directory) {
  INGOT_TRY(sync_directory(built.path()));
  INGOT_TRY(publish_directory(built.path(), directory, beside(directory, kReplaced)));
  built.release();
  return {};
}

// What the shards depend on.
struct Inputs {
  std::vector<SourceFiles> files;  // one a spec
  uint64_t bytes = 0;
  uint64_t key = 0;
};

Result<Inputs> collect_inputs(std::span<const SourceSpec> specs, const TextEncoder& encoder) {
  Inputs inputs;
  std::string key = fmt::format("ingot-shards 1\n{} {}\n", hash_text(encoder.fingerprint), encoder.eos.value_or(-1));
  for (const SourceSpec& spec : specs) {
    INGOT_ASSIGN(SourceFiles found, find_source_files(spec));
    if (found.is_shards)
      return usage_error("{} is a directory of shards already; expected text to build shards from", spec.path);
    const auto add = [&](const std::optional<std::string>& text) {
      key += text ? fmt::format("{}:{}", text->size(), *text) : std::string("-");
    };
    add(spec.text_key);
    add(spec.row_template);
    add(spec.prompt_template);
    for (const fs::path& file : found.files) {
      struct stat info {};
      if (::stat(file.c_str(), &info) != 0)
        return input_error("cannot read {}: {}", file.string(), std::strerror(errno));
      std::error_code problem;
      const fs::path absolute = fs::absolute(file, problem);
      key +=
          fmt::format("\n{} {} {}.{:09d}", absolute.string(), info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
      inputs.bytes += static_cast<uint64_t>(info.st_size);
    }
    inputs.files.push_back(std::move(found));
  }
  inputs.key = hash_bytes(key);
  return inputs;
}

// The shards in `directory` if they are what a build would make; none if they are not, or are damaged.
std::shared_ptr<const ShardSet> open_if_current(const fs::path& directory, const Inputs& inputs,
                                                const TextEncoder& encoder) {
  if (!ShardSet::is_shard_directory(directory)) return nullptr;
  Result<std::shared_ptr<const ShardSet>> set = ShardSet::open(directory);
  if (!set.ok()) {
    log_warning("{}", set.error().message);
    return nullptr;
  }
  const ShardIndex& index = (*set)->index();
  return index.source_key == inputs.key && index.tokenizer_fingerprint == encoder.fingerprint ? *set : nullptr;
}

Result<std::shared_ptr<const ShardSet>> build(std::span<const SourceSpec> specs, const Inputs& inputs,
                                              const TextEncoder& encoder, const fs::path& directory,
                                              const ThreadPool& pool, const ShardBuildOptions& options) {
  INGOT_TRY(check_replaceable(directory));
  INGOT_TRY(ingot::create_directories(directory.has_parent_path() ? directory.parent_path() : fs::path(".")));
  INGOT_ASSIGN(const DirectoryLock lock, DirectoryLock::acquire(directory));
  INGOT_TRY(remove_leftovers(directory));
  if (auto current = open_if_current(directory, inputs, encoder)) return current;
  INGOT_ASSIGN(TemporaryDirectory temporary, TemporaryDirectory::create(beside(directory, kBuilding)));
  INGOT_ASSIGN(ShardWriter writer, ShardWriter::create(temporary.path(), encoder, options.shard_tokens));
  Builder builder(encoder, pool, options, inputs.bytes, writer);
  for (size_t i = 0; i < specs.size(); ++i) {
    DocumentReader reader(specs[i], inputs.files[i].files, encoder);
    INGOT_TRY(builder.add(reader));
  }
  INGOT_TRY(writer.finish(inputs.key));
  INGOT_TRY(publish(temporary, directory));
  return ShardSet::open(directory);
}

// "runs/shards/" names the same directory as "runs/shards".
fs::path without_trailing_separator(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

Result<std::shared_ptr<const ShardSet>> build_shards(std::span<const SourceSpec> specs, const TextEncoder& encoder,
                                                     const fs::path& directory, const ThreadPool& pool,
                                                     const ShardBuildOptions& options) {
  if (directory.empty()) return usage_error("no directory was given for the shards");
  INGOT_ASSIGN(const Inputs inputs, collect_inputs(specs, encoder));
  return build(specs, inputs, encoder, without_trailing_separator(directory), pool, options);
}

namespace {

// Shards that `spec.path` itself holds.
Result<std::shared_ptr<const ShardSet>> open_given(const SourceSpec& spec, const TextEncoder& encoder) {
  INGOT_ASSIGN(std::shared_ptr<const ShardSet> set, ShardSet::open(spec.path));
  if (set->index().tokenizer_fingerprint != encoder.fingerprint)
    return input_error(
        "{} was built with another tokenizer (fingerprint {}, expected {}); build it again with this run's", spec.path,
        hash_text(set->index().tokenizer_fingerprint), hash_text(encoder.fingerprint));
  return set;
}

fs::path cached_directory(const fs::path& cache, const Inputs& inputs) {
  return cache / ("shards-" + hash_text(inputs.key));
}

}  // namespace

Result<std::shared_ptr<const ShardSet>> open_or_build(const SourceSpec& spec, const TextEncoder& encoder,
                                                      const fs::path& cache, const ThreadPool& pool,
                                                      const ShardBuildOptions& options) {
  if (ShardSet::is_shard_directory(spec.path)) return open_given(spec, encoder);
  const std::span<const SourceSpec> specs(&spec, 1);
  INGOT_ASSIGN(const Inputs inputs, collect_inputs(specs, encoder));
  const fs::path directory = cached_directory(cache, inputs);
  if (auto current = open_if_current(directory, inputs, encoder)) return current;
  return build(specs, inputs, encoder, directory, pool, options);
}

Result<std::shared_ptr<const ShardSet>> open_if_built(const SourceSpec& spec, const TextEncoder& encoder,
                                                      const fs::path& cache) {
  if (ShardSet::is_shard_directory(spec.path)) return open_given(spec, encoder);
  INGOT_ASSIGN(const Inputs inputs, collect_inputs(std::span<const SourceSpec>(&spec, 1), encoder));
  return open_if_current(cached_directory(cache, inputs), inputs, encoder);
}

}  // namespace ingot
