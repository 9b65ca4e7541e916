#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "data/shard_names.h"
#include "data/shards.h"

namespace ingot {
namespace {

constexpr std::string_view kFormat = "ingot-shards";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxTokens = int64_t{1} << 56;  // so that sizes in bytes never overflow

// Reads typed members of one JSON object; remembers the first that is wrong.
class Members {
 public:
  Members(const nlohmann::json& object, std::string_view where) : object_(object), where_(where) {}

  int64_t count(const char* key, int64_t most) {
    const nlohmann::json* value = find(key);
    if (value && value->is_number_unsigned() && value->get<uint64_t>() <= static_cast<uint64_t>(most))
      return value->get<int64_t>();
    return fail<int64_t>(key, fmt::format("an integer from 0 to {}", most));
  }
  bool flag(const char* key) {
    const nlohmann::json* value = find(key);
    return value && value->is_boolean() ? value->get<bool>() : fail<bool>(key, "true or false");
  }
  std::string text(const char* key) {
    const nlohmann::json* value = find(key);
    return value && value->is_string() ? value->get<std::string>() : fail<std::string>(key, "a string");
  }
  uint64_t hash(const char* key) {
    const nlohmann::json* value = find(key);
    if (value && value->is_string()) {
      const auto& digits = value->get_ref<const std::string&>();
      if (digits.size() == 16 && digits.find_first_not_of("0123456789abcdef") == std::string::npos)
        return std::stoull(digits, nullptr, 16);
    }
    return fail<uint64_t>(key, "16 hexadecimal digits");
  }
  const nlohmann::json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  template <class T>
  T fail(std::string_view key, const std::string& expected) {
    if (!error_)
      error_ =
          input_error("{}: \"{}\" is missing or wrong; expected {}. Build the shards again", where_, key, expected);
    return T();
  }
  Status status() const { return error_ ? Status(*error_) : Status(); }

