#include "text/precompiled_map.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "text/utf8.h"

namespace ingot {
namespace {

constexpr size_t kLongestCluster = 5;  // bytes that are looked up as one
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

uint32_t read_u32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

// The units of the double array, as Darts-clone packs them.
uint32_t label_of(uint32_t unit) {
  return unit & (uint32_t{1} << 31 | 0xFF);
}
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & (uint32_t{1} << 9)) >> 6);
}
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t value_of(uint32_t unit) {
  return unit & ((uint32_t{1} << 31) - 1);
}

}  // namespace

Result<PrecompiledMap> PrecompiledMap::read(std::string_view bytes) {
  if (bytes.size() < 4) return input_error("expected at least 4 bytes of rules, found {}", bytes.size());
  const size_t size = read_u32(bytes);
  if (size % 4 != 0 || size == 0 || size > bytes.size() - 4) {
    return input_error(
        "its first 4 bytes say that {} bytes of an array of 32-bit units follow, which {} bytes do not hold", size,
        bytes.size());
  }
  auto rules = std::make_shared<Rules>();
  rules->units.resize(size / 4);
  for (size_t i = 0; i < rules->units.size(); ++i) rules->units[i] = read_u32(bytes.substr(4 + 4 * i));
  rules->replacements = bytes.substr(4 + size);
  if (valid_utf8_end(rules->replacements, 0) != rules->replacements.size())
    return input_error("its replacements are not valid UTF-8");
  PrecompiledMap map;
  map.rules_ = std::move(rules);
  return map;
}

template <class F>
void PrecompiledMap::prefixes(std::string_view text, F&& found) const {
  const std::vector<uint32_t>& units = rules_->units;
  const std::string& replacements = rules_->replacements;
  uint32_t at = offset_of(units[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) return;
    at ^= byte;
    if (at >= units.size() || label_of(units[at]) != byte) return;
    const bool leaf = has_leaf(units[at]);
    at ^= offset_of(units[at]);
    if (!leaf) continue;
    const uint32_t begin = at < units.size() ? value_of(units[at]) : UINT32_MAX;
    if (begin >= replacements.size()) return;
    const char* replacement = replacements.data() + begin;
    if (!found(i + 1, std::string_view(replacement, std::strlen(replacement)))) return;  // std::string ends with a zero
  }
}

std::string_view PrecompiledMap::find(std::string_view text) const {
  std::string_view shortest;
  prefixes(text, [&](size_t, std::string_view replacement) {
    shortest = replacement;
    return false;
  });
  return shortest;
}

std::pair<size_t, std::string_view> PrecompiledMap::longest_at(std::string_view text) const {
  std::pair<size_t, std::string_view> longest;
  prefixes(text, [&](size_t size, std::string_view replacement) {
    longest = {size, replacement};
    return true;
  });
  return longest;
}

size_t PrecompiledMap::longest() const {
  size_t longest = 0, begin = 0;
  const std::string& all = rules_->replacements;
  while (begin < all.size()) {
    const size_t end = std::min(all.find('\0', begin), all.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

void PrecompiledMap::apply_to_cluster(std::string_view cluster, std::string& out) const {
  if (cluster.size() <= kLongestCluster) {
    if (const std::string_view whole = find(cluster); whole.data() != nullptr) {
      out += whole;
      return;
    }
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(cluster.data());
  for (size_t begin = 0; begin < cluster.size();) {
    const size_t size = decode_utf8(bytes + begin, bytes + cluster.size()).size;
    const std::string_view character = cluster.substr(begin, size), other = find(character);
    out += other.data() != nullptr ? other : character;
    begin += size;
  }
}

std::string PrecompiledMap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = valid_utf8_end(text, begin);
    utf8proc_int32_t state = 0;
    for (size_t cluster = begin; begin < end;) {
      const Utf8Char c = decode_utf8(bytes + begin, bytes + end);
      begin += c.size;
      if (begin < end) {
        const Utf8Char next = decode_utf8(bytes + begin, bytes + end);
        if (!utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code),
                                              static_cast<utf8proc_int32_t>(next.code), &state))
          continue;
      }
      apply_to_cluster(text.substr(cluster, begin - cluster), out);
      cluster = begin;
    }
    const size_t invalid = invalid_utf8_end(text, begin);
    out.append(text, begin, invalid - begin);
    begin = invalid;
  }
  return out;
}

Result<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return input_error("base64 comes in fours of characters, found {}", text.size());
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::array<int8_t, 256> values;
  values.fill(-1);
  for (size_t i = 0; i < kBase64.size(); ++i) values[static_cast<unsigned char>(kBase64[i])] = static_cast<int8_t>(i);
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool pad = i >= text.size() - padding;
    const int value = pad ? 0 : values[static_cast<unsigned char>(text[i])];
    if (value < 0) return input_error("the byte at {} is no base64", i);
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<char>(bits >> shift));
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace ingot
