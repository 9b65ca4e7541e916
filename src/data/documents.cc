#include "data/documents.h"

#include <algorithm>

namespace ingot {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

void append_with_lf(std::string_view text, std::string& out) {
  for (;;) {
    const size_t crlf = text.find("\r\n");
    out.append(text.substr(0, crlf));
    if (crlf == std::string_view::npos) return;
    text.remove_prefix(crlf + 1);
  }
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

Status text_of(const Piece& piece, RowText& out) {
  if (piece.file->format != FileFormat::text)
    return piece.file->rows.render(piece.raw, {piece.file->name, piece.line}, out);
  out.prompt.clear();
  out.text.clear();
  append_with_lf(piece.raw, out.text);
  return {};
}

DocumentReader::DocumentReader(SourceSpec spec, std::vector<fs::path> files, const TextEncoder& encoder)
    : spec_(std::move(spec)), files_(std::move(files)), encoder_(encoder) {}

Status DocumentReader::open(const fs::path& path) {
  auto file = std::make_shared<InputFile>();
  file->name = path.string();
  file->format = format_of(path).value_or(FileFormat::text);
  INGOT_ASSIGN(file->map, MappedFile::open(path));
  rest_ = file->map.text();
  line_ = 1;
  text_begun_ = false;
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  if (file->format == FileFormat::jsonl) {
    INGOT_ASSIGN(file->rows, RowFormat::jsonl(spec_));
  } else if (file->format == FileFormat::csv && !rest_.empty()) {
    const std::string_view header = rest_.substr(0, csv_record_length(rest_));
    INGOT_ASSIGN(file->rows, RowFormat::csv(spec_, header, {file->name, 1}));
    rest_.remove_prefix(header.size());
    line_ += std::count(header.begin(), header.end(), '\n');
  }
  bytes_read_ += file->map.bytes().size() - rest_.size();
  file_ = std::move(file);
  return {};
}

std::optional<Piece> DocumentReader::next_of_text() {
  if (rest_.empty() && text_begun_) return std::nullopt;
  text_begun_ = true;  // an empty file is an empty document, which is counted
  Piece piece{file_, rest_, line_, true};
  if (rest_.size() > kPieceBytes * 3 / 2) {
    const size_t cut = find_clean_cut(rest_, kPieceBytes, rest_.size(), encoder_);
    if (cut > 0) piece = {file_, rest_.substr(0, cut), line_, false};
  }
  rest_.remove_prefix(piece.raw.size());
  if (!piece.ends_document) return piece;
  rest_ = {};
  return piece;
}

std::optional<Piece> DocumentReader::next_row() {
  while (!rest_.empty()) {
    const size_t length =
        file_->format == FileFormat::csv ? csv_record_length(rest_) : std::min(rest_.find('\n'), rest_.size() - 1) + 1;
    const Piece piece{file_, rest_.substr(0, length), line_, true};
    rest_.remove_prefix(length);
    line_ += std::count(piece.raw.begin(), piece.raw.end(), '\n');
    bytes_read_ += length;
    if (!is_blank(piece.raw)) return piece;
  }
  return std::nullopt;
}

Result<std::optional<Piece>> DocumentReader::next() {
  for (;;) {
    if (file_) {
      const bool is_text = file_->format == FileFormat::text;
      std::optional<Piece> piece = is_text ? next_of_text() : next_row();
      if (piece && is_text) bytes_read_ += piece->raw.size();
      if (piece) return piece;
      file_.reset();
    }
    if (next_file_ == files_.size()) return std::optional<Piece>();
    INGOT_TRY(open(files_[next_file_++]));
  }
}

}  // namespace ingot
