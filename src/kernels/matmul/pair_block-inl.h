// The text of PairBlock's functions (pair_block.h), over a policy that knows one instruction set. It is included inside
// that set's namespace and under its target attributes, so it has neither a guard nor includes of its own; needed are
// pair_block.h, panels.h, <algorithm>, <array> and <utility>.
//
// Policy: kLanes (of fp32), kGroupRows, Sum (a vector of fp32), zero(), load_sum(const float*), store(Sum, float*),
// add(Sum, Sum); load(const uint32_t*): kLanes columns' pairs; broadcast(uint32_t): one pair for all columns;
// dot(Sum, pair, pairs): the sum plus both products of each lane.

template <class Policy, int kRows>
[[gnu::noinline]] void pair_block(int64_t steps, const uint32_t* __restrict a, const uint32_t* __restrict b,
                                  float* __restrict c, int64_t ldc, int64_t columns, bool accumulate,
                                  Lookahead* ahead) {
  constexpr int kLanes = Policy::kLanes, kWidth = 2 * kLanes;
  typename Policy::Sum left[kRows], right[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    __builtin_prefetch(c + i * ldc, 1);
    if (kLanes == 16) __builtin_prefetch(c + i * ldc + kLanes, 1);
    left[i] = right[i] = Policy::zero();
  }
  for (int64_t begin = 0; begin < steps; begin += kGemmChunk) {
    ahead->ask();
    const int64_t end = std::min(steps, begin + kGemmChunk);
    for (int64_t p = begin; p < end; ++p) {
      const auto b_left = Policy::load(b + p * kPanelColumns), b_right = Policy::load(b + p * kPanelColumns + kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const auto factor = Policy::broadcast(a[p * Policy::kGroupRows + i]);
        left[i] = Policy::dot(left[i], factor, b_left);
        right[i] = Policy::dot(right[i], factor, b_right);
      }
    }
  }
  if (columns == kWidth) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      float* row = c + i * ldc;
      if (accumulate) {
        left[i] = Policy::add(Policy::load_sum(row), left[i]);
        right[i] = Policy::add(Policy::load_sum(row + kLanes), right[i]);
      }
      Policy::store(left[i], row);
      Policy::store(right[i], row + kLanes);
    }
    return;
  }
  float buffer[kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    Policy::store(left[i], buffer);
    Policy::store(right[i], buffer + kLanes);
    float* row = c + i * ldc;
    for (int64_t j = 0; j < columns; ++j) row[j] = accumulate ? row[j] + buffer[j] : buffer[j];
  }
}

template <class Policy, int... kIndex>
constexpr std::array<PairBlock, sizeof...(kIndex)> pair_blocks(std::integer_sequence<int, kIndex...>) {
  return {pair_block<Policy, kIndex + 1>...};
}

// The block for so many rows of a group.
template <class Policy>
PairBlock pair_block_of(int64_t rows) {
  static constexpr auto kBlocks = pair_blocks<Policy>(std::make_integer_sequence<int, Policy::kGroupRows>());
  return kBlocks[static_cast<size_t>(rows - 1)];
}
