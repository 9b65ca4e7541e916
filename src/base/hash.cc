#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>

namespace ingot {

uint64_t hash_bytes(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}
uint64_t hash_bytes(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}
std::string hash_text(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

struct StreamHash::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { XXH3_64bits_reset(xxh); }
  ~State() { XXH3_freeState(xxh); }
};

StreamHash::StreamHash() : state_(std::make_unique<State>()) {}
StreamHash::~StreamHash() = default;
StreamHash::StreamHash(StreamHash&&) noexcept = default;
StreamHash& StreamHash::operator=(StreamHash&&) noexcept = default;
void StreamHash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->xxh, bytes.data(), bytes.size());
}
uint64_t StreamHash::digest() const {
  return XXH3_64bits_digest(state_->xxh);
}

uint32_t crc32c(std::span<const std::byte> bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) ? 0x82F63B78u : 0u);
      table[i] = crc;
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (std::byte byte : bytes) crc = kTable[(crc ^ static_cast<uint32_t>(byte)) & 0xffu] ^ (crc >> 8);
  return ~crc;
}

}  // namespace ingot
