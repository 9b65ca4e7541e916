#include "data/documents.h"

#include <algorithm>

namespace ingot {
namespace {

void append_with_lf(std::string_view text, std::string& out) {
  for (;;) {
    const size_t crlf = text.find("\r\n");
    out.append(text.substr(0, crlf));
    if (crlf == std::string_view::npos) return;
    text.remove_prefix(crlf + 1);
  }
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
  rest_ = without_byte_order_mark(file->map.text());
  rows_ = RowCursor(rest_, file->format);
  text_begun_ = false;
  if (file->format == FileFormat::jsonl) {
    INGOT_ASSIGN(file->rows, RowFormat::jsonl(spec_));
  } else if (const auto header = file->format == FileFormat::csv ? rows_.next() : std::nullopt) {
    INGOT_ASSIGN(file->rows, RowFormat::csv(spec_, header->text, {file->name, header->line}));
  }
  const std::string_view unread = file->format == FileFormat::text ? rest_ : rows_.rest();
  bytes_read_ += file->map.bytes().size() - unread.size();
  file_ = std::move(file);
  return {};
}

std::optional<Piece> DocumentReader::next_of_text() {
  if (rest_.empty() && text_begun_) return std::nullopt;
  text_begun_ = true;  // an empty file is an empty document, which is counted
  Piece piece{file_, rest_, 1, true};
  if (rest_.size() > kPieceBytes * 3 / 2) {
    const size_t cut = find_clean_cut(rest_, kPieceBytes, rest_.size(), encoder_);
    if (cut > 0) piece = {file_, rest_.substr(0, cut), 1, false};
  }
  rest_.remove_prefix(piece.raw.size());
  if (!piece.ends_document) return piece;
  rest_ = {};
  return piece;
}

std::optional<Piece> DocumentReader::next_row() {
  const size_t unread = rows_.rest().size();
  const std::optional<RawRow> row = rows_.next();
  bytes_read_ += unread - rows_.rest().size();
  if (!row) return std::nullopt;
  return Piece{file_, row->text, row->line, true};
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
