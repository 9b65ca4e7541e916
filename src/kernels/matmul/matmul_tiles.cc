#include "kernels/matmul/matmul_tiles.h"

#include <array>
#include <bit>
#include <utility>

#include "kernels/instruction_set.h"
#include "kernels/matmul/pair_block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/matmul_tiles.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/matmul/few_rows-inl.h"
#include "kernels/matmul/gemm-inl.h"
#include "kernels/matmul/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

// One thread's memory, in the order in which a tile's operands need it.
struct TileScratch {
  float *panel, *next_panel;  // [steps of a block of k, kPanelColumns]
  float* block;               // A's block of k: rows, or groups of rows
  float* lines;               // of 16-bit operands and of A transposed: what they are turned in

  void swap_panels() { std::swap(panel, next_panel); }
};
HWY_INLINE TileScratch scratch_of(const MatmulTile& tile, float* scratch) {
  const int64_t panel = panel_words(tile.k);
  float* block = scratch + 2 * panel;
  return {scratch, scratch + panel, block, block + block_words(tile.rows, tile.k)};
}

// A's part of some steps from begin, in memory: lines side by side in rows.
struct MemoryOfA {
  const std::byte* at = nullptr;
  int64_t rows = 0, lines = 0, stride = 0;
};
// Nothing beyond the end, of products so shallow (attention) that A is in cache anyway, and where packing A asks for
// it.
HWY_INLINE MemoryOfA memory_of_a(const MatmulTile& tile, int64_t begin, int64_t depth) {
  constexpr int64_t kShallow = 256;
  if (begin >= tile.k || tile.k <= kShallow || tile.transpose_a) return {};
  const auto size = static_cast<int64_t>(size_of(tile.a_dtype));
  const auto* a = static_cast<const std::byte*>(tile.a);
  depth = std::min(depth, tile.k - begin);
  return {a + begin * size, tile.rows, (depth * size + Lines::kBytes - 1) / Lines::kBytes, tile.lda * size};
}

// B's rows in memory, `bytes` of each, as they become a panel's steps: `rows` of them a step.
struct PanelRows {
  const std::byte* at = nullptr;
  int64_t stride = 0;  // bytes between rows
  int64_t rows = 1, bytes = 0;
};

// What the blocks of a tile do beside their products, one after another, in a block of k: they ask for A's next block
// of k, line by line of all its rows, since no hardware follows rows that lie pages apart; and for the next panel of B,
// where panels lie in memory. Else they pack it, each block a part, and ask for the rows that the block after will
// pack.
class ReadAhead {
 public:
  // steps: words of four bytes along k that a block multiplies, each a line of a panel's step.
  HWY_INLINE ReadAhead(const MatmulTile& tile, int64_t begin, int64_t depth, int64_t steps)
      : next_a_(memory_of_a(tile, begin + depth, depth)),
        steps_(steps),
        blocks_(RowGroups(tile.rows).count * (kPanelColumns / kGemmWidth)) {
    if (begin == 0) ask_for_first_rows(memory_of_a(tile, begin, depth));
  }
  // Null where there is none.
  HWY_INLINE void next_panel(const void* panel) {
    b_ = {static_cast<const std::byte*>(panel), Lines::kBytes,
          panel == nullptr ? 0 : steps_ * kPanelColumns * BlockRows::kWord / Lines::kBytes};
    to_ = nullptr;
  }
  // The next panel's rows become a panel at `to`. after: those of the one that comes then, null if there is none.
  HWY_INLINE void pack_next(const PanelRows& rows, const std::byte* after, float* to) {
    packed_ = rows, after_ = after, to_ = reinterpret_cast<std::byte*>(to), block_ = 0;
  }
  HWY_INLINE Meanwhile for_block() {
    const int64_t turns = steps_ / kStepsATurn;
    Meanwhile meanwhile;
    if (line_ < next_a_.lines) {
      meanwhile.a = {next_a_.at + line_ * Lines::kBytes + row_ * next_a_.stride, next_a_.stride,
                     std::min(turns, next_a_.rows - row_)};
      row_ += meanwhile.a.count;
      if (row_ == next_a_.rows) row_ = 0, ++line_;
    }
    if (to_ != nullptr) {
      pack_part(meanwhile);
    } else {
      meanwhile.b = {b_.at, b_.step, std::min(turns, b_.count)};
      b_.at += meanwhile.b.count * b_.step;
      b_.count -= meanwhile.b.count;
    }
    return meanwhile;
  }

