#include "data/sequences.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/hash.h"

namespace ingot {
namespace {

// Writes targets of the tokens that precede [begin, end): token t is the target of t - 1 where t >= counted_from.
void write_targets(const RowView& row, int64_t begin, int64_t end, int64_t counted_from) {
  if (begin == end) return;
  const int64_t first = std::clamp<int64_t>(counted_from, std::max<int64_t>(begin, 1), end);
  for (int64_t t = std::max<int64_t>(begin, 1); t < first; ++t) row.targets[static_cast<size_t>(t - 1)] = kIgnored;
  std::copy(row.ids.begin() + first, row.ids.begin() + end, row.targets.begin() + (first - 1));
}

Status read(const Segments& segments, int64_t position, std::span<int32_t> out, DataLog* log) {
  const DataScope scope(log, DataStage::reading);
  return segments.store().read(position, out);
}

uint64_t mixed(std::initializer_list<uint64_t> parts) {
  return hash_bytes(std::as_bytes(std::span(parts.begin(), parts.size())));
}

}  // namespace

void fill_as_one_document(const RowView& row) {
  const auto length = static_cast<int64_t>(row.ids.size());
  if (length == 0) return;
  write_targets(row, 0, length, 0);
  row.targets.back() = kIgnored;
  std::fill(row.segment_start.begin(), row.segment_start.end(), 0);
  std::iota(row.positions.begin(), row.positions.end(), 0);
}

void fill_padding(const RowView& row, int32_t token, int64_t first_position) {
  std::fill(row.ids.begin(), row.ids.end(), token);
  std::fill(row.targets.begin(), row.targets.end(), kIgnored);
  std::iota(row.segment_start.begin(), row.segment_start.end(), static_cast<int32_t>(first_position));
  std::fill(row.positions.begin(), row.positions.end(), 0);
}

PackedSequences::PackedSequences(Segments segments, int64_t sequence_length, bool document_mask)
    : segments_(std::move(segments)), sequence_length_(sequence_length), document_mask_(document_mask) {
  INGOT_CHECK(sequence_length > 0, "sequences of {} tokens", sequence_length);
}

Status PackedSequences::fill(int64_t index, const RowView& row) const {
  const int64_t first = index * sequence_length_;
  int64_t at = 0;  // in the row
  for (int64_t number = segments_.find(first); at < sequence_length_; ++number) {
    const TokenSegment segment = segments_.segment(number);
    const int64_t skipped = first + at - segments_.first_token(number);  // of the segment, in earlier rows
    const int64_t end = std::min(sequence_length_, at + segment.size() - skipped);
    const int64_t from = segment.begin + skipped;
    INGOT_TRY(read(segments_, from, row.ids.subspan(static_cast<size_t>(at), static_cast<size_t>(end - at)), row.log));
    const int64_t prompt_end = at + std::max<int64_t>(segment.counted_from - from, 0);
    write_targets(row, at, end, document_mask_ ? std::max(prompt_end, at + 1) : prompt_end);
    const int64_t start = document_mask_ ? at : 0;
    std::fill(row.segment_start.begin() + at, row.segment_start.begin() + end, static_cast<int32_t>(start));
    std::iota(row.positions.begin() + at, row.positions.begin() + end, static_cast<int32_t>(at - start));
    at = end;
  }
  row.targets.back() = kIgnored;
  return {};
}

uint64_t PackedSequences::fingerprint() const {
  return mixed({segments_.store().fingerprint(), static_cast<uint64_t>(segments_.tokens()),
                static_cast<uint64_t>(sequence_length_), document_mask_ ? 1u : 0u});
}

DocumentSequences::DocumentSequences(Segments segments, int64_t sequence_length)
    : segments_(std::move(segments)), sequence_length_(sequence_length) {
  INGOT_CHECK(sequence_length > 0, "sequences of {} tokens", sequence_length);
  row_ends_.reserve(static_cast<size_t>(segments_.count()));
  int64_t rows = 0;
  for (int64_t i = 0; i < segments_.count(); ++i) {
    const int64_t predicting = segments_.segment(i).size() - 1;
    rows += (predicting + sequence_length - 1) / sequence_length;
    row_ends_.push_back(rows);
  }
}

TokenSegment DocumentSequences::row_segment(int64_t index) const {
  const int64_t number = std::upper_bound(row_ends_.begin(), row_ends_.end(), index) - row_ends_.begin();
  const int64_t piece = index - (number == 0 ? 0 : row_ends_[static_cast<size_t>(number) - 1]);
  TokenSegment segment = segments_.segment(number);
  segment.begin += piece * sequence_length_;
  segment.end = std::min(segment.end, segment.begin + sequence_length_);
  return segment;
}

int64_t DocumentSequences::length(int64_t index) const {
  return row_segment(index).size();
}

Status DocumentSequences::fill(int64_t index, const RowView& row) const {
  const TokenSegment segment = row_segment(index);
  INGOT_TRY(read(segments_, segment.begin, row.ids, row.log));
  fill_as_one_document(row);
  write_targets(row, 0, segment.size(), segment.counted_from - segment.begin);
  return {};
}

uint64_t DocumentSequences::fingerprint() const {
  return mixed({segments_.store().fingerprint(), static_cast<uint64_t>(segments_.tokens()),
                static_cast<uint64_t>(sequence_length_), 2u});
}

Result<std::shared_ptr<const SequenceSource>> make_sequences(Segments segments, const SequenceOptions& options) {
  if (options.sequence_length < 1)
    return usage_error("sequence_length is {}; expected at least 1", options.sequence_length);
  const int64_t tokens = segments.tokens(), documents = segments.count();
  std::shared_ptr<const SequenceSource> source;
  if (options.packing)
    source = std::make_shared<PackedSequences>(std::move(segments), options.sequence_length, options.document_mask);
  else
    source = std::make_shared<DocumentSequences>(std::move(segments), options.sequence_length);
  if (source->count() > 0) return source;
  return input_error(
      "the data holds not one whole sequence: {} tokens in {} documents, sequence_length {}; give more text or a "
      "shorter "
      "sequence_length",
      tokens, documents, options.sequence_length);
}

}  // namespace ingot
