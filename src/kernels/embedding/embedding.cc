#include "kernels/embedding/embedding.h"

#include <algorithm>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding/embedding.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// The id's row here, or -1 where another rank has it.
HWY_INLINE int64_t local_row(const EmbeddingTable& shape, int32_t id) {
  const int64_t row = id - shape.vocab_begin;
  return row >= 0 && row < shape.vocab ? row : -1;
}

void gather_rows(const Embedding& args, int64_t row_begin, int64_t row_end) {
  const int64_t width = args.shape.width;
  for (int64_t r = row_begin; r < row_end; ++r) {
    const int64_t row = local_row(args.shape, args.ids[r]);
    float* out = args.out + r * width;
    if (row < 0) {
      std::fill_n(out, width, 0.0f);
    } else {
      std::copy_n(args.table + row * width, width, out);
    }
    if (args.position_table == nullptr) continue;
    const float* second = args.position_table + args.positions[r] * width;
    for_vectors(width, [&](int64_t i, auto access)
                           HWY_ATTR { access.store(hn::Add(access.load(out + i), access.load(second + i)), out + i); });
  }
}

void scatter_columns(const EmbeddingGrad& args, int64_t column_begin, int64_t column_end) {
  const int64_t width = args.shape.width;
  for (int64_t t = 0; t < args.n; ++t) {
    const int64_t row = local_row(args.shape, args.ids[t]);
    if (row < 0) continue;
    const float* from = args.dy + t * width + column_begin;
    float* to = args.d_table + row * width + column_begin;
    for_vectors(column_end - column_begin, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::Add(access.load(to + i), access.load(from + i)), to + i);
    });
  }
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(gather_rows);
HWY_EXPORT(scatter_columns);

void check_ids(const EmbeddingTable& shape, const int32_t* ids, int64_t begin, int64_t end) {
  const int64_t bound = shape.whole_vocab > 0 ? shape.whole_vocab : shape.vocab;
  for (int64_t t = begin; t < end; ++t) {
    INGOT_CHECK(ids[t] >= 0 && ids[t] < bound, "id {} at {} of a vocabulary of {}", ids[t], t, bound);
  }
}
}  // namespace

void embedding(const Embedding& args, int64_t row_begin, int64_t row_end) {
  check_ids(args.shape, args.ids, row_begin, row_end);
  HWY_DYNAMIC_DISPATCH(gather_rows)(args, row_begin, row_end);
}

void embedding_grad(const EmbeddingGrad& args, int64_t column_begin, int64_t column_end) {
  check_ids(args.shape, args.ids, 0, args.n);
  HWY_DYNAMIC_DISPATCH(scatter_columns)(args, column_begin, column_end);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
