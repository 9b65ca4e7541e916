#include "infer/prompts.h"

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "data/jsonl.h"
#include "data/rows.h"

namespace ingot {
namespace {

Result<std::string> prompt_of(const RawRow& row, const TextPlace& place) {
  INGOT_ASSIGN(const JsonLine line, JsonLine::parse(row.text, place));
  const nlohmann::json& value = line.value();
  const bool is_object = value.is_object() && value.contains("prompt");
  const nlohmann::json& prompt = is_object ? value["prompt"] : value;
  if (!prompt.is_string())
    return input_error("{}: expected a string or an object like {{\"prompt\": \"…\"}}", place.to_string());
  auto text = prompt.get<std::string>();
  line.restore_bytes(text);
  return text;
}

}  // namespace

Result<std::vector<std::string>> read_prompts(const std::string& path) {
  INGOT_ASSIGN(const MappedFile map, MappedFile::open(path));
  const bool is_json = format_of(path) == FileFormat::jsonl;
  std::vector<std::string> prompts;
  RowCursor rows(map.text(), FileFormat::jsonl);  // lines, blank ones left out
  while (const auto row = rows.next()) {
    if (is_json) {
      INGOT_ASSIGN(std::string prompt, prompt_of(*row, {path, row->line}));
      prompts.push_back(std::move(prompt));
      continue;
    }
    std::string_view line = row->text;
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    prompts.emplace_back(line);
  }
  if (prompts.empty()) return input_error("{}: there is no prompt; expected one on each line", path);
  return prompts;
}

}  // namespace ingot