 private:
  // At a tile's beginning: nobody asked for them.
  static void ask_for_first_rows(const MemoryOfA& a) {
    for (int64_t row = 0; row < std::min<int64_t>(a.rows, kGemmRows); ++row)
      for (int64_t line = 0; line < a.lines; ++line)
        __builtin_prefetch(a.at + row * a.stride + line * Lines::kBytes, 0, 2);
  }
  HWY_INLINE void pack_part(Meanwhile& meanwhile) {
    const Range part = split_evenly(steps_, blocks_, block_);
    const int64_t step = packed_.rows * packed_.stride;
    meanwhile.panel = {packed_.at + part.begin * step, packed_.stride,
                       to_ + part.begin * kPanelColumns * BlockRows::kWord, part.size()};
    const bool is_last = ++block_ == blocks_;
    if (is_last && after_ == nullptr) return;
    const Range next = split_evenly(steps_, blocks_, is_last ? 0 : block_);
    meanwhile.b = {is_last ? after_ : packed_.at + next.begin * step, packed_.stride, packed_.rows * next.size()};
    if (packed_.bytes <= Lines::kBytes) return;
    meanwhile.b_right = meanwhile.b;
    meanwhile.b_right.at += Lines::kBytes;
  }

  MemoryOfA next_a_;
  int64_t row_ = 0, line_ = 0;  // of it, what is asked for next
  Lines b_;
  PanelRows packed_;
  const std::byte* after_ = nullptr;
  std::byte* to_ = nullptr;  // null: nothing is packed
  int64_t steps_ = 0, blocks_ = 0, block_ = 0;
};

// Rows of A that lie in memory with a step of k beside the next are read where they lie.
HWY_INLINE bool reads_rows_in_place(const MatmulTile& tile) {
  return tile.rows <= kGemmRows || !rows_collide(tile.lda, tile.a_dtype);
}

// A's block of k from begin for the fp32 core.
HWY_INLINE BlockRows rows_of(const MatmulTile& tile, int64_t begin, const TileScratch& scratch) {
  const int64_t depth = std::min(kDepthBlock, tile.k - begin), at = tile.transpose_a ? begin * tile.lda : begin;
  const bool halves = tile.a_dtype != DType::f32;
  if (!halves && tile.transpose_a && (tile.rows <= kGemmRows || tile.columns <= kPanelColumns))
    return BlockRows::of_columns(tile.a_floats() + at, tile.lda);  // not worth packing
  if (tile.transpose_a) {
    if (halves)
      pack_widened_transposed(tile.rows, depth, tile.a_halves() + at, tile.a_dtype, tile.lda, scratch.lines,
                              scratch.block);
    else
      pack_rows_transposed(tile.rows, depth, tile.a_floats() + at, tile.lda, scratch.lines, scratch.block);
    return BlockRows::packed(scratch.block, depth, kGemmRows);
  }
  if (!halves && reads_rows_in_place(tile)) return BlockRows::of_rows(tile.a_floats() + at, tile.lda);
  const int64_t stride = row_stride_of(tile.k);
  for (int64_t i = 0; i < tile.rows; ++i) {
    float* to = scratch.block + i * stride;
    if (halves)
      widen(tile.a_halves() + at + i * tile.lda, tile.a_dtype, to, depth);
    else
      std::memcpy(to, tile.a_floats() + at + i * tile.lda, static_cast<size_t>(depth) * sizeof(float));
  }
  return BlockRows::of_rows(scratch.block, stride);
}

// A's block of k from begin in pairs. The last of an odd number of steps gets a partner of zero.
HWY_INLINE BlockRows pair_rows_of(const MatmulTile& tile, int64_t begin, const TileScratch& scratch) {
  const int64_t depth = std::min(kPairDepthBlock, tile.k - begin);
  if (tile.paired_a)
    return BlockRows::of_columns(static_cast<const uint32_t*>(tile.a) + begin / 2 * tile.lda, tile.lda);
  const uint16_t* a = tile.a_halves() + (tile.transpose_a ? begin * tile.lda : begin);
  auto* block = reinterpret_cast<uint32_t*>(scratch.block);
  if (tile.transpose_a) {
    pack_pairs_transposed(tile.rows, depth, a, tile.lda, reinterpret_cast<uint32_t*>(scratch.lines), block);
    return BlockRows::packed(block, pairs_of(depth), kGemmRows);
  }
  if (depth % 2 == 0 && reads_rows_in_place(tile))
    return {reinterpret_cast<const std::byte*>(a), tile.lda * static_cast<int64_t>(sizeof(*a)), BlockRows::kWord, 0};
  const int64_t stride = row_stride_of(tile.k);
  for (int64_t i = 0; i < tile.rows; ++i) {
    uint32_t* to = block + i * stride;
    to[depth / 2] = 0;
    std::memcpy(to, a + i * tile.lda, static_cast<size_t>(depth) * sizeof(*a));
  }
  return BlockRows::of_rows(block, stride);
}

