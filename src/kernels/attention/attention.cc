#include "kernels/attention/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/parallel.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/layout/layout.h"

namespace ingot::kernels {
namespace {

// Backward's units are key/value heads; where those are few, queries are cut into parts of equal work as well, each
// with its own sums of dk and dv.
constexpr int64_t kWantedUnits = 24, kMaxParts = 4;
constexpr int64_t kSumRows = 256;

AttentionShape with_strides(AttentionShape s) {
  if (s.q_row_stride == 0) s.q_row_stride = s.heads * s.head_dim;
  if (s.k_row_stride == 0) s.k_row_stride = s.kv_heads * s.head_dim;
  if (s.v_row_stride == 0) s.v_row_stride = s.kv_heads * s.head_dim;
  if (s.out_row_stride == 0) s.out_row_stride = s.heads * s.head_dim;
  return s;
}

Status check(const AttentionShape& s, Bf16Product bf16) {
  if (s.batch < 0 || s.tokens < 0 || s.heads < 1 || s.kv_heads < 1 || s.head_dim < 1)
    return usage_error("attention over batch {}, {} tokens, {} heads, {} key/value heads of {}: sizes must be positive",
                       s.batch, s.tokens, s.heads, s.kv_heads, s.head_dim);
  if (s.heads % s.kv_heads != 0)
    return usage_error("{} attention heads are not a multiple of {} key/value heads", s.heads, s.kv_heads);
  if (!(s.dropout_p >= 0.0f && s.dropout_p < 1.0f))
    return usage_error("attention dropout {} is not in [0, 1)", s.dropout_p);
  if (!(s.softcap >= 0.0f)) return usage_error("an attention softcap of {}", s.softcap);
  if (s.window < 0) return usage_error("an attention window of {} tokens", s.window);
  if (s.q_row_stride < s.heads * s.head_dim || s.out_row_stride < s.heads * s.head_dim ||
      s.k_row_stride < s.kv_heads * s.head_dim || s.v_row_stride < s.kv_heads * s.head_dim)
    return usage_error("row strides {}, {}, {}, {} of attention's q, k, v, out are less than the rows' widths",
                       s.q_row_stride, s.k_row_stride, s.v_row_stride, s.out_row_stride);
  for (const DType dtype : {s.qkv, s.out, s.dq, s.dk, s.dv})
    if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16)
      return usage_error("attention on {}: expected f32, bf16 or f16", name_of(dtype));
  if (bf16 == Bf16Product::cpu_pairs && best_bf16_product() != Bf16Product::cpu_pairs)
    return usage_error("this CPU has no dot products of bf16 in the instruction set in use");
  return {};
}

// Where one tile is in the tensors.
struct Place {
  int64_t batch = 0, head = 0, begin = 0, end = 0;
  // The tile's queries in q, dq, out or dout.
  template <class Rows>
  Rows of(const Rows& whole, const AttentionShape& s) const {
    return whole.from(batch * s.tokens + begin, head * s.head_dim);
  }
  int64_t row(const AttentionShape& s) const { return (batch * s.heads + head) * s.tokens + begin; }
  int64_t lse(const AttentionShape& s) const { return 2 * row(s); }
};

// Of one batch row and key/value head, at key 0.
struct KeyGradients {
  OutputRows dk, dv;
};

AttentionTile tile_at(const AttentionShape& s, const Place& place, const AttentionInputs& inputs, Bf16Product bf16) {
  const int64_t first_token = place.batch * s.tokens, kv_column = place.head / (s.heads / s.kv_heads) * s.head_dim;
  AttentionTile tile;
  const int32_t* starts = inputs.segment_start;
  tile.sight =
      sight_of(place.begin, place.end, s.window, starts == nullptr ? starts : starts + first_token + place.begin);
  tile.dim = s.head_dim;
  tile.scale = s.scale;
  tile.softcap = s.softcap;
  tile.bf16 = bf16;
  tile.q = place.of(StoredRows{inputs.q, s.q_row_stride, s.qkv}, s);
  tile.k = StoredRows{inputs.k, s.k_row_stride, s.qkv}.from(first_token, kv_column);
  tile.v = StoredRows{inputs.v, s.v_row_stride, s.qkv}.from(first_token, kv_column);
  const int64_t first_row = inputs.dropout.first_batch * s.heads * s.tokens;
  tile.dropout = {s.dropout_p, inputs.dropout.key, inputs.dropout.counter, (first_row + place.row(s)) * s.tokens,
                  s.tokens};
  return tile;
}

}  // namespace

