// DocumentReader: the documents of a list of files, in order, as pieces of the mapped files. Nothing is copied or
// parsed here: a piece becomes text on the thread that encodes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "data/encoder.h"
#include "data/rows.h"
#include "data/sources.h"

namespace ingot {

// A file being read. Pieces keep theirs alive.
struct InputFile {
  std::string name;
  FileFormat format = FileFormat::text;
  MappedFile map;
  RowFormat rows;  // JSONL, CSV
};

// A document (a row of JSONL or CSV, a whole .txt file) or a part of a long one.
struct Piece {
  std::shared_ptr<const InputFile> file;
  std::string_view raw;  // in file->map
  int64_t line = 0;      // where it starts
  bool ends_document = true;
};

// The text of a piece: CRLF becomes LF outside JSON strings. Errors as RowFormat::render.
Status text_of(const Piece& piece, RowText& out);

class DocumentReader {
 public:
  // `encoder` says where a long text file may be cut; it must outlive the reader.
  DocumentReader(SourceSpec spec, std::vector<fs::path> files, const TextEncoder& encoder);

  // The next piece, or none at the end. One thread at a time.
  Result<std::optional<Piece>> next();
  // Of the file that the next piece is in, so far.
  uint64_t bytes_read() const { return bytes_read_; }

  // A long text file is cut behind this many bytes, at the next clean place.
  static constexpr size_t kPieceBytes = size_t{1} << 18;

 private:
  Status open(const fs::path& path);
  std::optional<Piece> next_of_text();
  std::optional<Piece> next_row();

  SourceSpec spec_;
  std::vector<fs::path> files_;
  const TextEncoder& encoder_;
  size_t next_file_ = 0;
  std::shared_ptr<const InputFile> file_;
  std::string_view rest_;  // of file_, not yet given out, where it is text
  RowCursor rows_;         // of file_, where it is rows
  bool text_begun_ = false;
  uint64_t bytes_read_ = 0;
};

}  // namespace ingot
