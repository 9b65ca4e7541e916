// Checksums: XXH3-64 for files of ours, CRC-32C where a format of others asks for it (TensorBoard).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ingot {

uint64_t hash_bytes(std::span<const std::byte> bytes);
uint64_t hash_bytes(std::string_view bytes);
std::string hash_text(uint64_t hash);  // 16 hexadecimal digits

// XXH3-64 of a stream; the digest of all that was added equals hash_bytes of the whole.
class StreamHash {
 public:
  StreamHash();
  ~StreamHash();
  StreamHash(StreamHash&&) noexcept;
  StreamHash& operator=(StreamHash&&) noexcept;
  void add(std::span<const std::byte> bytes);
  uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace ingot
