#include "export/gguf_tokenizer_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/log.h"

namespace ingot {
namespace {

using Json = nlohmann::json;
using Merge = std::pair<std::string, std::string>;

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581, SentencePiece's space

// llama.cpp's pre-tokenizers are code of its own, each known by a name; these cut as the regex does. A name also says
// whether a piece that is a token stays whole whatever the merges say.
struct PreTokenizerName {
  std::string_view regex;
  bool ignore_merges;
  std::string_view name;
};
constexpr std::string_view kGpt2Regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Regex = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                                          R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Regex = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                                         R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::array<PreTokenizerName, 4> kPreTokenizers{{{kGpt2Regex, false, "gpt-2"},
                                                          {kLlama3Regex, true, "llama-bpe"},
                                                          {kLlama3Regex, false, "smaug-bpe"},
                                                          {kQwen2Regex, false, "qwen2"}}};

std::string type_of(const Json& stage) {
  return stage.value("type", std::string());
}

// The stages of a "Sequence" (which may hold others), or the one stage, or none.
std::vector<Json> flattened(const Json& stage, const char* list) {
  if (stage.is_null()) return {};
  if (type_of(stage) != "Sequence") return {stage};
  std::vector<Json> all;
  for (const Json& inner : stage.at(list))
    for (Json& one : flattened(inner, list)) all.push_back(std::move(one));
  return all;
}

bool is_plain_split(const Json& stage) {
  return type_of(stage) == "Split" && stage.at("pattern").contains("Regex") &&
         stage.value("behavior", "") == "Isolated" && !stage.value("invert", false);
}

class JsonTokenizer {
 public:
  JsonTokenizer(std::string_view json, const std::string& where, GgufVocabulary& vocabulary, GgufMetadata& metadata)
      : json_(Json::parse(json)),
        model_(json_.at("model")),
        normalizers_(flattened(json_.at("normalizer"), "normalizers")),
        pre_tokenizers_(flattened(json_.at("pre_tokenizer"), "pretokenizers")),
        where_(where),
        vocabulary_(vocabulary),
        metadata_(metadata) {}

  Status add() {
    if (type_of(model_) != "BPE") return usage_error("its model is {}; expected BPE", type_of(model_));
    list_tokens();
    const bool byte_level = std::any_of(pre_tokenizers_.begin(), pre_tokenizers_.end(),
                                        [](const Json& stage) { return type_of(stage) == "ByteLevel"; });
    return byte_level ? add_byte_level() : add_characters();
  }

 private:
  void list_tokens() {
    for (const auto& [text, id] : model_.at("vocab").items())
      vocabulary_.set(id.get<size_t>(), text, GgufTokenType::normal);
    for (const Json& token : json_.at("added_tokens")) {
      const std::string content = token.at("content");
      vocabulary_.set(token.at("id").get<size_t>(), content,
                      token.at("special").get<bool>() ? GgufTokenType::control : GgufTokenType::user_defined);
      for (const char* flag : {"lstrip", "rstrip", "single_word"})
        if (token.at(flag).get<bool>())
          log_warning("{}: llama.cpp does not look at what is around a token: {} of {}", where_, flag, content);
    }
  }

