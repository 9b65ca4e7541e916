// Batch: the tensors of one micro-batch, and how rows become one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "data/sequences.h"

namespace ingot {

// All tensors are [rows, sequence_length], row-major; see data/sequences.h for what they mean.
struct Batch {
  int64_t rows = 0;
  int64_t sequence_length = 0;
  std::vector<int32_t> ids, targets, segment_start, positions;
  std::vector<int64_t> samples;  // [rows] number of the row over the whole run, on any rank: for random numbers
  std::vector<int32_t> lengths;  // [rows] tokens before padding
  int64_t tokens = 0;            // their sum
  int64_t counted = 0;           // targets that are not kIgnored
  int64_t text_bytes = 0;        // that the counted targets stand for; 0 where unknown

  // Makes room; allocates nothing where the batch was as large before.
  void resize(int64_t row_count, int64_t length);
  RowView row(int64_t index, DataLog* log = nullptr);
};

// The lengths to which rows are padded: at most 8, the last is sequence_length. The program has one plan for each.
std::vector<int64_t> padded_lengths(int64_t sequence_length);
// The smallest of them that holds `length` tokens.
int64_t padded_length(int64_t length, int64_t sequence_length);

// Fills row `row` with a sequence and pads it, and adds to the batch's counts. `batch` has its shape.
Status fill_batch_row(const SequenceSource& source, int64_t index, int64_t sample, int64_t row, Batch& batch,
                      DataLog* log = nullptr);
// A row of padding alone.
void fill_empty_row(int32_t padding_token, int64_t row, Batch& batch);

}  // namespace ingot