// One panel of the block of k from begin in fp32, ready to be multiplied with.
HWY_INLINE const float* panel_of(const MatmulTile& tile, int64_t begin, int64_t column, const TileScratch& scratch) {
  const int64_t depth = std::min(kDepthBlock, tile.k - begin), width = std::min(kPanelColumns, tile.columns - column);
  const bool halves = tile.b_dtype != DType::f32;
  if (tile.packed_b && !halves) return tile.b_floats() + column * tile.k + begin * kPanelColumns;
  const int64_t at = tile.transpose_b ? column * tile.ldb + begin : begin * tile.ldb + column;
  if (tile.packed_b)
    widen_pairs(depth, kPanelColumns, tile.b_pairs() + column * pairs_of(tile.k) + begin / 2 * kPanelColumns,
                tile.b_dtype, scratch.panel);
  else if (halves)
    pack_widened_panel(depth, width, tile.b_halves() + at, tile.b_dtype, tile.ldb, tile.transpose_b,
                       reinterpret_cast<uint32_t*>(scratch.lines), scratch.panel);
  else if (tile.transpose_b)
    pack_panel_transposed(depth, width, tile.b_floats() + at, tile.ldb, scratch.panel);
  else
    pack_panel(depth, width, tile.b_floats() + at, tile.ldb, scratch.panel);
  return scratch.panel;
}

// The pairs' core in any instruction set: what a CPU's dot products of bf16 are tested with. Each lane adds the later
// step first, as VDPBF16PS does.
struct PortablePairs {
  static constexpr int kLanes = kGemmLanes, kGroupRows = kGemmRows;
  using Sum = FloatVec;
  struct Steps {
    FloatVec even, odd;
  };
  static HWY_INLINE FloatVec zero() { return hn::Zero(kFloat); }
  static HWY_INLINE FloatVec load_sum(const float* from) { return hn::LoadU(kFloat, from); }
  static HWY_INLINE void store(FloatVec sum, float* to) { hn::StoreU(sum, kFloat, to); }
  static HWY_INLINE void store_rounded(FloatVec sum, uint16_t* to) { hn::StoreU(bf16_of(sum), kHalf, to); }
  static HWY_INLINE FloatVec add(FloatVec a, FloatVec b) { return hn::Add(a, b); }
  static HWY_INLINE Steps load(const uint32_t* from) {
    const hn::RebindToUnsigned<FloatTag> words;
    const auto pairs = hn::LoadU(words, from);
    return {hn::BitCast(kFloat, hn::ShiftLeft<16>(pairs)),
            hn::BitCast(kFloat, hn::And(pairs, hn::Set(words, 0xffff0000)))};
  }
  static HWY_INLINE Steps broadcast(uint32_t pair) {
    return {set(std::bit_cast<float>(pair << 16)), set(std::bit_cast<float>(pair & 0xffff0000))};
  }
  static HWY_INLINE void zip(const uint16_t* even, const uint16_t* odd, uint32_t* to) {
    for (int64_t j = 0; j < kPanelColumns; ++j) to[j] = even[j] | static_cast<uint32_t>(odd[j]) << 16;
  }
  static HWY_INLINE FloatVec dot(FloatVec sum, const Steps& pair, const Steps& pairs) {
    return hn::MulAdd(pair.even, pairs.even, hn::MulAdd(pair.odd, pairs.odd, sum));
  }
};

#include "kernels/matmul/pair_block-inl.h"

HWY_INLINE PairBlock pair_block_for(const MatmulTile& tile, int64_t rows) {
#if HWY_TARGET == HWY_AVX3
  static_assert(kGemmRows == kAvx512PairRows && kGemmWidth == kPanelColumns);
  if (tile.bf16 == Bf16Product::cpu_pairs) return avx512_pair_block(rows);
#endif
  return pair_block_of<PortablePairs>(rows);
}

// One panel of the block of k from begin, in pairs.
HWY_INLINE const uint32_t* pair_panel_of(const MatmulTile& tile, int64_t begin, int64_t column, uint32_t* copy) {
  if (tile.packed_b) {
    const int64_t depth = std::max(tile.k, tile.packed_k);
    return tile.b_pairs() + column * pairs_of(depth) + begin / 2 * kPanelColumns;
  }
  const int64_t at = tile.transpose_b ? column * tile.ldb + begin : begin * tile.ldb + column;
  pack_pair_panel(std::min(kPairDepthBlock, tile.k - begin), std::min(kPanelColumns, tile.columns - column),
                  tile.b_halves() + at, tile.ldb, tile.transpose_b, copy);
  return copy;
}

