#include "text/vocabulary.h"

#include <bit>

#include "base/check.h"
#include "base/hash.h"

namespace ingot {

void Vocabulary::set(TokenId id, std::string_view text, std::string_view bytes, std::string_view first_bytes,
                     bool special) {
  INGOT_CHECK(id >= 0 && id < size(), "token id {} in a vocabulary of {}", id, size());
  Token& token = tokens_[static_cast<size_t>(id)];
  const auto keep = [&](std::string_view part, uint64_t& offset, uint32_t& part_size) {
    offset = arena_.size();
    part_size = static_cast<uint32_t>(part.size());
    arena_.append(part);
  };
  keep(text, token.text, token.text_size);
  keep(bytes, token.bytes, token.bytes_size);
  token.first = token.bytes;
  token.first_size = token.bytes_size;
  if (first_bytes != bytes) keep(first_bytes, token.first, token.first_size);
  token.known = true;
  token.special = special;
}

StringIndex::StringIndex(const std::vector<std::pair<std::string_view, TokenId>>& entries)
    : slots_(std::bit_ceil(entries.size() * 2 + 1)) {
  const size_t mask = slots_.size() - 1;
  for (const auto& [text, id] : entries) {
    const uint64_t hash = hash_bytes(text);
    size_t at = hash & mask;
    while (slots_[at].id != kNoToken &&
           !(slots_[at].hash == hash && std::string_view(arena_).substr(slots_[at].offset, slots_[at].size) == text)) {
      at = (at + 1) & mask;
    }
    if (slots_[at].id != kNoToken) continue;
    slots_[at] = {hash, arena_.size(), static_cast<uint32_t>(text.size()), id};
    arena_.append(text);
  }
}

TokenId StringIndex::find(std::string_view text) const {
  const size_t mask = slots_.size() - 1;
  const uint64_t hash = hash_bytes(text);
  for (size_t at = hash & mask; slots_[at].id != kNoToken; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && std::string_view(arena_).substr(slot.offset, slot.size) == text) return slot.id;
  }
  return kNoToken;
}

}  // namespace ingot
