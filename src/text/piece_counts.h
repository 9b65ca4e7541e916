// How often each piece of text occurs: what BPE training starts from.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/parallel.h"

namespace ingot {

struct PieceCount {
  std::string_view piece;  // a part of the documents
  int64_t count = 0;
};

// The pieces of the documents under GPT-2's pattern, each once, in order of their bytes, so that nothing depends on
// threads.
std::vector<PieceCount> count_pieces(std::span<const std::string_view> documents, const ThreadPool& pool);

}  // namespace ingot