// The panels of a block of k, one after another.
class Panels {
 public:
  // rows: of B in memory that become a step of a panel; 0: the operand is turned or widened on its way.
  HWY_INLINE Panels(const MatmulTile& tile, int64_t begin, int64_t depth, int64_t rows)
      : tile_(tile),
        begin_(begin),
        rows_(tile.packed_b || tile.transpose_b || rows == 0 || depth % rows != 0 ? 0 : rows) {}

  // Whether the panel from `column` on is packed while the one before it is multiplied.
  HWY_INLINE bool goes_ahead(int64_t column) const { return rows_ > 0 && column + kPanelColumns <= tile_.columns; }
  HWY_INLINE PanelRows memory_of(int64_t column) const {
    const auto size = static_cast<int64_t>(size_of(tile_.b_dtype));
    return {static_cast<const std::byte*>(tile_.b) + (begin_ * tile_.ldb + column) * size, tile_.ldb * size, rows_,
            kPanelColumns * size};
  }
  // Says what goes on while the panel from `column` on is multiplied. lies(column): a panel in memory.
  template <class Lies>
  HWY_INLINE void look_ahead(int64_t column, const TileScratch& scratch, ReadAhead& ahead, Lies lies) const {
    const int64_t next = column + kPanelColumns, after = next + kPanelColumns;
    if (goes_ahead(next))
      ahead.pack_next(memory_of(next), goes_ahead(after) ? memory_of(after).at : nullptr, scratch.next_panel);
    else
      ahead.next_panel(next < tile_.columns ? lies(next) : nullptr);
  }

 private:
  const MatmulTile& tile_;
  int64_t begin_, rows_;
};

HWY_NOINLINE void run_pairs(const MatmulTile& tile, TileScratch scratch) {
  for (int64_t begin = 0; begin < tile.k; begin += kPairDepthBlock) {
    const int64_t depth = std::min(kPairDepthBlock, tile.k - begin), steps = pairs_of(depth);
    ReadAhead ahead(tile, begin, kPairDepthBlock, steps);
    const Panels panels(tile, begin, depth, 2);
    const BlockRows rows = pair_rows_of(tile, begin, scratch);
    const bool is_last = begin + kPairDepthBlock >= tile.k;
    const BlockTarget target = {tile.c, tile.ldc, tile.accumulate || begin > 0, is_last ? tile.rounded : nullptr,
                                tile.rounded_stride};
    for (int64_t first = 0; first < tile.columns; first += kPanelColumns) {
      const bool is_there = first > 0 && panels.goes_ahead(first);
      const auto* panel = is_there ? reinterpret_cast<const uint32_t*>(scratch.panel)
                                   : pair_panel_of(tile, begin, first, reinterpret_cast<uint32_t*>(scratch.panel));
      panels.look_ahead(first, scratch, ahead, [&](int64_t column) HWY_ATTR {
        return tile.packed_b ? pair_panel_of(tile, begin, column, nullptr) : nullptr;
      });
      for_blocks(tile.rows, std::min(kPanelColumns, tile.columns - first), rows,
                 [&](int64_t count, const std::byte* from, int64_t row, int64_t column, int64_t width) HWY_ATTR {
                   pair_block_for(tile, count)(steps, from, rows.row, rows.step, panel + column,
                                               target.at(row, first + column), width, ahead.for_block());
                 });
      if (panels.goes_ahead(first + kPanelColumns)) scratch.swap_panels();
    }
  }
}

void run_tile(const MatmulTile& tile, float* memory) {
  if (has_few_rows(tile)) return run_few_rows(tile);
  TileScratch scratch = scratch_of(tile, memory);
  if (tile.in_pairs()) return run_pairs(tile, scratch);
  const bool panels_in_memory = tile.packed_b && tile.b_dtype == DType::f32;
  for (int64_t begin = 0; begin < tile.k; begin += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, tile.k - begin);
    ReadAhead ahead(tile, begin, kDepthBlock, depth);
    const Panels panels(tile, begin, depth, tile.b_dtype == DType::f32 ? 1 : 0);
    const BlockRows rows = rows_of(tile, begin, scratch);
    for (int64_t column = 0; column < tile.columns; column += kPanelColumns) {
      const bool is_there = column > 0 && panels.goes_ahead(column);
      const float* panel = is_there ? scratch.panel : panel_of(tile, begin, column, scratch);
      panels.look_ahead(column, scratch, ahead, [&](int64_t next) HWY_ATTR {
        return panels_in_memory ? panel_of(tile, begin, next, scratch) : nullptr;
      });
      gemm_panel(tile.rows, std::min(kPanelColumns, tile.columns - column), depth, rows, panel, tile.c + column,
                 tile.ldc, tile.accumulate || begin > 0, [&] { return ahead.for_block(); });
      if (panels.goes_ahead(column + kPanelColumns)) scratch.swap_panels();
    }
  }
}

