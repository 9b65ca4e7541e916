#include "models/config_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_text.h"
#include "base/log.h"
#include "base/spelling.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

Result<Json> parse_object(std::string_view text, const std::string& where, ErrorKind kind) {
  if (nests_too_deep(text))
    return Error{kind, fmt::format("{}: JSON nested deeper than {} levels", where, kMostJsonLevels)};
  try {
    Json json = Json::parse(text);
    if (json.is_object()) return json;
    return Error{kind, fmt::format("{}: expected a JSON object, found {}", where, json.type_name())};
  } catch (const Json::exception& problem) {
    return Error{kind, fmt::format("{}: this is not JSON: {}", where, problem.what())};
  }
}

// Bytes that are not UTF-8 cannot come out of parse(), so that this does not throw.
std::string dump(const Json& json) {
  return json.dump(2);
}

}  // namespace

struct ConfigReader::State {
  Json json, resolved = Json::object();
  std::string where;
  UnknownKeys unknown = UnknownKeys::refuse;
  std::set<std::string, std::less<>> known;
  std::optional<Error> error;

  ErrorKind malformed() const { return unknown == UnknownKeys::warn ? ErrorKind::input : ErrorKind::usage; }
  // nullptr where absent or null.
  const Json* find(std::string_view key) {
    known.emplace(key);
    const auto it = json.find(key);
    return it == json.end() || it->is_null() ? nullptr : &*it;
  }
  void fail(ErrorKind kind, std::string_view key, std::string_view problem) {
    if (!error) error = Error{kind, fmt::format("{}: {}: {}", where, key, problem)};
  }
  void expected(std::string_view key, std::string_view what, const Json& found) {
    fail(malformed(), key, fmt::format("expected {}, found {}", what, found.dump()));
  }
};

ConfigReader::ConfigReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ConfigReader::ConfigReader(ConfigReader&&) noexcept = default;
ConfigReader& ConfigReader::operator=(ConfigReader&&) noexcept = default;
ConfigReader::~ConfigReader() = default;

Result<ConfigReader> ConfigReader::parse(std::string_view json, std::string where, UnknownKeys unknown) {
  auto state = std::make_unique<State>();
  state->unknown = unknown;
  INGOT_ASSIGN(state->json, parse_object(json, where, state->malformed()));
  state->where = std::move(where);
  return ConfigReader(std::move(state));
}

void ConfigReader::integer(std::string_view key, int64_t& value, int64_t minimum, int64_t maximum) {
  if (const Json* found = state_->find(key)) {
    const bool fits = found->is_number_integer() &&
                      (!found->is_number_unsigned() || found->get<uint64_t>() <= static_cast<uint64_t>(maximum)) &&
                      found->get<int64_t>() >= minimum && found->get<int64_t>() <= maximum;
    if (fits)
      value = found->get<int64_t>();
    else
      state_->expected(key, fmt::format("an integer from {} to {}", minimum, maximum), *found);
  }
  state_->resolved[std::string(key)] = value;
}

void ConfigReader::number(std::string_view key, double& value, double minimum, double maximum) {
  if (const Json* found = state_->find(key)) {
    if (found->is_number() && found->get<double>() >= minimum && found->get<double>() <= maximum)
      value = found->get<double>();
    else
      state_->expected(key, fmt::format("a number from {} to {}", minimum, maximum), *found);
  }
  state_->resolved[std::string(key)] = value;
}

void ConfigReader::flag(std::string_view key, bool& value) {
  if (const Json* found = state_->find(key)) {
    if (found->is_boolean())
      value = found->get<bool>();
    else
      state_->expected(key, "true or false", *found);
  }
  state_->resolved[std::string(key)] = value;
}

void ConfigReader::text(std::string_view key, std::string& value) {
  if (const Json* found = state_->find(key)) {
    if (found->is_string())
      value = found->get<std::string>();
    else
      state_->expected(key, "a text", *found);
  }
  state_->resolved[std::string(key)] = value;
}

void ConfigReader::one_of(std::string_view key, std::string& value, const std::vector<std::string_view>& spellings) {
  const std::string before = value;
  text(key, value);
  if (std::ranges::find(spellings, value) != spellings.end()) return;
  fail(key, fmt::format("\"{}\" is not supported; one of {}", value, fmt::join(spellings, ", ")));
  value = before;
}

