// PieceCache: the ids of short pieces seen before. Text repeats its words, so nearly every piece is found here and the
// model runs on the few that are new. A fixed number of 64-byte entries, two places for a piece: one that was asked for
// twice moves to the first, so a stream of pieces seen once does not push the common ones out. What it holds never
// changes a result.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "text/vocabulary.h"

namespace ingot {

class PieceCache {
 public:
  static constexpr size_t kMostBytes = 31;
  static constexpr size_t kMostIds = 7;

  // 32 bytes: the piece, zeros, its length.
  struct Key {
    std::array<uint64_t, 4> words;
    bool operator==(const Key& other) const {
      return ((words[0] ^ other.words[0]) | (words[1] ^ other.words[1]) | (words[2] ^ other.words[2]) |
              (words[3] ^ other.words[3])) == 0;
    }
  };
  struct alignas(64) Entry {
    Key key;  // of an empty entry all zero
    std::array<TokenId, kMostIds> ids;
    uint32_t count;
  };

  // The key of a piece of 1 to kMostBytes bytes; `readable`: bytes that may be read from its start on.
  static Key key_of(std::string_view piece, size_t readable) {
    Key key{};
    if (readable >= sizeof(key)) {
      std::memcpy(&key, piece.data(), sizeof(key));  // a copy of fixed size and a mask: no branch on the length
      const auto bits = static_cast<int>(piece.size() * 8);
      for (int i = 0; i < 4; ++i) key.words[static_cast<size_t>(i)] &= low_bits(bits - i * 64);
    } else {
      std::memcpy(&key, piece.data(), piece.size());
    }
    key.words[3] |= static_cast<uint64_t>(piece.size()) << (std::endian::native == std::endian::little ? 56 : 0);
    return key;
  }

  // The entry of a piece, or nullptr. Valid until the next call.
  const Entry* find(const Key& key) {
    Entry* set = set_of(key);
    if (set[0].key == key) return &set[0];
    if (set[1].key != key) return nullptr;
    std::swap(set[0], set[1]);
    return &set[0];
  }
  // At most kMostIds ids.
  void insert(const Key& key, std::span<const TokenId> ids) {
    Entry& entry = set_of(key)[1];
    entry.key = key;
    entry.count = static_cast<uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), entry.ids.begin());
  }

 private:
#ifdef INGOT_FUZZ
  // A fuzz target makes a cache for each input, and the address sanitizer marks all of its memory; pieces that push
  // others out are tested too.
  static constexpr int kSetBits = 2;
#else
  static constexpr int kSetBits = 16;  // 8 MiB, touched as used: a fifth faster than 4 MiB (BM_Encode)
#endif

  // The bytes that lie in the lowest `bits` bits of a little-endian word (in memory order, on any machine).
  static uint64_t low_bits(int bits) {
    if (bits >= 64) return ~uint64_t{0};
    if (bits <= 0) return 0;
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    return std::endian::native == std::endian::little ? mask : ~(~uint64_t{0} >> bits);
  }
  static Entry* align(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    size_t space = kBytes + alignof(Entry);
    return static_cast<Entry*>(std::align(alignof(Entry), kBytes, memory, space));
  }
  Entry* set_of(const Key& key) {
    uint64_t hash = key.words[0] * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 29 ^ key.words[1]) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ hash >> 32 ^ key.words[2]) * 0x94D049BB133111EBu;
    hash = (hash ^ hash >> 29 ^ key.words[3]) * 0x9E3779B97F4A7C15u;
    return &entries_[(hash >> (64 - kSetBits)) * 2];
  }
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  static constexpr size_t kBytes = (size_t{2} << kSetBits) * sizeof(Entry);

  // From calloc, which gives pages that are zero without touching them.
  std::unique_ptr<void, Free> memory_{std::calloc(1, kBytes + alignof(Entry))};
  Entry* entries_ = align(memory_.get());
};

}  // namespace ingot
