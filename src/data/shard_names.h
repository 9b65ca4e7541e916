// Names of the files in a shard directory, for those who read and write them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot::shard_names {

inline constexpr std::string_view kDocumentEnds = "document_ends.bin";
inline constexpr std::string_view kDocumentHashes = "document_hashes.bin";
inline constexpr std::string_view kPromptTokens = "prompt_tokens.bin";
inline constexpr std::string_view kTokenBytes = "token_bytes.bin";
inline std::string shard(int64_t number) {
  return fmt::format("shard-{:05d}.bin", number);
}

}  // namespace ingot::shard_names
