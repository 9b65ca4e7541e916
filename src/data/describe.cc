#include "data/describe.h"

#include <algorithm>
#include <cctype>

#include "text/utf8.h"

namespace ingot {
namespace {

void append_escaped(std::string_view bytes, std::string& out) {
  for (size_t at = 0; at < bytes.size();) {
    const auto byte = static_cast<unsigned char>(bytes[at]);
    const size_t whole = byte < 0x80 ? at : valid_utf8_end(bytes, at);
    if (whole > at) {
      out.append(bytes.substr(at, 1));  // a byte of a valid character
      for (++at; at < whole && (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80; ++at) out.push_back(bytes[at]);
      continue;
    }
    if (byte == '\n')
      out += "\\n";
    else if (byte == '"' || byte == '\\')
      (out += '\\') += bytes[at];
    else if (byte < 0x20 || byte >= 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out.push_back(bytes[at]);
    ++at;
  }
}

std::string token_column(const Tokenizer* tokenizer, int32_t id) {
  return tokenizer ? quoted_token(*tokenizer, id) : std::string();
}

// A document starts where a token sees nothing before itself.
std::string summary(const RowView& row, int64_t length) {
  int64_t documents = 0, counted = 0;
  for (size_t t = 0; t < static_cast<size_t>(length); ++t) {
    counted += row.targets[t] != kIgnored;
    documents += row.segment_start[t] == static_cast<int32_t>(t);
  }
  return fmt::format("{} tokens, {} documents, {} counted targets, {} of padding", length, documents, counted,
                     static_cast<int64_t>(row.ids.size()) - length);
}

void describe_row(const RowView& row, const Tokenizer* tokenizer, int64_t max_tokens, std::string& out) {
  const auto shown = static_cast<size_t>(std::min<int64_t>(max_tokens, static_cast<int64_t>(row.ids.size())));
  out += fmt::format("  {:>6} {:>8} {:>8} {:>6} {:>8}  {}\n", "t", "id", "target", "start", "position",
                     tokenizer ? "text -> target" : "");
  for (size_t t = 0; t < shown; ++t) {
    const bool counts = row.targets[t] != kIgnored;
    out += fmt::format("  {:>6} {:>8} {:>8} {:>6} {:>8}", t, row.ids[t], counts ? std::to_string(row.targets[t]) : "-",
                       row.segment_start[t], row.positions[t]);
    if (tokenizer)
      out +=
          "  " + token_column(tokenizer, row.ids[t]) + (counts ? " -> " + token_column(tokenizer, row.targets[t]) : "");
    out += '\n';
  }
  if (shown < row.ids.size()) out += fmt::format("  … {} more tokens\n", row.ids.size() - shown);
}

}  // namespace

std::string quoted_token(const Tokenizer& tokenizer, int32_t id) {
  std::string bytes = tokenizer.token_bytes(id);
  if (tokenizer.is_special(id)) bytes = tokenizer.token_text(id);
  std::string out = "\"";
  append_escaped(bytes, out);
  return out + '"';
}

std::string describe_batch(const Batch& batch, const Tokenizer* tokenizer, const DescribeOptions& options) {
  std::string out =
      fmt::format("{} rows x {} tokens, {} counted targets", batch.rows, batch.sequence_length, batch.counted);
  if (batch.text_bytes > 0) out += fmt::format(", {} bytes of text", batch.text_bytes);
  out += '\n';
  Batch copy = batch;  // row() gives views that can be written
  const int64_t shown = std::min(options.max_rows, batch.rows);
  for (int64_t i = 0; i < shown; ++i) {
    const RowView row = copy.row(i);
    out += fmt::format("row {}, sample {}: {}\n", i, batch.samples[static_cast<size_t>(i)],
                       summary(row, batch.lengths[static_cast<size_t>(i)]));
    describe_row(row, tokenizer, options.max_tokens, out);
  }
  if (shown < batch.rows) out += fmt::format("… {} more rows\n", batch.rows - shown);
  return out;
}

}  // namespace ingot