void ConfigReader::object(std::string_view key, const std::function<void(ConfigReader&)>& read) {
  const Json* found = state_->find(key);
  if (found == nullptr) return;
  if (!found->is_object()) return state_->expected(key, "an object", *found);
  auto state = std::make_unique<State>();
  state->json = *found;
  state->where = fmt::format("{}: {}", state_->where, key);
  state->unknown = state_->unknown;
  ConfigReader inner(std::move(state));
  read(inner);
  if (const Status status = inner.finish(); !status.ok() && !state_->error) state_->error = status.error();
  state_->resolved[std::string(key)] = inner.state_->resolved;
}

void ConfigReader::informational(std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys)
    if (const Json* found = state_->find(key)) state_->resolved[std::string(key)] = *found;
}

void ConfigReader::only(std::string_view key, std::string_view accepted) {
  const Json* found = state_->find(key);
  if (found == nullptr) return;
  if (*found == Json::parse(accepted))
    state_->resolved[std::string(key)] = *found;
  else
    fail(key, fmt::format("{} is not supported, only {}", found->dump(), accepted));
}

bool ConfigReader::has(std::string_view key) {
  return state_->find(key) != nullptr;
}

bool ConfigReader::is_null(std::string_view key) {
  if (has(key) || !state_->json.contains(key)) return false;
  state_->resolved[std::string(key)] = nullptr;
  return true;
}

void ConfigReader::fail(std::string_view key, std::string_view problem) {
  state_->fail(ErrorKind::usage, key, problem);
}

Status ConfigReader::finish() {
  if (state_->error) return *state_->error;
  const std::vector<std::string> known(state_->known.begin(), state_->known.end());
  for (const auto& [key, value] : state_->json.items()) {
    if (state_->known.contains(key)) continue;
    if (state_->unknown == UnknownKeys::refuse)
      return usage_error("{}: there is no key \"{}\"; the nearest is \"{}\"", state_->where, key,
                         nearest_name(key, known));
    log_warning("{}: the key \"{}\" is not known and has no effect", state_->where, key);
  }
  return {};
}

std::string ConfigReader::resolved() const {
  return dump(state_->resolved);
}

std::string ConfigReader::given() const {
  Json json = Json::object();
  for (const auto& [key, value] : state_->json.items())
    if (state_->known.contains(key)) json[key] = value;
  return dump(json);
}

void ConfigReader::write(std::string_view key, std::string_view value) {
  state_->resolved[std::string(key)] = value;
}
void ConfigReader::write(std::string_view key, const std::vector<std::string>& values) {
  state_->resolved[std::string(key)] = values;
}

Result<std::string> rename_keys(std::string_view text, const std::vector<KeyAlias>& aliases, const std::string& where) {
  INGOT_ASSIGN(Json json, parse_object(text, where, ErrorKind::usage));
  for (const auto& [alias, key] : aliases) {
    const auto found = json.find(alias);
    if (found == json.end()) continue;
    if (json.contains(key)) return usage_error("{}: {} and {} are the same key, give one of them", where, alias, key);
    json[key] = *found;
    json.erase(alias);
  }
  return dump(json);
}

Result<std::string> merge_configs(std::string_view base, std::string_view overrides, const std::string& where) {
  INGOT_ASSIGN(Json json, parse_object(base, where, ErrorKind::usage));
  INGOT_ASSIGN(const Json changes, parse_object(overrides, where, ErrorKind::usage));
  for (const auto& [key, value] : changes.items()) json[key] = value;
  return dump(json);
}

Result<std::string> model_type_of(std::string_view text, const std::string& where) {
  INGOT_ASSIGN(const Json json, parse_object(text, where, ErrorKind::input));
  if (const auto type = json.find("model_type"); type != json.end() && type->is_string())
    return type->get<std::string>();
  const auto architectures = json.find("architectures");
  if (architectures != json.end() && architectures->is_array() && !architectures->empty() &&
      architectures->front().is_string())
    return architectures->front().get<std::string>();
  return std::string();
}

}  // namespace ingot