HWY_INLINE void pack_one(int64_t columns, int64_t k, const void* b, DType source, int64_t ldb, bool transposed,
                         DType dtype, std::byte* panel) {
  const auto* floats = static_cast<const float*>(b);
  if (dtype != DType::f32 && source == DType::f32)
    pack_pair_panel(k, columns, floats, ldb, transposed, dtype, reinterpret_cast<uint32_t*>(panel));
  else if (dtype != DType::f32)
    pack_pair_panel(k, columns, static_cast<const uint16_t*>(b), ldb, transposed, reinterpret_cast<uint32_t*>(panel));
  else if (transposed)
    pack_panel_transposed(k, columns, floats, ldb, reinterpret_cast<float*>(panel));
  else
    pack_panel(k, columns, floats, ldb, reinterpret_cast<float*>(panel));
}

// The same for rows of B of the panels' own dtype: each is one stretch of memory, and each step of a panel whole lines.
HWY_INLINE void pack_rows_of_b(const PackedPanels& to, const void* b, int64_t ldb, Range steps) {
  const int64_t step = to.dtype == DType::f32 ? 1 : 2, row_bytes = ldb * static_cast<int64_t>(size_of(to.dtype));
  for (int64_t p = steps.begin; p < steps.end; p += step) {
    const std::byte* row = static_cast<const std::byte*>(b) + p * row_bytes;
    std::byte* panels = to.panels + kPanelColumns * panel_column_bytes(to.dtype, p);
    for (int64_t column = 0; column < to.columns; column += kPanelColumns)
      pack_one(std::min(kPanelColumns, to.columns - column), std::min(step, steps.end - p),
               row + column * static_cast<int64_t>(size_of(to.dtype)), to.dtype, ldb, false, to.dtype,
               panels + column * panel_column_bytes(to.dtype, to.k));
  }
}

// A few steps of all panels at a time.
void pack_all(const PackedPanels& to, const void* b, DType source, int64_t ldb, bool transposed, Range steps) {
  if (!transposed && source == to.dtype) return pack_rows_of_b(to, b, ldb, steps);
  constexpr int64_t kSteps = 64;
  const auto size = static_cast<int64_t>(size_of(source));
  for (int64_t begin = steps.begin; begin < steps.end; begin += kSteps) {
    const int64_t depth = std::min(kSteps, steps.end - begin);
    for (int64_t column = 0; column < to.columns; column += kPanelColumns) {
      const int64_t at = transposed ? column * ldb + begin : begin * ldb + column;
      std::byte* panel =
          to.panels + column * panel_column_bytes(to.dtype, to.k) + kPanelColumns * panel_column_bytes(to.dtype, begin);
      pack_one(std::min(kPanelColumns, to.columns - column), depth, static_cast<const std::byte*>(b) + at * size,
               source, ldb, transposed, to.dtype, panel);
    }
  }
}

bool has_pair_dots() {
  return HWY_TARGET == HWY_AVX3 && has_avx512_bf16();
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(run_tile);
HWY_EXPORT(pack_all);
HWY_EXPORT(has_pair_dots);

}  // namespace

size_t matmul_tile_scratch_bytes(int64_t rows, int64_t k, DType a, DType b) {
  const bool widens_b = b != DType::f32;  // a panel of it on its way
  const int64_t lines = std::max(widens_b ? panel_words(k) / 2 + kPanelColumns : 0, packing_words(rows));
  const int64_t floats = 2 * panel_words(k) + block_words(rows, k) + lines;
  return static_cast<size_t>((floats + 15) / 16 * 16) * sizeof(float);
}

Bf16Product best_bf16_product() {
  return HWY_DYNAMIC_DISPATCH(has_pair_dots)() ? Bf16Product::cpu_pairs : Bf16Product::widened;
}

void run_matmul_tile(const MatmulTile& tile, float* scratch) {
  HWY_DYNAMIC_DISPATCH(run_tile)(tile, scratch);
}

void pack_panels(const PackedPanels& to, const void* b, DType source, int64_t ldb, bool transposed, Range steps) {
  HWY_DYNAMIC_DISPATCH(pack_all)(to, b, source, ldb, transposed, steps);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
