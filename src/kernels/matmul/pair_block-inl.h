// The text of PairBlock's functions (pair_block.h), over a policy that knows one instruction set. It is included inside
// that set's namespace and under its target attributes, so it has neither a guard nor includes of its own; needed are
// pair_block.h, panels.h, <algorithm>, <array> and <utility>.
//
// Policy: kLanes (of fp32), kGroupRows, Sum (a vector of fp32), zero(), load_sum(const float*), store(Sum, float*),
// store_rounded(Sum, uint16_t*): to bf16; add(Sum, Sum); load(const uint32_t*): kLanes columns' pairs;
// broadcast(uint32_t): one pair for all columns; zip(even row, odd row, uint32_t*): pairs of kPanelColumns; dot(Sum,
// pair, pairs): the sum plus both products of each lane.

// One row of a block: its sums go where they belong.
template <class Policy>
[[gnu::always_inline]] inline void finish_pair_row(typename Policy::Sum left, typename Policy::Sum right,
                                                   const BlockTarget& target, int64_t i) {
  constexpr int kLanes = Policy::kLanes;
  float* row = target.c + i * target.ldc;
  if (target.accumulate) {
    left = Policy::add(Policy::load_sum(row), left);
    right = Policy::add(Policy::load_sum(row + kLanes), right);
  }
  if (target.rounded == nullptr) {
    Policy::store(left, row);
    Policy::store(right, row + kLanes);
    return;
  }
  uint16_t* rounded = target.rounded + i * target.rounded_stride;
  Policy::store_rounded(left, rounded);
  Policy::store_rounded(right, rounded + kLanes);
}

// The same for `rows` rows of some of the columns, whose sums lie side by side. Apart from the block: sums that live
// across a call would be in memory there all the time.
template <class Policy>
[[gnu::noinline]] void finish_part(int rows, const float* sums, const BlockTarget& target, int64_t columns) {
  constexpr int kLanes = Policy::kLanes, kWidth = 2 * kLanes;
  float row[kWidth] = {};
  uint16_t rounded[kWidth];
  for (int i = 0; i < rows; ++i, sums += kWidth) {
    if (target.accumulate) std::copy_n(target.c + i * target.ldc, columns, row);
    finish_pair_row<Policy>(Policy::load_sum(sums), Policy::load_sum(sums + kLanes),
                            {row, 0, target.accumulate, target.rounded == nullptr ? nullptr : rounded, 0}, 0);
    if (target.rounded == nullptr)
      std::copy_n(row, columns, target.c + i * target.ldc);
    else
      std::copy_n(rounded, columns, target.rounded + i * target.rounded_stride);
  }
}

template <class Policy, int kRows>
[[gnu::noinline]] void pair_block(int64_t steps, const std::byte* a, int64_t row_bytes, int64_t step_bytes,
                                  const uint32_t* __restrict b, const BlockTarget& target, int64_t columns,
                                  const Meanwhile& beside) {
  constexpr int kLanes = Policy::kLanes, kWidth = 2 * kLanes;
  typename Policy::Sum left[kRows], right[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) left[i] = right[i] = Policy::zero();
  RowAddresses<kRows> rows(a, row_bytes, step_bytes);
  const auto add_step = [&](int64_t p) __attribute__((always_inline)) {
    const auto b_left = Policy::load(b + p * kPanelColumns), b_right = Policy::load(b + p * kPanelColumns + kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const auto factor = Policy::broadcast(rows.template word<uint32_t>(i));
      left[i] = Policy::dot(left[i], factor, b_left);
      right[i] = Policy::dot(right[i], factor, b_right);
    }
    rows.advance();
  };
  const auto pack = [](const PanelAhead& step) __attribute__((always_inline)) {
    Policy::zip(reinterpret_cast<const uint16_t*>(step.from), reinterpret_cast<const uint16_t*>(step.from + step.row),
                reinterpret_cast<uint32_t*>(step.to));
  };
  Meanwhile meanwhile = beside;
  meanwhile.c = target.written(kRows, kWidth);
  const int64_t late = Meanwhile::late_from(steps, kRows);
  int64_t p = 0;
  for (; p + kStepsATurn <= steps; p += kStepsATurn) {
    meanwhile.turn(p >= late);
    if (meanwhile.panel.steps > 0) pack(meanwhile.panel.take(2));
#pragma GCC unroll 4
    for (int64_t i = 0; i < kStepsATurn; ++i) add_step(p + i);
  }
  for (; p < steps; ++p) add_step(p);
  while (meanwhile.panel.steps > 0) pack(meanwhile.panel.take(2));
  if (columns == kWidth) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) finish_pair_row<Policy>(left[i], right[i], target, i);
    return;
  }
  alignas(64) float sums[kRows * kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    Policy::store(left[i], sums + i * kWidth);
    Policy::store(right[i], sums + i * kWidth + kLanes);
  }
  finish_part<Policy>(kRows, sums, target, columns);
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
