#include "infer/likelihood.h"

#include <algorithm>
#include <array>

#include "infer/generator.h"
#include "kernels/softmax/cross_entropy.h"

namespace ingot {
namespace {

// Prefixes go in batches of the first lengths, endings, of which every token's logits are wanted, of the second: few
// programs, and logits of a bounded size.
constexpr std::array<int64_t, 3> kPrefixTokens = {16, 64, 256};
constexpr std::array<int64_t, 2> kEndingTokens = {1, 16};

template <size_t n>
int64_t smallest_for(int64_t tokens, const std::array<int64_t, n>& lengths) {
  const auto found = std::ranges::lower_bound(lengths, tokens);
  return found == lengths.end() ? lengths.back() : *found;
}

size_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

ConstTensorView view_of(const std::vector<int32_t>& values, const Shape& shape) {
  return {reinterpret_cast<const std::byte*>(values.data()), DType::i32, shape};
}

}  // namespace

int64_t EndingGroup::tokens() const {
  size_t longest = 0;
  for (const Ending& ending : endings) longest = std::max(longest, ending.ids.size());
  return static_cast<int64_t>(prefix.size() + longest) - 1;
}

EndingGroup group_of(std::span<const std::vector<int32_t>> sequences, std::span<const int64_t> first) {
  INGOT_CHECK(!sequences.empty() && sequences.size() == first.size(), "{} sequences, {} beginnings", sequences.size(),
              first.size());
  auto shared = static_cast<size_t>(*std::ranges::min_element(first)) - 1;
  for (const auto& sequence : sequences) shared = std::min(shared, common_prefix(sequence, sequences.front()));
  const auto split = static_cast<std::ptrdiff_t>(shared);
  EndingGroup group;
  group.prefix.assign(sequences.front().begin(), sequences.front().begin() + split);
  for (size_t i = 0; i < sequences.size(); ++i)
    group.endings.push_back({{sequences[i].begin() + split, sequences[i].end()}, first[i] - split});
  return group;
}

// What a row reads behind its prefix, and the endings that it decides: those that differ in their last token alone
// share it.
struct LikelihoodScorer::Branch {
  size_t group = 0;
  int64_t start = 0;
  std::span<const int32_t> inputs;
  std::vector<size_t> endings;
  std::vector<std::span<const int32_t>> targets;  // of each ending, as long as inputs
  std::vector<int64_t> first;                     // of each: the first target that counts
};

// One run of branches: `tokens` of each, behind the `done` first ones.
struct LikelihoodScorer::Step {
  size_t done = 0;
  int64_t tokens = 1;