Sight sight_of(int64_t begin, int64_t end, int64_t window, const int32_t* segment_start) {
  Sight sight;
  sight.begin = begin;
  sight.end = end;
  for (int64_t i = begin; i < end; ++i) {
    int64_t first = segment_start != nullptr ? std::max(segment_start[i - begin], 0) : 0;
    if (window > 0) first = std::max(first, i - window + 1);
    sight.first[i - begin] = static_cast<int32_t>(first);
  }
  // Lanes beyond the end are computed and not used.
  std::fill(sight.first + (end - begin), sight.first + kQueryTile, 0);
  return sight;
}

struct AttentionForward::Impl {
  AttentionShape shape;
  Bf16Product bf16 = Bf16Product::widened;
};

AttentionForward::AttentionForward(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AttentionForward::~AttentionForward() = default;

Result<std::unique_ptr<AttentionForward>> AttentionForward::create(const AttentionShape& shape, int threads) {
  return create(shape, threads, best_bf16_product());
}

Result<std::unique_ptr<AttentionForward>> AttentionForward::create(const AttentionShape& shape, int threads,
                                                                   Bf16Product bf16) {
  INGOT_CHECK(threads >= 1, "attention for {} threads", threads);
  const AttentionShape full = with_strides(shape);
  INGOT_TRY(check(full, bf16));
  return std::unique_ptr<AttentionForward>(new AttentionForward(std::make_unique<Impl>(Impl{full, bf16})));
}

const AttentionShape& AttentionForward::shape() const {
  return impl_->shape;
}

int64_t AttentionForward::tiles() const {
  const AttentionShape& s = impl_->shape;
  return s.batch * s.heads * query_tiles_of(s.tokens);
}

size_t AttentionForward::scratch_bytes() const {
  return attention_forward_scratch_bytes(impl_->shape.head_dim, impl_->shape.qkv, impl_->bf16);
}

void AttentionForward::run(int64_t index, const AttentionInputs& inputs, void* out, float* lse, int,
                           std::byte* scratch) const {
  const AttentionShape& s = impl_->shape;
  INGOT_CHECK(index >= 0 && index < tiles(), "tile {} of {}", index, tiles());
  const int64_t per_head = query_tiles_of(s.tokens), unit = index / per_head;
  // The last queries of a head see the most keys and go first: short tiles at the end even out the threads.
  const int64_t begin = (per_head - 1 - index % per_head) * kQueryTile;
  const Place place{unit / s.heads, unit % s.heads, begin, std::min(s.tokens, begin + kQueryTile)};
  AttentionTile tile = tile_at(s, place, inputs, impl_->bf16);
  tile.out = place.of(OutputRows{out, s.out_row_stride, s.out}, s);
  if (s.need_lse) tile.lse = lse + place.lse(s);
  run_attention_forward(tile, reinterpret_cast<float*>(scratch));
}

struct AttentionBackward::Impl {
  AttentionShape shape;
  Bf16Product bf16 = Bf16Product::widened;
  int64_t parts = 1;
  // Part p holds the queries [edges[p], edges[p + 1]).
  std::array<int64_t, kMaxParts + 1> edges{};

  int64_t units() const { return shape.batch * shape.kv_heads; }
  int64_t sum_tiles() const { return (shape.tokens + kSumRows - 1) / kSumRows; }
  // The last part of a unit sees all keys: where dk and dv are f32 it sums in them. Where one is rounded it sums in its
  // scratch if it is the only part, else in the workspace, which always has the other parts' sums.
  bool rounds() const { return shape.dk != DType::f32 || shape.dv != DType::f32; }
  bool sums_in_scratch() const { return rounds() && parts == 1; }
  int64_t parts_in_workspace() const { return rounds() && parts > 1 ? parts : parts - 1; }
  int64_t sum_elements() const { return 2 * shape.tokens * shape.head_dim; }
  size_t tile_scratch_bytes() const {
    return (attention_backward_scratch_bytes(shape.head_dim, shape.qkv, shape.out, bf16) + 63) / 64 * 64;
  }

  KeyGradients place_of(int64_t unit, const AttentionGradients& gradients) const {
    const int64_t token = unit / shape.kv_heads * shape.tokens, column = unit % shape.kv_heads * shape.head_dim;
    return {OutputRows{gradients.dk, shape.k_row_stride, shape.dk}.from(token, column),
            OutputRows{gradients.dv, shape.v_row_stride, shape.dv}.from(token, column)};
  }
  KeyGradients sums_at(std::byte* memory, int64_t index) const {
    float* dk = reinterpret_cast<float*>(memory) + index * sum_elements();
    return {{dk, shape.head_dim}, {dk + shape.tokens * shape.head_dim, shape.head_dim}};
  }
  KeyGradients sums_in_workspace(std::byte* workspace, int64_t unit, int64_t part) const {
    return sums_at(workspace, unit * parts_in_workspace() + part);
  }
  // Where a part sums.
  KeyGradients sums_of(int64_t unit, int64_t part, const KeyGradients& place, std::byte* workspace,
                       std::byte* scratch) const {
    if (sums_in_scratch()) return sums_at(scratch + tile_scratch_bytes(), 0);
    return part + 1 < parts || rounds() ? sums_in_workspace(workspace, unit, part) : place;
  }
  // Rows [begin, end) of sums to their place.
  void round(const KeyGradients& sums, int64_t begin, int64_t end, const KeyGradients& place) const {
    for (int64_t j = begin; j < end; ++j) {
      cast(sums.dk.from(j).data, DType::f32, place.dk.from(j).data, shape.dk, shape.head_dim);
      cast(sums.dv.from(j).data, DType::f32, place.dv.from(j).data, shape.dv, shape.head_dim);
    }
  }
  void run_part(int64_t unit, int64_t part, const KeyGradients& sums,
                FunctionRef<AttentionGradientTile(int64_t, int64_t, int64_t)> tile_of, std::byte* scratch) const;
  void join_parts(int64_t unit, int64_t begin, const KeyGradients& place, std::byte* workspace) const;
};

void AttentionBackward::Impl::run_part(int64_t unit, int64_t part, const KeyGradients& sums,
                                       FunctionRef<AttentionGradientTile(int64_t, int64_t, int64_t)> tile_of,
                                       std::byte* scratch) const {
  const int64_t group = shape.heads / shape.kv_heads, kv_head = unit % shape.kv_heads;
  const auto at = static_cast<size_t>(part);
  const AttentionBackwardUnit work{kv_head * group, (kv_head + 1) * group, edges[at],
                                   edges[at + 1],   sums.dk.floats(),      sums.dv.floats(),
                                   sums.dk.stride,  sums.dv.stride,        tile_of};
  run_attention_backward(work, shape.head_dim, reinterpret_cast<float*>(scratch));
}

// Adds the sums of the other parts to those of the last, for the keys from `begin`.
void AttentionBackward::Impl::join_parts(int64_t unit, int64_t begin, const KeyGradients& place,
                                         std::byte* workspace) const {
  const KeyGradients sums = sums_of(unit, parts - 1, place, workspace, nullptr);
  const auto add = [&](const OutputRows& from, const OutputRows& to, int64_t end) {
    add_rows(end - begin, shape.head_dim, from.from(begin).floats(), from.stride, to.from(begin).floats(), to.stride);
  };
  const int64_t whole_end = std::min(shape.tokens, begin + kSumRows);
  for (int64_t part = 0; part + 1 < parts; ++part) {
    const int64_t end = std::min(whole_end, edges[static_cast<size_t>(part) + 1]);
    if (end <= begin) continue;
    const KeyGradients more = sums_in_workspace(workspace, unit, part);
    add(more.dk, sums.dk, end);
    add(more.dv, sums.dv, end);
  }
  if (rounds()) round(sums, begin, whole_end, place);
}

AttentionBackward::AttentionBackward(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AttentionBackward::~AttentionBackward() = default;

Result<std::unique_ptr<AttentionBackward>> AttentionBackward::create(const AttentionShape& shape, int threads) {
  return create(shape, threads, best_bf16_product());
}

Result<std::unique_ptr<AttentionBackward>> AttentionBackward::create(const AttentionShape& shape, int threads,
                                                                     Bf16Product bf16) {
  INGOT_CHECK(threads >= 1, "attention for {} threads", threads);
  auto impl = std::make_unique<Impl>();
  impl->shape = with_strides(shape);
  impl->bf16 = bf16;
  INGOT_TRY(check(impl->shape, bf16));
  const int64_t tiles = query_tiles_of(impl->shape.tokens), units = std::max<int64_t>(1, impl->units());
  impl->parts = std::clamp<int64_t>((kWantedUnits + units - 1) / units, 1, std::clamp<int64_t>(tiles, 1, kMaxParts));
  // Query t sees t + 1 keys: the work up to query t grows with its square.
  for (int64_t p = 1; p < impl->parts; ++p) {
    const double share = std::sqrt(static_cast<double>(p) / static_cast<double>(impl->parts));
    const auto edge = static_cast<int64_t>(std::lround(share * static_cast<double>(tiles)));
    impl->edges[static_cast<size_t>(p)] = std::clamp(edge, p, tiles - impl->parts + p) * kQueryTile;
  }
  impl->edges[static_cast<size_t>(impl->parts)] = impl->shape.tokens;
  return std::unique_ptr<AttentionBackward>(new AttentionBackward(std::move(impl)));
}

const AttentionShape& AttentionBackward::shape() const {
  return impl_->shape;
}
int AttentionBackward::stages() const {
  return impl_->parts > 1 ? 2 : 1;
}

int64_t AttentionBackward::tiles(int stage) const {
  INGOT_CHECK(stage >= 0 && stage < stages(), "stage {} of {}", stage, stages());
  if (impl_->shape.tokens == 0) return 0;
  return stage == 0 ? impl_->units() * impl_->parts : impl_->units() * impl_->sum_tiles();
}

size_t AttentionBackward::scratch_bytes() const {
  const int64_t sums = impl_->sums_in_scratch() ? impl_->sum_elements() : 0;
  return impl_->tile_scratch_bytes() + static_cast<size_t>(sums) * sizeof(float);
}

size_t AttentionBackward::workspace_bytes() const {
  return static_cast<size_t>(impl_->units() * impl_->parts_in_workspace() * impl_->sum_elements()) * sizeof(float);
}

void AttentionBackward::run(int stage, int64_t index, const AttentionInputs& inputs, const void* out, const float* lse,
                            const void* dout, const AttentionGradients& gradients, std::byte* workspace, int,
                            std::byte* scratch) const {
  const AttentionShape& s = impl_->shape;
  INGOT_CHECK(index >= 0 && index < tiles(stage), "tile {} of {}", index, tiles(stage));
  const int64_t per_unit = stage == 0 ? impl_->parts : impl_->sum_tiles();
  const int64_t unit = index / per_unit, piece = index % per_unit;
  const KeyGradients key_gradients = impl_->place_of(unit, gradients);
  if (stage > 0) return impl_->join_parts(unit, piece * kSumRows, key_gradients, workspace);
  const auto tile_of = [&](int64_t head, int64_t begin, int64_t end) -> AttentionGradientTile {
    const Place place{unit / s.kv_heads, head, begin, end};
    return {tile_at(s, place, inputs, impl_->bf16), place.of(StoredRows{out, s.out_row_stride, s.out}, s),
            place.of(StoredRows{dout, s.out_row_stride, s.out}, s), lse + place.lse(s),
            place.of(OutputRows{gradients.dq, s.q_row_stride, s.dq}, s)};
  };
  const KeyGradients sums = impl_->sums_of(unit, piece, key_gradients, workspace, scratch);
  impl_->run_part(unit, piece, sums, tile_of, scratch);
  if (impl_->sums_in_scratch()) impl_->round(sums, 0, s.tokens, key_gradients);
}

}  // namespace ingot::kernels
