// Which token is BOS and which EOS: what the configuration files of a model directory say.
#include "base/files.h"
#include "text/tokenizer_json.h"

namespace ingot {
namespace {

// The file's object, null where it does not exist.
Result<Json> read_optional(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return Json();
  INGOT_ASSIGN(const std::string text, read_file(path));
  return parse_json_object(text, path.string());
}

// tokenizer_config.json: "bos_token" is a string, an object with "content", or null.
Status by_name(const JsonPlace& place, const TokenizerParts& parts, std::optional<TokenId>& role) {
  if (place.is_null()) return {};
  INGOT_ASSIGN(const std::string name, (place.value().is_object() ? place["content"] : place).string());
  for (TokenId id = 0; id < parts.vocabulary.size(); ++id) {
    if (!parts.vocabulary.contains(id) || parts.vocabulary.text(id) != name) continue;
    role = id;
    return {};
  }
  return place.expected("a token of the vocabulary");
}

Result<TokenId> known_id(const JsonPlace& place, const TokenizerParts& parts) {
  INGOT_ASSIGN(const int64_t id, place.integer(0, kMostTokens - 1));
  if (!parts.vocabulary.contains(static_cast<TokenId>(id)))
    return place.expected("the id of a token of the vocabulary");
  return static_cast<TokenId>(id);
}

// generation_config.json: "eos_token_id" is an id, a list of ids (of which the first has the role), or null.
Result<std::vector<TokenId>> known_ids(const JsonPlace& place, const TokenizerParts& parts) {
  std::vector<TokenId> ids;
  if (place.is_null()) return ids;
  const bool is_list = place.value().is_array();
  for (size_t i = 0; i < (is_list ? place.value().size() : 1); ++i) {
    INGOT_ASSIGN(const TokenId id, known_id(is_list ? place[i] : place, parts));
    ids.push_back(id);
  }
  return ids;
}

// What a text gets at its ends, which a .model does not say: BOS alone unless the configuration says otherwise.
Status read_added_ends(const JsonPlace& place, TokenizerParts& parts) {
  INGOT_ASSIGN(const bool bos, place["add_bos_token"].boolean_or(true));
  INGOT_ASSIGN(const bool eos, place["add_eos_token"].boolean_or(false));
  parts.post_processor = {};
  if (bos && parts.bos) parts.post_processor.before = {*parts.bos};
  if (eos && parts.eos) parts.post_processor.after = {*parts.eos};
  return {};
}

}  // namespace

Status read_token_roles(const std::string& directory, TokenizerParts& parts) {
  const fs::path names_path = fs::path(directory) / "tokenizer_config.json";
  const fs::path ids_path = fs::path(directory) / "generation_config.json";
  INGOT_ASSIGN(const Json names, read_optional(names_path));
  INGOT_ASSIGN(const Json ids, read_optional(ids_path));
  return read_token_roles({names, names_path.string(), ""}, {ids, ids_path.string(), ""}, parts);
}

Status read_token_roles(const JsonPlace& names, const JsonPlace& ids, TokenizerParts& parts) {
  // A name in the tokenizer's own configuration outranks an id in the generation's.
  INGOT_ASSIGN(const std::vector<TokenId> starts, known_ids(ids["bos_token_id"], parts));
  INGOT_ASSIGN(parts.ends, known_ids(ids["eos_token_id"], parts));
  if (!starts.empty()) parts.bos = starts.front();
  if (!parts.ends.empty()) parts.eos = parts.ends.front();
  INGOT_TRY(by_name(names["bos_token"], parts, parts.bos));
  INGOT_TRY(by_name(names["eos_token"], parts, parts.eos));
  return parts.sentencepiece.empty() ? Status() : read_added_ends(names, parts);
}

}  // namespace ingot
