#include "text/chat_template.h"

#include "base/json_text.h"
#include "text/jinja/parser.h"
#include "text/jinja/render.h"

namespace ingot {
namespace {

constexpr size_t kLongestTemplate = size_t{1} << 20;

Result<Json> read_config(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return Json::object();
  INGOT_ASSIGN(const std::string text, read_file(path));
  return parse_json_object(text, path.string());
}

// "bos_token" and its like: strings, or objects with "content".
Json special_tokens(const Json& config) {
  Json tokens = Json::object();
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"}) {
    const auto found = config.find(name);
    if (found == config.end()) continue;
    const Json& value = found->is_object() && found->contains("content") ? (*found)["content"] : *found;
    if (value.is_string()) tokens[name] = value;
  }
  return tokens;
}

// The template's text; empty where the configuration has none.
Result<std::string> template_of(const JsonPlace& place) {
  if (place.is_null()) return std::string();
  if (!place.value().is_array()) return place.string();
  for (size_t i = 0; i < place.value().size(); ++i) {
    const JsonPlace one = place[i];
    INGOT_TRY(one.is_object_with({"name", "template"}));
    INGOT_ASSIGN(const std::string name, one["name"].string());
    if (name == "default") return one["template"].string();
  }
  return place.wrong("no template is named \"default\"");
}

}  // namespace

struct ChatTemplate::Parsed {
  jinja::Body body;
  std::string source_name;
  Json special_tokens = Json::object();
};

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string_view source_name, Json special_tokens) {
  if (source.size() > kLongestTemplate)
    return input_error("{}: a template of {} bytes (at most {})", source_name, source.size(), kLongestTemplate);
  auto parsed = std::make_shared<Parsed>();
  INGOT_ASSIGN(parsed->body, jinja::parse(source, source_name));
  parsed->source_name = source_name;
  parsed->special_tokens = std::move(special_tokens);
  ChatTemplate result;
  result.parsed_ = std::move(parsed);
  return result;
}

Result<ChatTemplate> ChatTemplate::load(const fs::path& directory) {
  const fs::path config_path = directory / "tokenizer_config.json", file = directory / "chat_template.jinja";
  INGOT_ASSIGN(const Json config, read_config(config_path));
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    INGOT_ASSIGN(const std::string source, read_file(file));
    if (!source.empty()) return parse(source, file.string(), special_tokens(config));
  } else {
    INGOT_ASSIGN(auto configured, of_config(config, config_path.string()));
    if (configured) return std::move(*configured);
  }
  return input_error("{}: the model has no chat template (neither {} nor \"chat_template\" in {}); give a --prompt",
                     directory.string(), file.filename().string(), config_path.filename().string());
}

Result<std::optional<ChatTemplate>> ChatTemplate::of_config(const Json& config, const std::string& source_name) {
  INGOT_ASSIGN(const std::string source, template_of(JsonPlace(config, source_name, "")["chat_template"]));
  if (source.empty()) return std::optional<ChatTemplate>();
  INGOT_ASSIGN(ChatTemplate parsed, parse(source, source_name + ": chat_template", special_tokens(config)));
  return std::optional(std::move(parsed));
}

Result<std::string> ChatTemplate::render(const Json& messages, bool add_generation_prompt) const {
  Json variables = parsed_->special_tokens;
  variables["messages"] = messages;
  variables["add_generation_prompt"] = add_generation_prompt;
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  return jinja::render(parsed_->body, variables, parsed_->source_name);
}

Result<Json> read_messages(std::string_view json, std::string_view source_name) {
  Json document = parse_json<Json>(json);
  if (document.is_discarded())
    return input_error("{}: not valid JSON, or nested deeper than {} levels", source_name, kMostJsonLevels);
  if (document.is_object() && document.contains("messages")) document = Json(document["messages"]);
  const JsonPlace list(document, std::string(source_name), "messages");
  if (!document.is_array() || document.empty())
    return list.expected("a list of messages, {\"role\": …, \"content\": …}");
  for (size_t i = 0; i < document.size(); ++i) {
    if (!document[i].is_object()) return list[i].expected("an object with \"role\" and \"content\"");
    INGOT_TRY(list[i]["role"].string());
  }
  return document;
}

}  // namespace ingot
