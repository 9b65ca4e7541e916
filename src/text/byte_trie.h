// ByteTrie: finds all strings of a set that a text begins with, in one walk.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace ingot {

// Immutable, thread-safe. Memory and time to build are linear in the strings' bytes (and their order's n log n).
class ByteTrie {
 public:
  ByteTrie() = default;
  // Of equal strings the first counts; empty ones do not. The strings are not kept.
  explicit ByteTrie(std::vector<std::pair<std::string_view, TokenId>> entries);

  // The strings' bytes that there may be together: a node takes 13 bytes, real vocabularies have a few megabytes.
  static constexpr size_t kMostBytes = size_t{1} << 26;

  static constexpr uint32_t kRoot = 0, kNowhere = UINT32_MAX;
  // The node that `byte` leads to from `node`, or kNowhere.
  uint32_t next(uint32_t node, unsigned char byte) const {
    if (node == kRoot) return first_[byte];
    const Node& from = nodes_[node];
    for (uint32_t child = from.children; child != from.children_end; ++child) {
      if (labels_[child] >= byte) return labels_[child] == byte ? child : kNowhere;
    }
    return kNowhere;
  }
  // The string that ends at a node other than the root, kNoToken where none does.
  TokenId token(uint32_t node) const { return nodes_[node].token; }

  // Calls found(length, id) for each string that text begins with, shortest first.
  template <class F>
  void prefixes(std::string_view text, F&& found) const {
    uint32_t node = kRoot;
    for (size_t i = 0; i < text.size(); ++i) {
      node = next(node, static_cast<unsigned char>(text[i]));
      if (node == kNowhere) return;
      if (nodes_[node].token != kNoToken) found(i + 1, nodes_[node].token);
    }
  }

 private:
  struct Node {
    uint32_t children = 0, children_end = 0;  // side by side, ascending by label
    TokenId token = kNoToken;
  };
  static constexpr std::array<uint32_t, 256> nowhere() {
    std::array<uint32_t, 256> all{};
    all.fill(kNowhere);
    return all;
  }
  std::vector<Node> nodes_{1};
  std::vector<unsigned char> labels_{0};  // by node: the byte that leads to it
  std::array<uint32_t, 256> first_ = nowhere();
};

}  // namespace ingot
