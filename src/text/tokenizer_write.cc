// Writing a tokenizer.json, laid out as Hugging Face's library does.
#include <algorithm>

#include "text/overloaded.h"
#include "text/tokenizer_json.h"

namespace ingot {
namespace {

std::string in_quotes(std::string_view text) {
  return Json(std::string(text)).dump();
}

const char* word(bool flag) {
  return flag ? "true" : "false";
}

void write_added(const std::vector<AddedToken>& tokens, std::string& out) {
  out += "  \"added_tokens\": [";
  const char* separator = "\n";
  for (const AddedToken& token : tokens) {
    out += fmt::format(
        "{}    {{\"id\": {}, \"content\": {}, \"single_word\": {}, \"lstrip\": {}, \"rstrip\": {}, \"normalized\": {}, "
        "\"special\": {}}}",
        separator, token.id, in_quotes(token.content), word(token.single_word), word(token.lstrip), word(token.rstrip),
        word(token.normalized), word(token.special));
    separator = ",\n";
  }
  out += tokens.empty() ? "],\n" : "\n  ],\n";
}

void write_merges(const TokenizerParts& parts, std::string& out) {
  const auto text = [&](TokenId id) { return parts.vocabulary.text(id); };
  const auto has_space = [&](TokenId id) { return text(id).find(' ') != std::string_view::npos; };
  // "a b" is what every version reads, but cannot hold tokens with spaces.
  const bool as_pairs = std::any_of(parts.merges.begin(), parts.merges.end(), [&](const BpeMerge& merge) {
    return has_space(merge.left) || has_space(merge.right);
  });
  out += "    \"merges\": [";
  const char* separator = "\n      ";
  for (const BpeMerge& merge : parts.merges) {
    out += separator;
    if (as_pairs) {
      out += fmt::format("[{}, {}]", in_quotes(text(merge.left)), in_quotes(text(merge.right)));
    } else {
      out += in_quotes(fmt::format("{} {}", text(merge.left), text(merge.right)));
    }
    separator = ",\n      ";
  }
  out += parts.merges.empty() ? "]\n" : "\n    ]\n";
}

void write_vocabulary(const TokenizerParts& parts, std::string& out) {
  out += "    \"vocab\": {";
  const char* separator = "\n";
  for (const TokenId id : parts.model_ids) {
    out += fmt::format("{}      {}: {}", separator, in_quotes(parts.vocabulary.text(id)), id);
    separator = ",\n";
  }
  out += parts.model_ids.empty() ? "}" : "\n    }";
}

std::string token_or_null(const TokenizerParts& parts, TokenId id) {
  return id == kNoToken ? "null" : in_quotes(parts.vocabulary.text(id));
}

void write_bpe(const TokenizerParts& parts, const BpeModel::Options& options, std::string& out) {
  out += fmt::format(
      "    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": {},\n    "
      "\"continuing_subword_prefix\": null,\n"
      "    \"end_of_word_suffix\": null,\n    \"fuse_unk\": {},\n    \"byte_fallback\": {},\n    \"ignore_merges\": "
      "{},\n",
      token_or_null(parts, options.unk), word(options.fuse_unk), word(options.byte_fallback),
      word(options.ignore_merges));
  write_vocabulary(parts, out);
  out += ",\n";
  write_merges(parts, out);
}

void write_unigram(const TokenizerParts& parts, const UnigramModel::Options& options, std::string& out) {
  out += fmt::format("    \"type\": \"Unigram\",\n    \"unk_id\": {},\n    \"vocab\": [",
                     options.unk == kNoToken ? "null" : std::to_string(options.unk));
  const char* separator = "\n      ";
  for (const TokenId id : parts.model_ids) {
    out += fmt::format("{}[{}, {}]", separator, in_quotes(parts.vocabulary.text(id)),
                       parts.scores[static_cast<size_t>(id)]);
    separator = ",\n      ";
  }
  out += parts.model_ids.empty() ? "],\n" : "\n    ],\n";
  out += fmt::format("    \"byte_fallback\": {}\n", word(options.byte_fallback));
}

void write_word_piece(const TokenizerParts& parts, const WordPieceModel::Options& options, std::string& out) {
  out += fmt::format(
      "    \"type\": \"WordPiece\",\n    \"unk_token\": {},\n    \"continuing_subword_prefix\": {},\n"
      "    \"max_input_chars_per_word\": {},\n",
      token_or_null(parts, options.unk), in_quotes(options.prefix), options.longest_word);
  write_vocabulary(parts, out);
  out += "\n";
}

void write_model(const TokenizerParts& parts, std::string& out) {
  out += "  \"model\": {\n";
  std::visit(Overloaded{[&](const BpeModel::Options& options) { write_bpe(parts, options, out); },
                        [&](const UnigramModel::Options& options) { write_unigram(parts, options, out); },
                        [&](const WordPieceModel::Options& options) { write_word_piece(parts, options, out); }},
             parts.options);
  out += "  }\n";
}

}  // namespace

std::string write_tokenizer_json(const TokenizerParts& parts) {
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n";
  write_added(parts.added.tokens(), out);
  out += fmt::format("  \"normalizer\": {},\n  \"pre_tokenizer\": {},\n  \"post_processor\": {},\n  \"decoder\": {},\n",
                     parts.stages.normalizer, parts.stages.pre_tokenizer, parts.stages.post_processor,
                     parts.stages.decoder);
  write_model(parts, out);
  out += "}\n";
  return out;
}

}  // namespace ingot
