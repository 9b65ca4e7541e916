// ingot eval --compare: the difference of two results, question by question.
#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "command.h"
#include "eval.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExpected = "expected a file that `ingot eval … --out FILE` wrote";

Result<Json> read_result(const std::string& path) {
  INGOT_ASSIGN(const std::string text, read_file(path));
  Json result = parse_json<Json>(text);
  if (result.is_discarded()) return input_error("{}: not JSON; {}", path, kExpected);
  const bool is_result = result.is_object() && result.contains("settings") && result["settings"].is_object() &&
                         result["settings"].value("kind", Json()).is_string();
  if (!is_result) return input_error("{}: there are no settings; {}", path, kExpected);
  if (!result.contains("documents") || !result["documents"].is_array())
    return input_error("{}: there are no figures of single documents; {}", path, kExpected);
  return result;
}

std::string short_dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "template.question is X in one and Y in the other" for the first thing that differs; empty: nothing does.
std::string first_difference(const Json& a, const Json& b, const std::string& name) {
  if (a == b) return {};
  if (!a.is_object() || !b.is_object()) return fmt::format("{} is {} and {}", name, short_dump(a), short_dump(b));
  const std::string prefix = name.empty() ? "" : name + ".";
  for (const auto& [key, value] : a.items()) {
    const std::string found = first_difference(value, b.contains(key) ? b[key] : Json(), prefix + key);
    if (!found.empty()) return found;
  }
  for (const auto& [key, value] : b.items())
    if (!a.contains(key)) return fmt::format("{} is null and {}", prefix + key, short_dump(value));
  return {};
}

// What is compared of each kind: its name, and its value in one document's figures.
struct Measure {
  std::string name;
  std::function<double(const Json&)> value;  // NaN: the document has none
};

std::vector<Measure> measures_of(const std::string& kind) {
  const auto chosen = [](const char* key) {
    return [key](const Json& document) { return document.at(key) == document.at("gold") ? 1.0 : 0.0; };
  };
  if (kind == "choices") return {{"accuracy", chosen("chosen")}, {"accuracy_normalized", chosen("chosen_normalized")}};
  if (kind == "generate")
    return {{"exact_match", [](const Json& document) { return document.at("correct").get<bool>() ? 1.0 : 0.0; }}};
  return {{"loss", [](const Json& document) {
             return document.at("loss").is_null() ? std::nan("") : document.at("loss").get<double>();
           }}};
}

Result<std::vector<double>> values_of(const Json& result, const Measure& measure, const std::string& path) {
  std::vector<double> values;
  try {
    for (const Json& document : result["documents"]) values.push_back(measure.value(document));
  } catch (const nlohmann::json::exception&) {
    return input_error("{}: the figures of document {} are not whole; {}", path, values.size(), kExpected);
  }
  return values;
}

Json about(const Json& result, const std::string& path) {
  return {{"file", path}, {"model", result.value("model", Json())}, {"version", result.value("version", Json())}};
}

}  // namespace

Status compare_results(const EvalFlags& flags) {
  const std::string &path_a = flags.compare[0], &path_b = flags.compare[1];
  INGOT_ASSIGN(const Json a, read_result(path_a));
  INGOT_ASSIGN(const Json b, read_result(path_b));
  const std::string difference = first_difference(a["settings"], b["settings"], "");
  if (!difference.empty())
    return usage_error("{} and {} were made with different settings: {}; evaluate both models alike", path_a, path_b,
                       difference);
  if (a["documents"].size() != b["documents"].size())
    return input_error("{} has figures of {} documents, {} of {}; {}", path_a, a["documents"].size(), path_b,
                       b["documents"].size(), kExpected);
  Json result;
  std::string text;
  for (const Measure& measure : measures_of(a["settings"]["kind"].get<std::string>())) {
    INGOT_ASSIGN(std::vector<double> of_a, values_of(a, measure, path_a));
    INGOT_ASSIGN(std::vector<double> of_b, values_of(b, measure, path_b));
    std::vector<double> pairs_a, pairs_b;
    for (size_t i = 0; i < of_a.size(); ++i) {
      if (std::isnan(of_a[i]) || std::isnan(of_b[i])) continue;
      pairs_a.push_back(of_a[i]);
      pairs_b.push_back(of_b[i]);
    }
    const Mean mean_a = mean_of(pairs_a), mean_b = mean_of(pairs_b), paired = paired_difference(pairs_a, pairs_b);
    result[measure.name] = {{"a", mean_a.mean},
                            {"b", mean_b.mean},
                            {"difference", paired.mean},
                            {"difference_stderr", paired.standard_error},
                            {"n", paired.n}};
    text += fmt::format("{:<20} {:.6f} -> {:.6f}, difference {:+.6f} ± {:.6f}, n {}\n", measure.name, mean_a.mean,
                        mean_b.mean, paired.mean, paired.standard_error, paired.n);
  }
  result["settings"] = a["settings"];
  result["a"] = about(a, path_a);
  result["b"] = about(b, path_b);
  if (!flags.out.empty()) INGOT_TRY(write_file_atomic(flags.out, result.dump(1) + "\n"));
  if (flags.json) {
    print_json(result);
  } else {
    fmt::print("{}", text);
  }
  return {};
}

}  // namespace ingot::cli
