#include <algorithm>

#include "base/check.h"
#include "kernels/layout/layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layout/transpose.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE void transpose_elements(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                                   int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

constexpr int64_t kLineBytes = 64;
template <class T>
inline constexpr int64_t kLine = kLineBytes / static_cast<int64_t>(sizeof(T));

#if HWY_TARGET == HWY_SCALAR
template <class T>
inline constexpr int64_t kBlock = 1;
template <class T>
HWY_INLINE void transpose_block(const T* from, int64_t, T* to, int64_t) {
  *to = *from;
}
#else
// Blocks of one 128-bit vector in each direction.
template <class T>
inline constexpr int64_t kBlock = 16 / static_cast<int64_t>(sizeof(T));

HWY_INLINE void transpose_block(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  const hn::Full128<uint32_t> d;
  const hn::Full128<uint64_t> wide;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, to + 3 * to_stride);
}

// Four rows of eight 16-bit elements, as four vectors of two columns each: (c0, c1), (c2, c3), …, four rows a column.
template <class Wide>
HWY_INLINE void pair_columns(const uint16_t* from, int64_t stride, Wide& c01, Wide& c23, Wide& c45, Wide& c67) {
  const hn::Full128<uint16_t> d;
  const hn::Full128<uint32_t> mid;
  const hn::Full128<uint64_t> wide;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + stride);
  const auto r2 = hn::LoadU(d, from + 2 * stride), r3 = hn::LoadU(d, from + 3 * stride);
  const auto low01 = hn::BitCast(mid, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(mid, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(mid, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(mid, hn::InterleaveUpper(d, r2, r3));
  c01 = hn::BitCast(wide, hn::InterleaveLower(mid, low01, low23));
  c23 = hn::BitCast(wide, hn::InterleaveUpper(mid, low01, low23));
  c45 = hn::BitCast(wide, hn::InterleaveLower(mid, high01, high23));
  c67 = hn::BitCast(wide, hn::InterleaveUpper(mid, high01, high23));
}

HWY_INLINE void transpose_block(const uint16_t* from, int64_t from_stride, uint16_t* to, int64_t to_stride) {
  const hn::Full128<uint16_t> d;
  const hn::Full128<uint64_t> wide;
  hn::Vec<decltype(wide)> top01, top23, top45, top67, bottom01, bottom23, bottom45, bottom67;
  pair_columns(from, from_stride, top01, top23, top45, top67);
  pair_columns(from + 4 * from_stride, from_stride, bottom01, bottom23, bottom45, bottom67);
  const auto store = [&](auto top, auto bottom, int64_t column) HWY_ATTR {
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, top, bottom)), d, to + column * to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, top, bottom)), d, to + (column + 1) * to_stride);
  };
  store(top01, bottom01, 0);
  store(top23, bottom23, 2);
  store(top45, bottom45, 4);
  store(top67, bottom67, 6);
}
#endif

// Writes one aligned line around the caches.
template <class T>
HWY_INLINE void stream_line(const T* from, T* to) {
  const hn::CappedTag<T, kLineBytes / sizeof(T)> d;
  for (int64_t i = 0; i < kLine<T>; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::Stream(hn::Load(d, from + i), d, to + i);
}

// A square tile of one cache line a row goes through L1 buffers, so that every line of `from` and `to` is touched once:
// with strides of whole pages the tile's lines would otherwise push each other out of the cache.
template <bool kStream, class T>
void transpose_tile(const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  constexpr int64_t kSide = kLine<T>, kStep = kBlock<T>;
  HWY_ALIGN T in[kSide * kSide];
  HWY_ALIGN T out[kSide * kSide];
  for (int64_t r = 0; r < kSide; ++r) std::memcpy(in + r * kSide, from + r * from_stride, kLineBytes);
  for (int64_t r = 0; r < kSide; r += kStep) {
    for (int64_t c = 0; c < kSide; c += kStep) transpose_block(in + r * kSide + c, kSide, out + c * kSide + r, kSide);
  }
  for (int64_t c = 0; c < kSide; ++c) {
    if (kStream) {
      stream_line(out + c * kSide, to + c * to_stride);
    } else {
      std::memcpy(to + c * to_stride, out + c * kSide, kLineBytes);
    }
  }
}

template <bool kStream, class T>
void transpose_tiles(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = kLine<T>;
  constexpr int64_t kBand = 4 * kSide;  // so that neighbouring lines of `to` are written one after another
  for (int64_t band = 0; band < rows; band += kBand) {
    const int64_t end = std::min(rows, band + kBand);
    for (int64_t c = 0; c < columns; c += kSide) {
      for (int64_t r = band; r < end; r += kSide) {
        transpose_tile<kStream>(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
      }
    }
  }
}

template <class T>
void transpose_as(const void* from_bytes, int64_t from_stride, void* to_bytes, int64_t to_stride, int64_t rows,
                  int64_t columns, bool stream) {
  const T* from = static_cast<const T*>(from_bytes);
  T* to = static_cast<T*>(to_bytes);
  constexpr int64_t kSide = kLine<T>;
  const int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  if (stream && reinterpret_cast<uintptr_t>(to) % kLineBytes == 0 && to_stride % kSide == 0) {
    transpose_tiles<true>(from, from_stride, to, to_stride, whole_rows, whole_columns);
    hwy::FlushStream();
  } else {
    transpose_tiles<false>(from, from_stride, to, to_stride, whole_rows, whole_columns);
  }
  transpose_elements(from + whole_rows * from_stride, from_stride, to + whole_rows, to_stride, rows - whole_rows,
                     columns);
  transpose_elements(from + whole_columns, from_stride, to + whole_columns * to_stride, to_stride, whole_rows,
                     columns - whole_columns);
}

void transpose_words(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns,
                     bool stream) {
  transpose_as<uint32_t>(from, from_stride, to, to_stride, rows, columns, stream);
}
void transpose_halves(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns,
                      bool stream) {
  transpose_as<uint16_t>(from, from_stride, to, to_stride, rows, columns, stream);
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(transpose_words);
HWY_EXPORT(transpose_halves);
}  // namespace

void transpose(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns,
               size_t size, bool stream) {
  INGOT_CHECK(size == 2 || size == 4, "transpose of elements of {} bytes; 2 and 4 are supported", size);
  if (size == 4) return HWY_DYNAMIC_DISPATCH(transpose_words)(from, from_stride, to, to_stride, rows, columns, stream);
  HWY_DYNAMIC_DISPATCH(transpose_halves)(from, from_stride, to, to_stride, rows, columns, stream);
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
