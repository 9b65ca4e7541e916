// From the parts of a tokenizer.json to a tokenizer, checking each against the others.
#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/log.h"
#include "text/byte_alphabet.h"
#include "text/overloaded.h"
#include "text/tokenizer_json.h"

namespace ingot {
namespace {

using Ids = std::unordered_map<std::string_view, TokenId>;
using Tokens = std::vector<std::pair<std::string_view, TokenId>>;

std::string in_quotes(std::string_view text) {
  return describe(Json(std::string(text)));
}

class Builder {
 public:
  Builder(const TokenizerFile& file, std::string_view source)
      : file_(file),
        source_(source),
        top_(file.document, source_, ""),
        model_(top_["model"]),
        parts_(std::make_shared<TokenizerParts>()) {}

  Result<std::shared_ptr<TokenizerParts>> build() {
    INGOT_TRY(check_head());
    INGOT_ASSIGN(parts_->normalizer, Normalizer::read(top_["normalizer"]));
    INGOT_ASSIGN(parts_->pre_tokenizer, PreTokenizer::read(top_["pre_tokenizer"]));
    INGOT_ASSIGN(parts_->decoder, Decoder::read(top_["decoder"]));
    INGOT_TRY(collect_ids());
    INGOT_TRY(fill_vocabulary());
    INGOT_ASSIGN(parts_->post_processor, PostProcessor::read(top_["post_processor"], parts_->vocabulary));
    INGOT_TRY(make_model());
    keep_stages();
    name_roles();
    parts_->fingerprint = fingerprint();
    return parts_;
  }

 private:
  Status check_head() {
    INGOT_TRY(top_.is_object_with({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                                   "post_processor", "decoder", "model"}));
    if (!top_["version"].is_null() && top_["version"].value() != "1.0") return top_["version"].expected("\"1.0\"");
    for (const char* key : {"truncation", "padding"}) {
      if (!top_[key].is_null()) return top_[key].unsupported("cutting or padding texts (set it to null)");
    }
    return check_model_head();
  }

  // Older files do not name the type.
  Result<std::string> model_type() const {
    if (!model_.value().is_object()) return model_.expected("an object");
    if (!model_["type"].is_null()) return model_.type();
    if (file_.is_scored) return std::string("Unigram");
    return std::string(model_["max_input_chars_per_word"].is_null() ? "BPE" : "WordPiece");
  }