 private:
  const nlohmann::json& object_;
  std::string_view where_;
  std::optional<Error> error_;
};

Result<std::vector<ShardFile>> parse_files(const nlohmann::json* list, std::string_view where) {
  if (!list || !list->is_array()) return input_error("{}: \"files\" is missing or wrong; expected a list", where);
  std::vector<ShardFile> files;
  for (const nlohmann::json& item : *list) {
    if (!item.is_object()) return input_error("{}: an entry of \"files\" is not an object", where);
    Members members(item, where);
    files.push_back({members.text("name"),
                     static_cast<uint64_t>(members.count("bytes", std::numeric_limits<int64_t>::max())),
                     members.hash("xxh3")});
    INGOT_TRY(members.status());
  }
  return files;
}

// Every file that must be there and its size, in the order in which they are listed.
std::vector<ShardFile> expected_files(const ShardIndex& index) {
  std::vector<ShardFile> files;
  const auto bytes = [](int64_t count, int64_t width) {
    return static_cast<uint64_t>(count) * static_cast<uint64_t>(width);
  };
  for (int64_t begin = 0, number = 0; begin < index.tokens; begin += index.shard_tokens, ++number)
    files.push_back(
        {shard_names::shard(number), bytes(std::min(index.shard_tokens, index.tokens - begin), index.token_width), 0});
  files.push_back({std::string(shard_names::kDocumentEnds), bytes(index.documents, 8), 0});
  files.push_back({std::string(shard_names::kDocumentHashes), bytes(index.documents, 8), 0});
  if (index.has_prompts) files.push_back({std::string(shard_names::kPromptTokens), bytes(index.documents, 4), 0});
  files.push_back({std::string(shard_names::kTokenBytes), bytes(index.vocab_size, 2), 0});
  return files;
}

Status check_files(const ShardIndex& index, std::string_view where) {
  const int64_t shards = index.tokens == 0 ? 0 : (index.tokens - 1) / index.shard_tokens + 1;
  const int64_t others = index.has_prompts ? 4 : 3;
  if (static_cast<int64_t>(index.files.size()) - others != shards)
    return input_error("{}: \"files\" lists {} files, expected {} for {} tokens", where, index.files.size(),
                       shards + others, index.tokens);
  const std::vector<ShardFile> expected = expected_files(index);
  for (size_t i = 0; i < expected.size(); ++i)
    if (index.files[i].name != expected[i].name || index.files[i].bytes != expected[i].bytes)
      return input_error("{}: file {} of \"files\" is {} with {} bytes; expected {} with {} bytes", where, i,
                         index.files[i].name, index.files[i].bytes, expected[i].name, expected[i].bytes);
  return {};
}

}  // namespace

std::string ShardIndex::to_json() const {
  nlohmann::ordered_json json{{"format", kFormat},
                              {"version", kVersion},
                              {"tokenizer_fingerprint", hash_text(tokenizer_fingerprint)},
                              {"vocab_size", vocab_size},
                              {"eos", nullptr},
                              {"token_width", token_width},
                              {"shard_tokens", shard_tokens},
                              {"tokens", tokens},
                              {"documents", documents},
                              {"empty_documents", empty_documents},
                              {"text_bytes", text_bytes},
                              {"has_prompts", has_prompts},
                              {"source_key", hash_text(source_key)}};
  if (eos) json["eos"] = *eos;
  json["files"] = nlohmann::ordered_json::array();
  for (const ShardFile& file : files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", hash_text(file.checksum)}});
  return json.dump(1) + "\n";
}

Result<ShardIndex> ShardIndex::parse(std::string_view text, std::string_view where) {
  const nlohmann::json json = parse_json<nlohmann::json>(text);
  if (!json.is_object()) return input_error("{}: not a JSON object; the shards are damaged. Build them again", where);
  Members members(json, where);
  if (members.text("format") != kFormat)
    return input_error("{}: not the index of token shards; expected \"format\": \"{}\"", where, kFormat);
  const int64_t version = members.count("version", kMaxTokens);
  if (version != kVersion)
    return input_error("{}: shard format version {}, expected {}. Build the shards again", where, version, kVersion);
  ShardIndex index;
  index.tokenizer_fingerprint = members.hash("tokenizer_fingerprint");
  index.vocab_size = members.count("vocab_size", std::numeric_limits<int32_t>::max());
  index.token_width = members.count("token_width", 4);
  index.shard_tokens = members.count("shard_tokens", kMaxTokens);
  index.tokens = members.count("tokens", kMaxTokens);
  index.documents = members.count("documents", kMaxTokens);
  index.empty_documents = members.count("empty_documents", kMaxTokens);
  index.text_bytes = members.count("text_bytes", std::numeric_limits<int64_t>::max());
  index.has_prompts = members.flag("has_prompts");
  index.source_key = members.hash("source_key");
  if (const nlohmann::json* eos = members.find("eos"); eos && !eos->is_null())
    index.eos = static_cast<int32_t>(members.count("eos", std::numeric_limits<int32_t>::max()));
  INGOT_TRY(members.status());
  if (index.token_width != 2 && index.token_width != 4)
    return input_error("{}: \"token_width\" is {}, expected 2 or 4", where, index.token_width);
  if (index.shard_tokens == 0) return input_error("{}: \"shard_tokens\" is 0", where);
  if ((index.tokens == 0) != (index.documents == 0) || index.documents > index.tokens)
    return input_error("{}: {} tokens in {} documents; expected at least a token in each", where, index.tokens,
                       index.documents);
  if (index.eos.value_or(0) >= std::max<int64_t>(index.vocab_size, 1))
    return input_error("{}: \"eos\" {} is outside the vocabulary of {}", where, *index.eos, index.vocab_size);
  INGOT_ASSIGN(index.files, parse_files(members.find("files"), where));
  INGOT_TRY(check_files(index, where));
  return index;
}

}  // namespace ingot
