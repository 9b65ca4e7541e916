#include "text/post_processor.h"

#include "text/json_reader.h"

namespace ingot {
namespace {

constexpr int kMostNested = 16;

class Reader {
 public:
  explicit Reader(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  Status read(const JsonPlace& place, int depth) {
    INGOT_ASSIGN(const std::string type, place.type());
    if (type == "ByteLevel") return place.is_object_with({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (type == "TemplateProcessing") return read_template(place);
    if (type == "BertProcessing" || type == "RobertaProcessing") return read_ends(place);
    if (type != "Sequence") {
      return place["type"].unsupported(
          fmt::format("the post-processor {} (known: ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing, "
                      "Sequence)",
                      describe(type)));
    }
    INGOT_TRY(place.is_object_with({"type", "processors"}));
    const JsonPlace list = place["processors"];
    INGOT_TRY(list.is_array());
    if (depth == kMostNested) return place.unsupported("a Sequence nested this deep");
    for (size_t i = 0; i < list.value().size(); ++i) INGOT_TRY(read(list[i], depth + 1));
    return {};
  }
  PostProcessor result;

 private:
  Status only_one(const JsonPlace& place) {
    if (has_template_) return place.unsupported("a second post-processor that adds tokens");
    has_template_ = true;
    return {};
  }

  // Bert: [CLS] before, [SEP] after. Roberta's other keys are about offsets.
  Status read_ends(const JsonPlace& place) {
    INGOT_TRY(place.is_object_with({"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
    INGOT_TRY(only_one(place));
    INGOT_TRY(add_end(place["cls"], result.before));
    return add_end(place["sep"], result.after);
  }

  // ["[CLS]", 101]
  Status add_end(const JsonPlace& place, std::vector<TokenId>& ids) {
    if (!place.value().is_array() || place.value().size() != 2) return place.expected("a token and its id");
    INGOT_ASSIGN(const int64_t id, place[1].integer(0, kMostTokens - 1));
    if (!vocabulary_.contains(static_cast<TokenId>(id))) return place[1].expected("the id of a token");
    ids.push_back(static_cast<TokenId>(id));
    return {};
  }

  Status read_template(const JsonPlace& place) {
    INGOT_TRY(place.is_object_with({"type", "single", "pair", "special_tokens"}));
    INGOT_TRY(only_one(place));
    const JsonPlace single = place["single"];
    INGOT_TRY(single.is_array());
    bool seen_text = false;
    for (size_t i = 0; i < single.value().size(); ++i) {
      const JsonPlace piece = single[i];
      INGOT_TRY(piece.is_object_with({"SpecialToken", "Sequence"}));
      if (!piece["Sequence"].is_null()) {
        INGOT_TRY(piece["Sequence"].is_object_with({"id", "type_id"}));
        INGOT_ASSIGN(const std::string id, piece["Sequence"]["id"].string());
        if (id != "A" || seen_text)
          return piece["Sequence"].wrong("a template for one text must hold the sequence A once");
        seen_text = true;
        continue;
      }
      INGOT_TRY(piece["SpecialToken"].is_object_with({"id", "type_id"}));
      INGOT_ASSIGN(const std::string name, piece["SpecialToken"]["id"].string());
      INGOT_TRY(add_special(place["special_tokens"][name], seen_text ? result.after : result.before));
    }
    if (!seen_text) return single.wrong("a template for one text must hold the sequence A once");
    return {};
  }

  Status add_special(const JsonPlace& place, std::vector<TokenId>& ids) {
    INGOT_TRY(place.is_object_with({"id", "ids", "tokens"}));
    const JsonPlace list = place["ids"];
    INGOT_TRY(list.is_array());
    for (size_t i = 0; i < list.value().size(); ++i) {
      INGOT_ASSIGN(const int64_t id, list[i].integer(0, kMostTokens - 1));
      if (!vocabulary_.contains(static_cast<TokenId>(id))) return list[i].expected("the id of a token");
      ids.push_back(static_cast<TokenId>(id));
    }
    return {};
  }

  const Vocabulary& vocabulary_;
  bool has_template_ = false;
};

}  // namespace

Result<PostProcessor> PostProcessor::read(const JsonPlace& place, const Vocabulary& vocabulary) {
  Reader reader(vocabulary);
  if (!place.is_null()) INGOT_TRY(reader.read(place, 0));
  return reader.result;
}

}  // namespace ingot
