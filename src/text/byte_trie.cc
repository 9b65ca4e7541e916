#include "text/byte_trie.h"

#include <algorithm>

namespace ingot {

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, TokenId>> entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  struct Open {
    uint32_t node;
    size_t begin, end;  // of the entries below it
  };
  // Level by level, so that the children of a node lie side by side.
  std::vector<Open> level{{kRoot, 0, entries.size()}}, below;
  for (size_t depth = 0; !level.empty(); ++depth) {
    below.clear();
    for (Open open : level) {
      while (open.begin < open.end && entries[open.begin].first.size() == depth) {  // the shortest stand first
        TokenId& token = nodes_[open.node].token;
        if (token == kNoToken && depth > 0) token = entries[open.begin].second;
        ++open.begin;
      }
      nodes_[open.node].children = static_cast<uint32_t>(nodes_.size());
      for (size_t begin = open.begin; begin < open.end;) {
        const auto label = static_cast<unsigned char>(entries[begin].first[depth]);
        size_t end = begin + 1;
        while (end < open.end && static_cast<unsigned char>(entries[end].first[depth]) == label) ++end;
        const auto child = static_cast<uint32_t>(nodes_.size());
        nodes_.emplace_back();
        labels_.push_back(label);
        if (open.node == kRoot) first_[label] = child;
        below.push_back({child, begin, end});
        begin = end;
      }
      nodes_[open.node].children_end = static_cast<uint32_t>(nodes_.size());
    }
    level.swap(below);
  }
}

}  // namespace ingot
