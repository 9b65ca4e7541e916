// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
// A number depends on its key and counter alone, never on the thread, order or rank that asks for it.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace ingot {

using PhiloxBlock = std::array<uint32_t, 4>;

// Four independent 32-bit words for a 64-bit key and a 128-bit counter (given as two 64-bit halves).
constexpr PhiloxBlock philox(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  PhiloxBlock c{static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0], p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// Uniform in [0, 1) with 24 bits.
constexpr float uniform_from_bits(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// The key of a stream of random numbers: the run's seed and the stable path of what draws
// ("model.layers.3.attn.dropout").
constexpr uint64_t stream_key(uint64_t seed, std::string_view path) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (char c : path) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  hash ^= seed * 0x9E3779B97F4A7C15u;  // then splitmix64's finalizer
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9u;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBu;
  return hash ^ (hash >> 31);
}

// The standard normal number at `index` of a stream (Box and Muller's transform of the upper 24 bits of two words; each
// block gives two pairs). Tensors are filled by kernels/random/normal.h.
inline double normal_at(uint64_t key, uint64_t index) {
  const PhiloxBlock block = philox(key, index / 4);
  const size_t pair = index % 4 / 2 * 2;
  const double u = ((block[pair] >> 8) + 1.0) * 0x1p-24, angle = 6.283185307179586 * ((block[pair + 1] >> 8) * 0x1p-24);
  const double radius = std::sqrt(-2.0 * std::log(u));
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// A uniform integer in [0, bound), bound > 0, without modulo bias worth speaking of (128-bit multiply of 64 random
// bits).
constexpr uint64_t bounded_at(uint64_t key, uint64_t index, uint64_t bound) {
  const PhiloxBlock block = philox(key, index, 1);
  const uint64_t bits = (static_cast<uint64_t>(block[1]) << 32) | block[0];
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

}  // namespace ingot
