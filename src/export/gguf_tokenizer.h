// A tokenizer as llama.cpp keeps it, in keys tokenizer.ggml.*: byte-level BPE as the model "gpt2" with merges, and BPE
// on characters with byte fallback, as SentencePiece makes it, as the model "llama" with scores.
#pragma once

#include <string>

#include "export/gguf_file.h"
#include "text/tokenizer.h"

namespace ingot {

// `vocab_size` is the model's: ids beyond the tokenizer's get tokens that do not occur. Errors (usage, beginning with
// `where`) name the part of the tokenizer that llama.cpp would not follow. Warns in the log where it follows all but
// for texts that are out of the ordinary.
Result<GgufMetadata> tokenizer_metadata(const Tokenizer& tokenizer, int64_t vocab_size, const std::string& where);

}  // namespace ingot
