#include "text/unigram_model.h"

#include <algorithm>

#include "text/utf8.h"

namespace ingot {
namespace {

constexpr double kUnknownPenalty = 10;
constexpr size_t kMostAtOnce = size_t{1} << 24;  // a path of 256 MiB; longer pieces are cut between characters

using PathNode = ModelScratch::PathNode;

}  // namespace

UnigramModel::UnigramModel(const std::vector<std::pair<std::string_view, TokenId>>& tokens, std::vector<double> scores,
                           double lowest_score, const std::array<TokenId, 256>& byte_tokens, Options options)
    : options_(options),
      trie_(tokens),
      scores_(std::move(scores)),
      unknown_score_(options.float_sums ? static_cast<float>(lowest_score - kUnknownPenalty)
                                        : lowest_score - kUnknownPenalty),
      byte_tokens_(byte_tokens) {}

// path[i]: the best way to reach byte i.
void UnigramModel::find_best_path(std::string_view piece, std::vector<PathNode>& path) const {
  path.assign(piece.size() + 1, {0, ModelScratch::kNoStart, kNoToken});
  const auto* bytes = reinterpret_cast<const unsigned char*>(piece.data());
  for (size_t begin = 0; begin < piece.size();) {
    const double so_far = path[begin].score;
    const auto rounded = [&](double sum) { return options_.float_sums ? static_cast<float>(sum) : sum; };
    const auto offer = [&](size_t size, double sum, TokenId id) {
      PathNode& node = path[begin + size];
      if (node.start == ModelScratch::kNoStart || sum > node.score)
        node = {rounded(sum), static_cast<uint32_t>(begin), id};
    };
    // An invalid byte is a character of its own.
    const size_t size = std::max<size_t>(decode_utf8(bytes + begin, bytes + piece.size()).size, 1);
    bool known = false;
    trie_.prefixes(piece.substr(begin), [&](size_t length, TokenId id) {
      offer(length, so_far + scores_[static_cast<size_t>(id)], id);
      known = known || length == size;
    });
    if (!known) offer(size, rounded(so_far + unknown_score_), options_.unk);
    begin += size;
  }
}

void UnigramModel::add_unknown(std::string_view text, std::vector<TokenId>& out) const {
  const auto byte_token = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (options_.byte_fallback &&
      std::all_of(text.begin(), text.end(), [&](char c) { return byte_token(c) != kNoToken; })) {
    for (const char c : text) out.push_back(byte_token(c));
  } else if (options_.unk != kNoToken) {
    out.push_back(options_.unk);
  }
}

void UnigramModel::encode(std::string_view piece, ModelScratch& scratch, std::vector<TokenId>& out) const {
  while (!piece.empty()) {
    std::string_view part = piece;
    if (part.size() > kMostAtOnce) part = part.substr(0, closed_utf8_prefix(part.substr(0, kMostAtOnce)));
    piece.remove_prefix(part.size());
    find_best_path(part, scratch.path);
    auto& steps = scratch.steps;  // where the tokens of the best path begin, last first
    steps.clear();
    for (auto end = static_cast<uint32_t>(part.size()); end > 0; end = scratch.path[end].start) steps.push_back(end);
    size_t unknown_begin = 0;
    bool in_unknown = false;
    const auto end_unknown = [&](size_t at) {
      if (in_unknown) add_unknown(part.substr(unknown_begin, at - unknown_begin), out);
      in_unknown = false;
    };
    for (size_t i = steps.size(); i-- > 0;) {
      const PathNode& node = scratch.path[steps[i]];
      if (node.id == options_.unk) {
        if (!in_unknown) unknown_begin = node.start;
        in_unknown = true;
        continue;
      }
      end_unknown(node.start);
      out.push_back(node.id);
    }
    end_unknown(part.size());
  }
}

}  // namespace ingot
