// What a run needs before its first step, resolved from the configuration: tokenizer, model description, training and
// validation sequences. Building (a tokenizer, token shards) happens here, once, and is reused by later runs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "data/batch_stream.h"
#include "models/model.h"
#include "text/tokenizer.h"
#include "train/config.h"

namespace ingot {

struct RunSetup {
  std::optional<Tokenizer> tokenizer;  // none where the data are shards and nothing names one
  Model model;
  std::vector<MixturePart> train;
  std::vector<std::shared_ptr<const SequenceSource>> validation;
  int64_t sequences_per_epoch = 0;
};

// The tokenizer that the configuration names: loaded; trained on data.train and saved where tokenizer.path does not
// exist and tokenizer.train_vocab_size says so; or that of model.path. None where nothing names one.
Result<std::optional<Tokenizer>> resolve_tokenizer(const RunConfig& config, const ThreadPool& pool);

// The model of the section `model`. vocab_size, where the user did not give it, is `vocab_size` (kNone: unknown, then
// the family's default).
Result<Model> resolve_model(const ModelSection& section, int64_t vocab_size);

// The vocabulary that the shards among data.train were built with; kNone where there are none.
int64_t shard_vocabulary(const RunConfig& config);

// All of it. Shards are built under output_dir/data, on data.workers threads or, where that is auto, on all_threads.
Result<RunSetup> set_up_run(const RunConfig& config, const ThreadPool& all_threads);

// How the run draws its batches, on one rank.
StreamOptions stream_options(const RunConfig& config, int64_t micro_batch);

// Whether the directory (a Hugging Face directory or a checkpoint) holds weights.
bool has_weights(const std::string& directory);

// The vocabulary of the model against the tokenizer's: an error (usage) where the tokenizer has ids that the model has
// not; a warning text where much of the vocabulary is never used; else empty.
Result<std::string> check_vocabulary(int64_t model_vocab_size, const Tokenizer& tokenizer);

}  // namespace ingot
