#include "kernels/attention/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/parallel.h"
#include "kernels/attention/attention_tiles.h"

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

Status check(const AttentionShape& s) {
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
  return {};
}

// Where one tile is in the tensors.
struct Place {
  int64_t batch = 0, head = 0, begin = 0, end = 0;
  int64_t out(const AttentionShape& s) const {
    return (batch * s.tokens + begin) * s.out_row_stride + head * s.head_dim;
  }
  int64_t q(const AttentionShape& s) const { return (batch * s.tokens + begin) * s.q_row_stride + head * s.head_dim; }
  int64_t row(const AttentionShape& s) const { return (batch * s.heads + head) * s.tokens + begin; }
  int64_t lse(const AttentionShape& s) const { return 2 * row(s); }
};

AttentionTile tile_at(const AttentionShape& s, const Place& place, const AttentionInputs& inputs) {
  const int64_t first_token = place.batch * s.tokens, dim = s.head_dim;
  const int64_t kv_head = place.head / (s.heads / s.kv_heads);
  AttentionTile tile;
  const int32_t* starts = inputs.segment_start;
  tile.sight =
      sight_of(place.begin, place.end, s.window, starts == nullptr ? starts : starts + first_token + place.begin);
  tile.dim = dim;
  tile.scale = s.scale;
  tile.softcap = s.softcap;
  tile.q = inputs.q + place.q(s);
  tile.k = inputs.k + first_token * s.k_row_stride + kv_head * dim;
  tile.v = inputs.v + first_token * s.v_row_stride + kv_head * dim;
  tile.q_stride = s.q_row_stride;
  tile.k_stride = s.k_row_stride;
  tile.v_stride = s.v_row_stride;
  tile.out_stride = s.out_row_stride;
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
};