  std::vector<Merge> merges() const {
    std::vector<Merge> pairs;
    for (const Json& merge : model_.at("merges")) {
      if (merge.is_array()) {
        pairs.emplace_back(merge.at(0), merge.at(1));
        continue;
      }
      const std::string text = merge;
      const size_t space = text.find(' ');
      pairs.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    return pairs;
  }

  // ---- byte-level BPE

  Status add_byte_level() {
    INGOT_ASSIGN(const std::string name, pre_tokenizer_name());
    for (const Json& normalizer : normalizers_) {
      if (type_of(normalizer) != "NFC") return usage_error("its normalizer has {}", type_of(normalizer));
      log_warning("{}: llama.cpp does not normalize (NFC); text that is not in that form gets other tokens", where_);
    }
    std::vector<std::string> joined;
    for (const auto& [left, right] : merges()) {
      if ((left + right).find(' ') != std::string::npos)
        return usage_error("a merge has a space in \"{}\" or \"{}\"", left, right);
      joined.push_back(left + " " + right);
    }
    metadata_.emplace_back("tokenizer.ggml.model", std::string("gpt2"));
    metadata_.emplace_back("tokenizer.ggml.pre", name);
    metadata_.emplace_back("tokenizer.ggml.merges", std::move(joined));
    return {};
  }

  Result<std::string> pre_tokenizer_name() const {
    INGOT_ASSIGN(const std::string regex, pre_tokenizer_regex());
    const bool ignore_merges = model_.value("ignore_merges", false);
    for (const PreTokenizerName& known : kPreTokenizers)
      if (known.regex == regex && known.ignore_merges == ignore_merges) return std::string(known.name);
    return usage_error("no pre-tokenizer of llama.cpp cuts by {} with ignore_merges {}", regex, ignore_merges);
  }

  // ByteLevel with its own regex, or after a Split.
  Result<std::string> pre_tokenizer_regex() const {
    const Json& last = pre_tokenizers_.back();
    if (type_of(last) == "ByteLevel" && !last.value("add_prefix_space", true)) {
      const bool own_regex = last.value("use_regex", true);
      if (pre_tokenizers_.size() == 1 && own_regex) return std::string(kGpt2Regex);
      if (pre_tokenizers_.size() == 2 && !own_regex && is_plain_split(pre_tokenizers_.front()))
        return pre_tokenizers_.front().at("pattern").at("Regex").get<std::string>();
    }
    return usage_error("no pre-tokenizer of llama.cpp is like {}", json_.at("pre_tokenizer").dump());
  }

  // ---- BPE on characters with byte fallback, as SentencePiece makes it

  Status add_characters() {
    INGOT_ASSIGN(const bool space_prefix, puts_space_first());
    INGOT_TRY(mark_special_pieces());
    INGOT_ASSIGN(std::vector<float> scores, scores_of_merges());
    metadata_.emplace_back("tokenizer.ggml.model", std::string("llama"));
    metadata_.emplace_back("tokenizer.ggml.pre", std::string("default"));
    metadata_.emplace_back("tokenizer.ggml.add_space_prefix", space_prefix);
    metadata_.emplace_back("tokenizer.ggml.scores", std::move(scores));
    return {};
  }

  // Spaces become U+2581: by normalizers, or by Metaspace. Whether one is put before the text.
  Result<bool> puts_space_first() const {
    std::vector<Json> stages = normalizers_;
    stages.insert(stages.end(), pre_tokenizers_.begin(), pre_tokenizers_.end());
    const auto replaces = [&](const Json& stage) {
      return type_of(stage) == "Replace" && stage.at("pattern").value("String", "") == " " &&
             stage.value("content", "") == kSpace;
    };
    const auto prepends = [&](const Json& stage) {
      return type_of(stage) == "Prepend" && stage.value("prepend", "") == kSpace;
    };
    if (stages.size() == 1 && replaces(stages[0])) return false;
    if (stages.size() == 2 && prepends(stages[0]) && replaces(stages[1])) return true;
    if (stages.size() == 1 && type_of(stages[0]) == "Metaspace") return metaspace_prefix(stages[0]);
    return usage_error("llama.cpp has nothing like the normalizer {} with the pre-tokenizer {}",
                       json_.at("normalizer").dump(), json_.at("pre_tokenizer").dump());
  }

  Result<bool> metaspace_prefix(const Json& stage) const {
    if (stage.value("replacement", "") != kSpace)
      return usage_error("its Metaspace writes another character than U+2581");
    const std::string scheme =
        stage.value("prepend_scheme", stage.value("add_prefix_space", true) ? "always" : "never");
    if (scheme == "first")
      log_warning("{}: llama.cpp puts a space after each special token, not at the start of the text alone", where_);
    if (!stage.value("split", true)) return scheme != "never";
    for (size_t id = 0; id < vocabulary_.size(); ++id)
      if (vocabulary_.is_normal(id) && vocabulary_.text(id).find(kSpace, 1) != std::string::npos)
        return usage_error("its Metaspace cuts before each space, which llama.cpp does not, and there is the token {}",
                           vocabulary_.text(id));
    return scheme != "never";
  }

  Status mark_special_pieces() {
    if (!model_.value("byte_fallback", false)) return usage_error("its model has neither ByteLevel nor byte_fallback");
    std::unordered_map<std::string, size_t> ids;
    for (size_t id = 0; id < vocabulary_.size(); ++id) ids.emplace(vocabulary_.text(id), id);
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = ids.find(fmt::format("<0x{:02X}>", byte));
      if (found == ids.end()) return usage_error("it lacks the token <0x{:02X}>", byte);
      vocabulary_.set_type(found->second, GgufTokenType::byte);
    }
    if (!model_.at("unk_token").is_string()) return {};
    const auto unknown = ids.find(model_.at("unk_token").get<std::string>());
    if (unknown == ids.end()) return {};
    vocabulary_.set_type(unknown->second, GgufTokenType::unknown);
    metadata_.emplace_back("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(unknown->second));
    return {};
  }

  // llama.cpp joins the neighbours whose joint token has the highest score, whatever they are. That is what the merges
  // say if the merges of one token stand together and no way to make a token from two is missing.
  Result<std::vector<float>> scores_of_merges() const {
    std::unordered_map<std::string, float> rank;
    std::set<Merge> pairs;
    std::string latest;
    for (const Merge& pair : merges()) {
      std::string merged = pair.first + pair.second;
      if (merged != latest && !rank.emplace(merged, static_cast<float>(rank.size())).second)
        return usage_error("the merges that make \"{}\" do not stand together, so no score can say their order",
                           merged);
      latest = std::move(merged);
      pairs.insert(pair);
    }
    INGOT_TRY(check_all_ways(pairs));
    std::vector<float> scores(vocabulary_.size(), 0.0f);
    auto next = static_cast<float>(rank.size());  // characters, which nothing is merged to
    for (size_t id = 0; id < scores.size(); ++id) {
      if (!vocabulary_.is_normal(id)) continue;
      const auto found = rank.find(vocabulary_.text(id));
      scores[id] = found != rank.end() ? -found->second : -next++;
    }
    return scores;
  }

  Status check_all_ways(const std::set<Merge>& pairs) const {
    std::unordered_set<std::string> normal;
    for (size_t id = 0; id < vocabulary_.size(); ++id)
      if (vocabulary_.is_normal(id)) normal.insert(vocabulary_.text(id));
    for (size_t id = 0; id < vocabulary_.size(); ++id) {
      const std::string& token = vocabulary_.text(id);
      for (size_t cut = 1; vocabulary_.is_normal(id) && cut < token.size(); ++cut) {
        const bool inside_character = (static_cast<unsigned char>(token[cut]) & 0xc0) == 0x80;
        const Merge pair{token.substr(0, cut), token.substr(cut)};
        if (!inside_character && normal.contains(pair.first) && normal.contains(pair.second) && !pairs.contains(pair))
          return usage_error("\"{}\", \"{}\" and \"{}\" are tokens, but no merge joins them, as llama.cpp would",
                             pair.first, pair.second, token);
      }
    }
    return {};
  }

  const Json json_;
  const Json& model_;
  const std::vector<Json> normalizers_, pre_tokenizers_;
  const std::string& where_;
  GgufVocabulary& vocabulary_;
  GgufMetadata& metadata_;
};

}  // namespace

Status add_json_tokenizer(std::string_view json, const std::string& where, GgufVocabulary& vocabulary,
                          GgufMetadata& metadata) {
  return JsonTokenizer(json, where, vocabulary, metadata).add();
}

}  // namespace ingot