  std::span<const int32_t> part_of(std::span<const int32_t> ids) const {
    const size_t begin = std::min(done, ids.size());
    return ids.subspan(begin, std::min(static_cast<size_t>(tokens), ids.size() - begin));
  }
};

Result<std::unique_ptr<LikelihoodScorer>> LikelihoodScorer::create(const Model& model, int64_t rows, int64_t tokens,
                                                                   const ThreadPool& pool,
                                                                   const MixedPrecision& precision) {
  INGOT_CHECK(rows >= 1 && tokens >= 1, "a scorer of {} rows of {} tokens", rows, tokens);
  INGOT_TRY(model.check_length(tokens, "scoring"));
  std::unique_ptr<LikelihoodScorer> scorer(new LikelihoodScorer(model, rows, pool));
  scorer->passes_.precision = precision;
  scorer->tokens_ = tokens;
  // Behind the last token there is room for the padding of the run that reads it.
  scorer->capacity_ = tokens + smallest_for(tokens, kPrefixTokens);
  INGOT_ASSIGN(Graph graph, scorer->graph_of(1, true));
  add_variables_of(graph, scorer->variables_);
  INGOT_ASSIGN(auto program, Program::create(std::move(graph), scorer->variables_, pool.threads()));
  INGOT_ASSIGN(Arena arena, make_arena(scorer->variables_, *program, pool));
  scorer->arena_ = std::make_unique<Arena>(std::move(arena));
  scorer->programs_.push_back({1, true, std::move(program)});
  return scorer;
}

Result<Graph> LikelihoodScorer::graph_of(int64_t tokens, bool all_logits) {
  CachedBuildOptions options;
  options.batch = rows_;
  options.tokens = tokens;
  options.capacity = capacity_;
  options.all_logits = all_logits;
  return generation_graph(model_, options, WeightFormat::fp32, passes_);
}

Result<const Program*> LikelihoodScorer::program(int64_t tokens, bool all_logits) {
  for (const Entry& entry : programs_)
    if (entry.tokens == tokens && entry.all_logits == all_logits)
      return static_cast<const Program*>(entry.program.get());
  INGOT_ASSIGN(Graph graph, graph_of(tokens, all_logits));
  INGOT_ASSIGN(auto program, Program::create(std::move(graph), variables_, pool_.threads()));
  INGOT_TRY(arena_->reserve(program->plan().workspace_bytes, program->scratch_bytes(), pool_));
  programs_.push_back({tokens, all_logits, std::move(program)});
  return static_cast<const Program*>(programs_.back().program.get());
}

Status LikelihoodScorer::check(std::span<const EndingGroup> groups) const {
  INGOT_CHECK(static_cast<int64_t>(groups.size()) <= rows_, "{} groups for {} rows", groups.size(), rows_);
  const auto check_ids = [&](std::span<const int32_t> ids) -> Status {
    for (const int32_t id : ids)
      if (id < 0 || id >= model_.config().vocab_size)
        return input_error(
            "the token {} is outside the model's vocabulary of {}: tokenizer and model do not belong together", id,
            model_.config().vocab_size);
    return {};
  };
  for (const EndingGroup& group : groups) {
    INGOT_CHECK(group.tokens() <= tokens_, "{} tokens for a scorer of {}", group.tokens(), tokens_);
    INGOT_TRY(check_ids(group.prefix));
    for (const Ending& ending : group.endings) {
      INGOT_CHECK(ending.first >= 1 && ending.first < static_cast<int64_t>(ending.ids.size()),
                  "an ending of {} tokens, predicted from {} on", ending.ids.size(), ending.first);
      INGOT_TRY(check_ids(ending.ids));
    }
  }
  return {};
}

// What padding leaves in the caches lies behind the tokens that count there, is never seen and written over later.
Status LikelihoodScorer::run(const Program& program, int64_t tokens, std::span<const Piece> pieces) {
  const auto total = static_cast<size_t>(rows_ * tokens);
  ids_.assign(total, 0);
  positions_.assign(total, 0);
  starts_.assign(static_cast<size_t>(rows_), 0);
  for (size_t row = 0; row < pieces.size(); ++row) {
    const Piece& piece = pieces[row];
    const auto length = static_cast<int64_t>(piece.ids.size());
    const size_t begin = row * static_cast<size_t>(tokens);
    std::ranges::copy(piece.ids, ids_.begin() + static_cast<std::ptrdiff_t>(begin));
    const int64_t last = std::max<int64_t>(0, piece.start + length - 1);
    for (int64_t t = 0; t < tokens; ++t)
      positions_[begin + static_cast<size_t>(t)] = static_cast<int32_t>(std::min(piece.start + t, last));
    starts_[row] = static_cast<int32_t>(piece.start);
  }
  const Shape shape{rows_, tokens};
  const std::array<ProgramInput, 3> inputs{
      {{"ids", view_of(ids_, shape)}, {"positions", view_of(positions_, shape)}, {"start", view_of(starts_, {rows_})}}};
  return program.run(*arena_, pool_, inputs, {});
}

// Brings every row's cache to its group's prefix.
Status LikelihoodScorer::read_prefixes(std::span<const EndingGroup> groups) {
  std::vector<Piece> pieces(static_cast<size_t>(rows_));
  std::vector<std::span<const int32_t>> left(groups.size());
  for (size_t row = 0; row < cached_.size(); ++row) {
    if (row < groups.size()) {
      const std::span<const int32_t> prefix = groups[row].prefix;
      cached_[row].resize(common_prefix(cached_[row], prefix));
      left[row] = prefix.subspan(cached_[row].size());
    }
    pieces[row].start = static_cast<int64_t>(cached_[row].size());
  }
  for (;;) {
    size_t longest = 0;
    for (const auto& rest : left) longest = std::max(longest, rest.size());
    if (longest == 0) return {};
    const int64_t tokens = smallest_for(static_cast<int64_t>(longest), kPrefixTokens);
    for (size_t row = 0; row < groups.size(); ++row)
      pieces[row].ids = left[row].first(std::min(left[row].size(), static_cast<size_t>(tokens)));
    INGOT_ASSIGN(const Program* reader, program(tokens, false));
    INGOT_TRY(run(*reader, tokens, pieces));
    for (size_t row = 0; row < groups.size(); ++row) {
      const auto read = pieces[row].ids;
      cached_[row].insert(cached_[row].end(), read.begin(), read.end());
      pieces[row].start += static_cast<int64_t>(read.size());
      left[row] = left[row].subspan(read.size());
    }
  }
}

// Adds what the step's logits say of ending number `e` of each branch.
void LikelihoodScorer::add_ending(std::span<const Branch* const> branches, const Step& step, size_t e,
                                  ConstTensorView logits, std::vector<std::vector<double>>& result) {
  const auto tokens = static_cast<size_t>(step.tokens);
  targets_.assign(static_cast<size_t>(rows_) * tokens, kernels::kIgnoredTarget);
  losses_.assign(targets_.size(), 0.0f);
  const auto has_ending = [&](size_t row) { return branches[row] != nullptr && e < branches[row]->endings.size(); };
  for (size_t row = 0; row < branches.size(); ++row) {
    if (!has_ending(row)) continue;
    const std::span<const int32_t> targets = step.part_of(branches[row]->targets[e]);
    for (size_t t = 0; t < targets.size(); ++t)
      if (static_cast<int64_t>(step.done + t) >= branches[row]->first[e]) targets_[row * tokens + t] = targets[t];
  }
  kernels::CrossEntropy args;
  args.logits = logits.as<float>();
  args.vocab = args.stride = model_.config().vocab_size;
  args.targets = targets_.data();
  args.loss = losses_.data();
  pool_.run(rows_ * step.tokens, [&](int64_t row, int) { kernels::cross_entropy(args, row, row + 1); });
  for (size_t row = 0; row < branches.size(); ++row) {
    if (!has_ending(row)) continue;
    double& sum = result[branches[row]->group][branches[row]->endings[e]];
    for (size_t t = 0; t < tokens; ++t) sum -= static_cast<double>(losses_[row * tokens + t]);
  }
}

// One branch a row (null: the row has none) of the groups whose prefixes the caches hold.
Status LikelihoodScorer::score_branches(std::span<const Branch* const> branches,
                                        std::vector<std::vector<double>>& result) {
  std::vector<Piece> pieces(static_cast<size_t>(rows_));
  for (size_t row = 0; row < cached_.size(); ++row) pieces[row].start = static_cast<int64_t>(cached_[row].size());
  size_t longest = 0, most_endings = 0;
  for (const Branch* branch : branches) {
    if (branch == nullptr) continue;
    longest = std::max(longest, branch->inputs.size());
    most_endings = std::max(most_endings, branch->endings.size());
  }
  for (Step step; step.done < longest; step.done += static_cast<size_t>(step.tokens)) {
    step.tokens = smallest_for(static_cast<int64_t>(longest - step.done), kEndingTokens);
    for (size_t row = 0; row < branches.size(); ++row) {
      if (branches[row] == nullptr) continue;
      const std::span<const int32_t> inputs = branches[row]->inputs;
      pieces[row] = {step.part_of(inputs),
                     branches[row]->start + static_cast<int64_t>(std::min(step.done, inputs.size()))};
    }
    INGOT_ASSIGN(const Program* scorer, program(step.tokens, true));
    INGOT_TRY(run(*scorer, step.tokens, pieces));
    const ConstTensorView logits = scorer->output(*arena_, "logits");
    for (size_t e = 0; e < most_endings; ++e) add_ending(branches, step, e, logits, result);
  }
  return {};
}

// The group's branches, in the order in which their first endings stand.
std::vector<LikelihoodScorer::Branch> LikelihoodScorer::branches_of(const EndingGroup& group, size_t number) {
  std::vector<Branch> branches;
  for (size_t e = 0; e < group.endings.size(); ++e) {
    const std::span<const int32_t> ids = group.endings[e].ids, inputs = ids.first(ids.size() - 1);
    auto branch =
        std::ranges::find_if(branches, [&](const Branch& other) { return std::ranges::equal(other.inputs, inputs); });
    if (branch == branches.end()) {
      branches.emplace_back();
      branch = branches.end() - 1;
      branch->group = number;
      branch->start = static_cast<int64_t>(group.prefix.size());
      branch->inputs = inputs;
    }
    branch->endings.push_back(e);
    branch->targets.push_back(ids.subspan(1));
    branch->first.push_back(group.endings[e].first - 1);
  }
  return branches;
}

Result<std::vector<std::vector<double>>> LikelihoodScorer::score(std::span<const EndingGroup> groups) {
  INGOT_TRY(check(groups));
  INGOT_TRY(read_prefixes(groups));
  std::vector<std::vector<double>> result;
  std::vector<std::vector<Branch>> branches;
  size_t most = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    result.emplace_back(groups[g].endings.size(), 0.0);
    branches.push_back(branches_of(groups[g], g));
    most = std::max(most, branches.back().size());
  }
  for (size_t b = 0; b < most; ++b) {
    std::vector<const Branch*> now;
    for (const auto& of_group : branches) now.push_back(b < of_group.size() ? &of_group[b] : nullptr);
    INGOT_TRY(score_branches(now, result));
  }
  return result;
}

}  // namespace ingot
