// SequenceSource: numbered training sequences, each filled into a row on demand. The door for a user's own data; packed
// and padded documents go through it too.
//
// A row has `ids`, and for each token
//   targets[t]        the token that it predicts, ids[t + 1], or kIgnored. The shift is done here, nowhere else. The
//   last token of a
//                     row predicts nothing: labels are unshifted as in Hugging Face, so a row of T tokens has T - 1
//                     targets at most.
//   segment_start[t]  the first position of the row that it may see: the start of its document (0 without a document
//   mask) positions[t]      its position id: t - segment_start[t]
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/data_log.h"
#include "data/segments.h"

namespace ingot {

inline constexpr int32_t kIgnored = -100;

// One row of a batch, all of the same length.
struct RowView {
  std::span<int32_t> ids, targets, segment_start, positions;
  DataLog* log = nullptr;  // where a source notes what it reads and tokenizes (data_log.h); null: nobody asks
  RowView first(size_t length) const {
    return {ids.first(length), targets.first(length), segment_start.first(length), positions.first(length), log};
  }
};

// Any number of threads may call an object's methods.
class SequenceSource {
 public:
  virtual ~SequenceSource() = default;
  virtual int64_t count() const = 0;
  // Tokens of a sequence before padding, at least 1.
  virtual int64_t length(int64_t index) const = 0;
  // Writes all of `row`, which is length(index) long.
  virtual Status fill(int64_t index, const RowView& row) const = 0;
  // Bytes of text of each vocabulary entry, for bits per byte; empty where unknown.
  virtual std::span<const uint16_t> token_bytes() const { return {}; }
  virtual int32_t padding_token() const { return 0; }
  // Equal for sources that give the same sequences: a data cursor is only good for these.
  virtual uint64_t fingerprint() const = 0;
};

// Targets, segment starts and positions of a row that holds one document: for sources that only know ids.
void fill_as_one_document(const RowView& row);
// A row of padding: it sees itself alone and predicts nothing.
void fill_padding(const RowView& row, int32_t token, int64_t first_position);

// Documents end to end: sequence i is the tokens [i T, (i + 1) T) of the set. What does not fill the last sequence is
// dropped.
class PackedSequences final : public SequenceSource {
 public:
  PackedSequences(Segments segments, int64_t sequence_length, bool document_mask);
  int64_t count() const override { return segments_.tokens() / sequence_length_; }
  int64_t length(int64_t) const override { return sequence_length_; }
  Status fill(int64_t index, const RowView& row) const override;
  std::span<const uint16_t> token_bytes() const override { return segments_.store().token_bytes(); }
  int32_t padding_token() const override { return segments_.store().padding_token(); }
  uint64_t fingerprint() const override;

 private:
  Segments segments_;
  int64_t sequence_length_;
  bool document_mask_;
};

// One document a row. A document longer than sequence_length becomes several rows, one behind the other (nothing is cut
// off); a remainder of a single token, which would predict nothing, is dropped.
class DocumentSequences final : public SequenceSource {
 public:
  DocumentSequences(Segments segments, int64_t sequence_length);
  int64_t count() const override { return row_ends_.empty() ? 0 : row_ends_.back(); }
  int64_t length(int64_t index) const override;
  Status fill(int64_t index, const RowView& row) const override;
  std::span<const uint16_t> token_bytes() const override { return segments_.store().token_bytes(); }
  int32_t padding_token() const override { return segments_.store().padding_token(); }
  uint64_t fingerprint() const override;

 private:
  TokenSegment row_segment(int64_t index) const;

  Segments segments_;
  int64_t sequence_length_;
  std::vector<int64_t> row_ends_;  // [segments] rows of a segment and of those before it
};

// What a configuration's `data` section says about sequences. ErrorKind::input if there is not one whole sequence.
struct SequenceOptions {
  int64_t sequence_length = 1024;
  bool packing = true;
  bool document_mask = true;
};
Result<std::shared_ptr<const SequenceSource>> make_sequences(Segments segments, const SequenceOptions& options);

}  // namespace ingot