AttentionForward::AttentionForward(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AttentionForward::~AttentionForward() = default;

Result<std::unique_ptr<AttentionForward>> AttentionForward::create(const AttentionShape& shape, int threads) {
  INGOT_CHECK(threads >= 1, "attention for {} threads", threads);
  const AttentionShape full = with_strides(shape);
  INGOT_TRY(check(full));
  return std::unique_ptr<AttentionForward>(new AttentionForward(std::make_unique<Impl>(Impl{full})));
}

const AttentionShape& AttentionForward::shape() const {
  return impl_->shape;
}

int64_t AttentionForward::tiles() const {
  const AttentionShape& s = impl_->shape;
  return s.batch * s.heads * query_tiles_of(s.tokens);
}

size_t AttentionForward::scratch_bytes() const {
  return attention_forward_scratch_bytes(impl_->shape.head_dim);
}

void AttentionForward::run(int64_t index, const AttentionInputs& inputs, float* out, float* lse, int,
                           std::byte* scratch) const {
  const AttentionShape& s = impl_->shape;
  INGOT_CHECK(index >= 0 && index < tiles(), "tile {} of {}", index, tiles());
  const int64_t per_head = query_tiles_of(s.tokens), unit = index / per_head;
  // The last queries of a head see the most keys and go first: short tiles at the end even out the threads.
  const int64_t begin = (per_head - 1 - index % per_head) * kQueryTile;
  const Place place{unit / s.heads, unit % s.heads, begin, std::min(s.tokens, begin + kQueryTile)};
  AttentionTile tile = tile_at(s, place, inputs);
  tile.out = out + place.out(s);
  if (s.need_lse) tile.lse = lse + place.lse(s);
  run_attention_forward(tile, reinterpret_cast<float*>(scratch));
}

struct AttentionBackward::Impl {
  AttentionShape shape;
  int64_t parts = 1;
  // Part p holds the queries [edges[p], edges[p + 1]).
  std::array<int64_t, kMaxParts + 1> edges{};

  int64_t units() const { return shape.batch * shape.kv_heads; }
  int64_t sum_tiles() const { return (shape.tokens + kSumRows - 1) / kSumRows; }
  // dk, then dv [tokens, head_dim], of one part but the first of one unit.
  float* sums(std::byte* workspace, int64_t unit, int64_t part) const {
    return reinterpret_cast<float*>(workspace) + (unit * (parts - 1) + part - 1) * 2 * shape.tokens * shape.head_dim;
  }
};

AttentionBackward::AttentionBackward(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AttentionBackward::~AttentionBackward() = default;

Result<std::unique_ptr<AttentionBackward>> AttentionBackward::create(const AttentionShape& shape, int threads) {
  INGOT_CHECK(threads >= 1, "attention for {} threads", threads);
  auto impl = std::make_unique<Impl>();
  impl->shape = with_strides(shape);
  INGOT_TRY(check(impl->shape));
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
  return attention_backward_scratch_bytes(impl_->shape.head_dim);
}

size_t AttentionBackward::workspace_bytes() const {
  const AttentionShape& s = impl_->shape;
  return static_cast<size_t>(impl_->units() * (impl_->parts - 1) * 2 * s.tokens * s.head_dim) * sizeof(float);
}

void AttentionBackward::run(int stage, int64_t index, const AttentionInputs& inputs, const float* out, const float* lse,
                            const float* dout, const AttentionGradients& gradients, std::byte* workspace, int,
                            std::byte* scratch) const {
  const AttentionShape& s = impl_->shape;
  INGOT_CHECK(index >= 0 && index < tiles(stage), "tile {} of {}", index, tiles(stage));
  const int64_t per_unit = stage == 0 ? impl_->parts : impl_->sum_tiles();
  const int64_t unit = index / per_unit, piece = index % per_unit;
  const int64_t batch = unit / s.kv_heads, kv_head = unit % s.kv_heads, first_token = batch * s.tokens;
  float* dk = gradients.dk + first_token * s.k_row_stride + kv_head * s.head_dim;
  float* dv = gradients.dv + first_token * s.v_row_stride + kv_head * s.head_dim;
  if (stage == 0) {
    // The last part sees all keys and writes dk and dv themselves; the others' sums are added to them in the next
    // stage.
    const auto tile = [&](int64_t head, int64_t begin, int64_t end) -> AttentionGradientTile {
      const Place place{batch, head, begin, end};
      return {tile_at(s, place, inputs), out + place.out(s), lse + place.lse(s), dout + place.out(s),
              gradients.dq + place.q(s)};
    };
    const auto at = static_cast<size_t>(piece);
    const int64_t group = s.heads / s.kv_heads;
    AttentionBackwardUnit work{kv_head * group,
                               (kv_head + 1) * group,
                               impl_->edges[at],
                               impl_->edges[at + 1],
                               dk,
                               dv,
                               s.k_row_stride,
                               s.v_row_stride,
                               tile};
    if (piece + 1 < impl_->parts) {
      work.dk = impl_->sums(workspace, unit, piece + 1);
      work.dv = work.dk + s.tokens * s.head_dim;
      work.dk_stride = work.dv_stride = s.head_dim;
    }
    run_attention_backward(work, s.head_dim, reinterpret_cast<float*>(scratch));
    return;
  }
  const int64_t begin = piece * kSumRows;
  for (int64_t part = 1; part < impl_->parts; ++part) {
    const int64_t end = std::min({s.tokens, begin + kSumRows, impl_->edges[static_cast<size_t>(part)]});
    if (end <= begin) continue;
    const float* sums = impl_->sums(workspace, unit, part) + begin * s.head_dim;
    add_rows(end - begin, s.head_dim, sums, s.head_dim, dk + begin * s.k_row_stride, s.k_row_stride);
    add_rows(end - begin, s.head_dim, sums + s.tokens * s.head_dim, s.head_dim, dv + begin * s.v_row_stride,
             s.v_row_stride);
  }
}

}  // namespace ingot::kernels