  Status check_model_head() {
    INGOT_ASSIGN(type_, model_type());
    if (type_ == "BPE") {
      INGOT_TRY(
          model_.is_object_with({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                 "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
    } else if (type_ == "Unigram") {
      INGOT_TRY(model_.is_object_with({"type", "unk_id", "byte_fallback", "vocab"}));
    } else if (type_ == "WordPiece") {
      INGOT_TRY(model_.is_object_with(
          {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}));
    } else {
      return model_["type"].unsupported(fmt::format("the model {} (known: BPE, Unigram, WordPiece)", describe(type_)));
    }
    for (const char* key : {"vocab", "merges"}) {  // what was well-formed is in file_
      if (!model_[key].is_null())
        return model_[key].expected(key == std::string_view("merges") ? "an array" : "the tokens");
    }
    if (file_.is_scored != (type_ == "Unigram")) {
      return model_["vocab"].wrong(
          file_.is_scored ? fmt::format("expected an object, found an array of {}", file_.vocabulary.size())
                          : std::string("expected an array of tokens and scores, found an object"));
    }
    if (type_ != "BPE" && !file_.merges.empty()) return model_["merges"].wrong("only a BPE has merges");
    return {};
  }

  // Every token's id, each text and each id once.
  Status collect_ids() {
    ids_.reserve(file_.vocabulary.size());
    for (const auto& [text, id] : file_.vocabulary) {
      if (!ids_.emplace(text, static_cast<TokenId>(id)).second)
        return input_error("{}: model.vocab: the token {} stands twice", source_, in_quotes(text));
      size_ = std::max(size_, id + 1);
    }
    INGOT_ASSIGN(added_, read_added_tokens(top_["added_tokens"]));
    for (const AddedToken& token : added_) size_ = std::max(size_, int64_t{token.id} + 1);
    owners_.resize(static_cast<size_t>(size_));
    for (const auto& [text, id] : file_.vocabulary) {
      std::string_view& owner = owners_[static_cast<size_t>(id)];
      if (owner.data() != nullptr) {
        return input_error("{}: model.vocab: the id {} belongs to both {} and {}", source_, id, in_quotes(owner),
                           in_quotes(text));
      }
      owner = text;
    }
    std::unordered_set<std::string_view> contents;
    for (size_t i = 0; i < added_.size(); ++i) {
      const AddedToken& token = added_[i];
      const JsonPlace place = top_["added_tokens"][i];
      if (!contents.insert(token.content).second)
        return place.wrong(fmt::format("the token {} stands twice", in_quotes(token.content)));
      const auto known = ids_.find(token.content);
      if (known != ids_.end() && known->second != token.id) {
        return place.wrong(fmt::format("the token {} has id {} here and {} elsewhere", in_quotes(token.content),
                                       token.id, known->second));
      }
      std::string_view& owner = owners_[static_cast<size_t>(token.id)];
      if (owner.data() != nullptr && owner != token.content) {
        return place.wrong(
            fmt::format("the id {} belongs to both {} and {}", token.id, in_quotes(owner), in_quotes(token.content)));
      }
      owner = token.content;
    }
    return {};
  }

  Status fill_vocabulary() {
    parts_->vocabulary = Vocabulary(size_);
    for (const auto& [text, id] : file_.vocabulary) {
      parts_->model_ids.push_back(static_cast<TokenId>(id));
      parts_->vocabulary.set(static_cast<TokenId>(id), text, parts_->decoder.token_bytes(text, false),
                             parts_->decoder.token_bytes(text, true), false);
    }
    std::sort(parts_->model_ids.begin(), parts_->model_ids.end());
    // An added token is found in the text as it is written there, so that is what it stands for, unless it was the
    // normalized text that it was found in.
    for (const AddedToken& token : added_) {
      // What the model makes of normalized text too, it stands for as the decoder says.
      const bool of_model = !token.special && ids_.contains(token.content);
      const bool verbatim =
          (!token.normalized || parts_->normalizer.empty()) && !of_model && !parts_->decoder.joins_words();
      const auto bytes = [&](bool is_first) {
        return verbatim ? token.content : parts_->decoder.token_bytes(token.content, is_first);
      };
      parts_->vocabulary.set(token.id, token.content, bytes(false), bytes(true), token.special);
    }
    parts_->added = AddedTokens(added_, parts_->normalizer);
    return {};
  }

  // Of the models that build tries of it.
  Status check_vocabulary_size() const {
    size_t bytes = 0;
    for (const auto& [text, id] : file_.vocabulary) bytes += text.size();
    if (bytes <= ByteTrie::kMostBytes) return {};
    return model_["vocab"].unsupported(
        fmt::format("a vocabulary of {} bytes (at most {})", bytes, ByteTrie::kMostBytes));
  }

  Status make_model() {
    if (type_ != "BPE" && parts_->pre_tokenizer.byte_level())
      return top_["pre_tokenizer"].unsupported(fmt::format("ByteLevel before the model {}", type_));
    if (type_ != "BPE") INGOT_TRY(check_vocabulary_size());
    if (type_ == "Unigram") return make_unigram();
    if (type_ == "WordPiece") return make_word_piece();
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model_[key].is_null() && model_[key].value() != "")
        return model_[key].unsupported("a prefix or suffix of tokens");
    }
    const Json& dropout = model_["dropout"].value();
    if (!dropout.is_null() && dropout != 0) return model_["dropout"].unsupported("BPE dropout");
    BpeModel::Options options;
    INGOT_TRY(read_bpe_options(options));
    INGOT_TRY(read_merges());
    make_bpe(options);
    return {};
  }

  Status make_unigram() {
    UnigramModel::Options options;
    INGOT_ASSIGN(options.byte_fallback, model_["byte_fallback"].boolean_or(false));
    if (!model_["unk_id"].is_null()) {
      INGOT_ASSIGN(const int64_t unk, model_["unk_id"].integer(0, static_cast<int64_t>(file_.vocabulary.size()) - 1));
      options.unk = static_cast<TokenId>(unk);
    }
    std::vector<double> scores;
    for (const std::string& number : file_.scores) scores.push_back(read_score(number));
    const double lowest = scores.empty() ? 0 : *std::ranges::min_element(scores);
    Tokens tokens = usable_tokens();
    std::erase_if(tokens, [&](const auto& token) { return token.second == options.unk; });  // is never spelled out
    parts_->model = std::make_unique<UnigramModel>(tokens, std::move(scores), lowest, byte_tokens(), options);
    parts_->options = options;
    parts_->scores = file_.scores;
    return {};
  }

  Status make_word_piece() {
    WordPieceModel::Options options;
    if (!model_["continuing_subword_prefix"].is_null()) {
      INGOT_ASSIGN(options.prefix, model_["continuing_subword_prefix"].string());
    }
    if (!model_["max_input_chars_per_word"].is_null()) {
      INGOT_ASSIGN(options.longest_word, model_["max_input_chars_per_word"].integer(0, INT32_MAX));
    }
    INGOT_ASSIGN(const std::string unk, model_["unk_token"].string());
    const auto known = ids_.find(unk);
    if (known == ids_.end()) return model_["unk_token"].expected("a token of model.vocab");
    options.unk = known->second;
    parts_->model = std::make_unique<WordPieceModel>(usable_tokens(), options);
    parts_->options = options;
    return {};
  }

  Status read_bpe_options(BpeModel::Options& options) {
    options.byte_level = parts_->pre_tokenizer.byte_level();
    INGOT_ASSIGN(options.ignore_merges, model_["ignore_merges"].boolean_or(false));
    INGOT_ASSIGN(options.byte_fallback, model_["byte_fallback"].boolean_or(false));
    INGOT_ASSIGN(options.fuse_unk, model_["fuse_unk"].boolean_or(false));
    if (!model_["unk_token"].is_null()) {
      INGOT_ASSIGN(const std::string unk, model_["unk_token"].string());
      const auto known = ids_.find(unk);
      if (known == ids_.end() && !unk.empty()) return model_["unk_token"].expected("a token of model.vocab");
      if (known != ids_.end()) options.unk = known->second;
    }
    return {};
  }

  Status read_merges() {
    std::unordered_set<uint64_t> seen;
    seen.reserve(file_.merges.size());
    std::string merged;
    for (size_t i = 0; i < file_.merges.size(); ++i) {
      const auto& [left, right] = file_.merges[i];
      merged = left + right;
      const std::array<std::string_view, 3> texts{left, right, merged};
      std::array<TokenId, 3> ids{};
      for (size_t k = 0; k < 3; ++k) {
        const auto known = ids_.find(texts[k]);
        if (known == ids_.end()) {
          return input_error("{}: model.merges[{}]: {} and {} need the token {}, which model.vocab lacks", source_, i,
                             in_quotes(left), in_quotes(right), in_quotes(texts[k]));
        }
        ids[k] = known->second;
      }
      if (!seen.insert(static_cast<uint64_t>(ids[0]) << 32 | static_cast<uint32_t>(ids[1])).second) {
        return input_error("{}: model.merges[{}]: {} and {} stand twice", source_, i, in_quotes(left),
                           in_quotes(right));
      }
      parts_->merges.push_back({ids[0], ids[1], ids[2]});
    }
    return {};
  }

  // The tokens that text can become: special ones only where they were asked for, never by chance.
  Tokens usable_tokens() const {
    Tokens tokens;
    for (const auto& [text, id] : file_.vocabulary) {
      const auto token = static_cast<TokenId>(id);
      if (!parts_->vocabulary.special(token)) tokens.emplace_back(text, token);
    }
    return tokens;
  }

  // The ids of <0x00> to <0xFF>.
  std::array<TokenId, 256> byte_tokens() const {
    std::array<TokenId, 256> tokens;
    tokens.fill(kNoToken);
    for (const auto& [text, id] : file_.vocabulary) {
      if (const int byte = fallback_byte(text); byte >= 0) tokens[static_cast<size_t>(byte)] = static_cast<TokenId>(id);
    }
    return tokens;
  }

  void make_bpe(const BpeModel::Options& options) {
    Tokens tokens = usable_tokens();
    std::vector<std::string> bytes;
    if (options.byte_level) {
      bytes.reserve(tokens.size());  // views of its strings are kept
      size_t kept = 0;
      for (const auto& [text, id] : tokens) {
        auto plain = alphabet_to_bytes(text);
        if (!plain) continue;
        tokens[kept++] = {bytes.emplace_back(std::move(*plain)), id};
      }
      tokens.resize(kept);
      warn_of_missing_bytes(tokens);
    }
    parts_->model = std::make_unique<BpeModel>(tokens, parts_->merges, byte_tokens(), options);
    parts_->options = options;
  }

  void warn_of_missing_bytes(const Tokens& tokens) const {
    const auto single = std::ranges::count_if(tokens, [](const auto& token) { return token.first.size() == 1; });
    if (single < 256) {
      log_warning("{}: the vocabulary has {} of the 256 bytes; text with the others does not survive encoding", source_,
                  single);
    }
  }

  void keep_stages() {
    parts_->stages = {top_["normalizer"].value().dump(), top_["pre_tokenizer"].value().dump(),
                      top_["post_processor"].value().dump(), top_["decoder"].value().dump()};
  }

  void name_roles() {
    const auto find = [&](std::initializer_list<std::string_view> names) -> std::optional<TokenId> {
      for (const std::string_view name : names) {
        for (const AddedToken& token : added_) {
          if (token.special && token.content == name) return token.id;
        }
      }
      return std::nullopt;
    };
    parts_->eos = find({"</s>", "<|endoftext|>", "<|end_of_text|>", "<eos>", "<|im_end|>"});
    parts_->bos = find({"<s>", "<|begin_of_text|>", "<bos>", "<|endoftext|>"});
  }

  // What the model's options say, for the fingerprint.
  std::string describe_options() const {
    return std::visit(Overloaded{[](const BpeModel::Options& bpe) {
                                   return fmt::format("{} {} {} {} {}", bpe.byte_level, bpe.ignore_merges,
                                                      bpe.byte_fallback, bpe.fuse_unk, bpe.unk);
                                 },
                                 [](const UnigramModel::Options& unigram) {
                                   return fmt::format("Unigram {} {}", unigram.byte_fallback, unigram.unk);
                                 },
                                 [](const WordPieceModel::Options& pieces) {
                                   return fmt::format("WordPiece {} {} {}", pieces.prefix, pieces.longest_word,
                                                      pieces.unk);
                                 }},
                      parts_->options);
  }

  uint64_t fingerprint() const {
    std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n", parts_->stages.normalizer, parts_->stages.pre_tokenizer,
                                   parts_->stages.post_processor, parts_->stages.decoder, describe_options());
    const auto add_number = [&](int64_t number) {
      for (int i = 0; i < 8; ++i) text.push_back(static_cast<char>(number >> (8 * i)));
    };
    const auto add_text = [&](std::string_view part) {
      add_number(static_cast<int64_t>(part.size()));
      text += part;
    };
    for (const TokenId id : parts_->model_ids) {
      add_number(id);
      add_text(parts_->vocabulary.text(id));
    }
    for (const BpeMerge& merge : parts_->merges) {
      add_number(merge.left);
      add_number(merge.right);
    }
    for (const std::string& score : parts_->scores) add_text(score);
    std::map<TokenId, const AddedToken*> by_id;
    for (const AddedToken& token : added_) by_id[token.id] = &token;
    for (const auto& [id, token] : by_id) {
      add_number(id);
      add_text(token->content);
      for (const bool flag : {token->special, token->single_word, token->lstrip, token->rstrip, token->normalized})
        text.push_back(flag ? 1 : 0);
    }
    return hash_bytes(text);
  }

  const TokenizerFile& file_;
  std::string source_;
  JsonPlace top_, model_;
  std::shared_ptr<TokenizerParts> parts_;
  Ids ids_;  // of model.vocab; views of file_
  std::vector<AddedToken> added_;
  std::vector<std::string_view> owners_;  // by id
  int64_t size_ = 0;
  std::string type_;  // of the model
};

}  // namespace

Result<std::shared_ptr<TokenizerParts>> build_tokenizer(const TokenizerFile& file, std::string_view source_name) {
  return Builder(file, source_name).build();
}

}  // namespace ingot
