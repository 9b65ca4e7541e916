// What a Tokenizer is made of. Internal to text/.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe_model.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/piece_cache.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/unigram_model.h"
#include "text/vocabulary.h"
#include "text/word_piece_model.h"

namespace ingot {

// The memory of one encode call.
struct EncodeScratch {
  static constexpr size_t kBufferedIds = 8192;
  PieceCache cache;
  ModelScratch model;
  std::vector<TokenId> piece_ids;
  std::vector<TokenId> ids = std::vector<TokenId>(kBufferedIds + PieceCache::kMostIds);
};

// Scratches that wait for the next call: as many as calls ever ran at once. Thread-safe.
class ScratchPool {
 public:
  std::unique_ptr<EncodeScratch> take();
  void give_back(std::unique_ptr<EncodeScratch> scratch);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodeScratch>> waiting_;
};

// The stages as their JSON was, for writing the file again.
struct StageTexts {
  std::string normalizer = "null", pre_tokenizer = "null", post_processor = "null", decoder = "null";
};

struct TokenizerParts {
  Vocabulary vocabulary;
  AddedTokens added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<const Model> model;
  PostProcessor post_processor;
  Decoder decoder;
  std::optional<TokenId> bos, eos;
  std::vector<TokenId> ends;  // what generation_config.json lists as ends of a generated text
  uint64_t fingerprint = 0;

  // What the file says beyond what the stages above keep.
  StageTexts stages;
  std::variant<BpeModel::Options, UnigramModel::Options, WordPieceModel::Options> options;
  std::vector<TokenId> model_ids;   // the ids of the model's own vocabulary, ascending
  std::vector<BpeMerge> merges;     // by rank (BPE)
  std::vector<std::string> scores;  // by id, as written (Unigram)
  std::string sentencepiece;        // the .model that it came as, if it did

  mutable ScratchPool scratches;
};

}  // namespace ingot
