// Text to token shards, once: tokenized on all threads, published whole, reused for the same inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/files.h"
#include "base/parallel.h"
#include "data/encoder.h"
#include "data/shards.h"
#include "data/sources.h"

namespace ingot {

struct BuildProgress {
  uint64_t bytes_read = 0;
  uint64_t bytes_total = 0;  // of all input files
  int64_t documents = 0;
  int64_t tokens = 0;
};

struct ShardBuildOptions {
  int64_t shard_tokens = int64_t{1} << 28;
  std::function<void(const BuildProgress&)>
      progress;  // called on the calling thread, a few times a second of work; may be empty
};

// Builds the shards of all `specs` in `directory`, which must not exist, be empty or hold shards. Shards of the same
// files (paths, sizes, times), settings and tokenizer are kept as they are; others are replaced. Killed at any moment
// it leaves `directory` as it was, or complete, or (between two renames of a replacement) absent; what a dead build
// left beside it is removed. Two processes that build the same directory take turns. The files do not depend on the
// number of threads.
Result<std::shared_ptr<const ShardSet>> build_shards(std::span<const SourceSpec> specs, const TextEncoder& encoder,
                                                     const fs::path& directory, const ThreadPool& pool,
                                                     const ShardBuildOptions& options = {});

// The shards of one source: opened where `spec.path` is a directory of shards (ErrorKind::input if it was built with
// another tokenizer), else built in, or reused from, a directory of `cache` that is named after the inputs.
Result<std::shared_ptr<const ShardSet>> open_or_build(const SourceSpec& spec, const TextEncoder& encoder,
                                                      const fs::path& cache, const ThreadPool& pool,
                                                      const ShardBuildOptions& options = {});

// The same where the shards are there already and are what a build would make; null where they are not.
Result<std::shared_ptr<const ShardSet>> open_if_built(const SourceSpec& spec, const TextEncoder& encoder,
                                                      const fs::path& cache);

}  // namespace ingot
