// What a user names as data (one entry of `data.train`) and the files that it stands for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace ingot {

struct SourceSpec {
  // A file (.txt .jsonl .csv), a directory (its .txt, .jsonl and .csv files, at any depth), a glob, or a directory of
  // shards.
  std::string path;
  // The share of the sequences that come from this source. When no source of a list has one, every source is seen once
  // an epoch.
  std::optional<double> weight;
  // The key (JSONL) or column (CSV) that holds the text. A CSV file without such a column gives "column: value" lines.
  std::string text_key = "text";
  // "Age {age}, job {job}": the text of a row (JSONL, CSV); goes before text_key.
  std::optional<std::string> row_template;
  // As row_template: text that goes before the row's own and is seen by the model, but is no target of the loss.
  std::optional<std::string> prompt_template;
};

enum class FileFormat { text, jsonl, csv };
std::optional<FileFormat> format_of(const fs::path& path);

struct SourceFiles {
  std::vector<fs::path> files;  // sorted by bytes; empty where `path` is a directory of shards
  bool is_shards = false;
};
// ErrorKind::input that names the path where nothing is there, nothing matches, or a file is of another kind.
Result<SourceFiles> find_source_files(const SourceSpec& spec);

}  // namespace ingot
