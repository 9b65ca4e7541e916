#include "train/config_changes.h"

#include <fmt/ranges.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"

namespace ingot {
namespace {

// The lines of block-style YAML as path and value; items of a list are a part of their key's value.
std::map<std::string, std::string> flatten(const std::string& yaml) {
  std::map<std::string, std::string> values;
  std::vector<std::pair<size_t, std::string>> parents;  // indentation and path
  std::string last;
  for (size_t begin = 0; begin < yaml.size();) {
    const size_t end = std::min(yaml.find('\n', begin), yaml.size());
    const std::string line = yaml.substr(begin, end - begin);
    begin = end + 1;
    const size_t indent = line.find_first_not_of(' '), colon = line.find(':');
    if (indent == std::string::npos) continue;
    if (line[indent] == '-' || colon == std::string::npos) {
      values[last] += line.substr(indent);
      continue;
    }
    while (!parents.empty() && parents.back().first >= indent) parents.pop_back();
    last = (parents.empty() ? "" : parents.back().second + ".") + line.substr(indent, colon - indent);
    parents.emplace_back(indent, last);
    values[last] = colon + 2 < line.size() ? line.substr(colon + 2) : "";
  }
  return values;
}

// "optimizer.eps was 1e-08, now 1e-06" where both have the key and differ in it.
std::optional<std::string> change_of(const std::string& key, const std::map<std::string, std::string>& before,
                                     const std::map<std::string, std::string>& now) {
  const auto old = before.find(key), value = now.find(key);
  if (old == before.end() || value == now.end() || old->second == value->second) return std::nullopt;
  return fmt::format("{} was {}, now {}", key, old->second, value->second);
}

bool bears_on_learning(const std::string& key) {
  static constexpr std::array<std::string_view, 5> kRoots{"seed", "data.", "training.", "optimizer.", "schedule."};
  // The trainer tells of another length itself; the rest changes no number, or where batches come from and not which.
  static constexpr std::array<std::string_view, 7> kFree{"training.steps", "training.epochs", "training.tokens",
                                                         "training.mode",  "data.workers",    "data.prefetch_batches",
                                                         "data.validation"};
  return std::ranges::any_of(kRoots, [&](std::string_view root) { return key.starts_with(root); }) &&
         std::ranges::find(kFree, key) == kFree.end();
}

}  // namespace

std::vector<std::string> changed_settings(const std::string& before, const std::string& now) {
  const auto old_values = flatten(before), values = flatten(now);
  std::vector<std::string> changes;
  for (const auto& [key, value] : values) {
    if (!bears_on_learning(key)) continue;
    if (auto change = change_of(key, old_values, values)) changes.push_back(std::move(*change));
  }
  return changes;
}

Status check_can_go_on(const std::string& before, const std::string& now, const std::string& where) {
  static constexpr std::array<std::string_view, 6> kFixed{
      "optimizer.type", "seed", "data.sequence_length", "data.packing", "data.document_mask", "data.shuffle"};
  const auto old_values = flatten(before), values = flatten(now);
  std::vector<std::string> changes;
  for (const std::string_view key : kFixed) {
    if (auto change = change_of(std::string(key), old_values, values)) changes.push_back(std::move(*change));
  }
  if (changes.empty()) return {};
  return usage_error(
      "{} holds the optimizer's state and the position in the data of another run: {}. Go on with these as they were, "
      "or begin a new run (another output_dir, or checkpoint.resume=never)",
      where, fmt::join(changes, "; "));
}

Status check_same_model(const std::string& before, const std::string& now, const std::string& where) {
  const auto old_json = parse_json<nlohmann::json>(before), json = parse_json<nlohmann::json>(now);
  if (!old_json.is_object() || !json.is_object()) return input_error("{}: config.json is not a JSON object", where);
  std::vector<std::string> changes;
  for (const auto& [key, value] : json.items()) {
    if (old_json.contains(key) && old_json[key] != value)
      changes.push_back(fmt::format("{} was {}, now {}", key, old_json[key].dump(), value.dump()));
  }
  if (changes.empty()) return {};
  return usage_error(
      "{} holds another model: {}. Go on with the model as it was, or begin a new run (another output_dir, or "
      "checkpoint.resume=never)",
      where, fmt::join(changes, "; "));
}

}  // namespace ingot
