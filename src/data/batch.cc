#include "data/batch.h"

#include <algorithm>

namespace ingot {
namespace {

constexpr int64_t kShapes = 8, kGrain = 32;

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
int64_t bucket_width(int64_t sequence_length) {
  return round_up((sequence_length + kShapes - 1) / kShapes, kGrain);
}

void count_targets(const RowView& row, std::span<const uint16_t> token_bytes, Batch& batch) {
  int64_t counted = 0, bytes = 0;
  for (const int32_t target : row.targets) {
    if (target == kIgnored) continue;
    ++counted;
    if (static_cast<size_t>(target) < token_bytes.size()) bytes += token_bytes[static_cast<size_t>(target)];
  }
  batch.counted += counted;
  batch.text_bytes += bytes;
}

}  // namespace

void Batch::resize(int64_t row_count, int64_t length) {
  rows = row_count;
  sequence_length = length;
  for (auto* tensor : {&ids, &targets, &segment_start, &positions})
    tensor->resize(static_cast<size_t>(rows * sequence_length));
  samples.resize(static_cast<size_t>(rows));
  lengths.resize(static_cast<size_t>(rows));
  tokens = counted = text_bytes = 0;
}

RowView Batch::row(int64_t index, DataLog* log) {
  const auto part = [&](std::vector<int32_t>& tensor) {
    return std::span(tensor).subspan(static_cast<size_t>(index * sequence_length),
                                     static_cast<size_t>(sequence_length));
  };
  return {part(ids), part(targets), part(segment_start), part(positions), log};
}

std::vector<int64_t> padded_lengths(int64_t sequence_length) {
  std::vector<int64_t> lengths;
  for (int64_t length = bucket_width(sequence_length); length < sequence_length;
       length += bucket_width(sequence_length))
    lengths.push_back(length);
  lengths.push_back(sequence_length);
  return lengths;
}

int64_t padded_length(int64_t length, int64_t sequence_length) {
  return std::min(round_up(std::max<int64_t>(length, 1), bucket_width(sequence_length)), sequence_length);
}

Status fill_batch_row(const SequenceSource& source, int64_t index, int64_t sample, int64_t row, Batch& batch,
                      DataLog* log) {
  const int64_t length = source.length(index);
  if (length < 1 || length > batch.sequence_length)
    return input_error("sequence {} of a data source has {} tokens; expected 1 to {} (sequence_length)", index, length,
                       batch.sequence_length);
  const RowView whole = batch.row(row, log), used = whole.first(static_cast<size_t>(length));
  INGOT_TRY(source.fill(index, used));
  if (length < batch.sequence_length) {
    const auto rest = [&](std::span<int32_t> tensor) { return tensor.subspan(static_cast<size_t>(length)); };
    fill_padding({rest(whole.ids), rest(whole.targets), rest(whole.segment_start), rest(whole.positions)},
                 source.padding_token(), length);
  }
  batch.samples[static_cast<size_t>(row)] = sample;
  batch.lengths[static_cast<size_t>(row)] = static_cast<int32_t>(length);
  batch.tokens += length;
  count_targets(used, source.token_bytes(), batch);
  return {};
}

void fill_empty_row(int32_t padding_token, int64_t row, Batch& batch) {
  fill_padding(batch.row(row), padding_token, 0);
  batch.samples[static_cast<size_t>(row)] = -1;
  batch.lengths[static_cast<size_t>(row)] = 0;
}

}  // namespace ingot
