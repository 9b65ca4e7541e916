#include "text/metaspace.h"

#include "text/json_reader.h"
#include "text/utf8.h"

namespace ingot {

Result<MetaspaceRule> MetaspaceRule::read(const JsonPlace& place) {
  INGOT_TRY(place.is_object_with({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"}));
  MetaspaceRule metaspace;
  INGOT_ASSIGN(metaspace.replacement, place["replacement"].string());
  const std::string& text = metaspace.replacement;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (text.empty() || decode_utf8(bytes, bytes + text.size()).size != text.size())
    return place["replacement"].expected("one character");
  INGOT_ASSIGN(metaspace.split, place["split"].boolean_or(true));
  const JsonPlace scheme = place["prepend_scheme"];
  if (!scheme.is_null()) {
    INGOT_ASSIGN(const std::string name, scheme.string());
    if (name != "always" && name != "first" && name != "never")
      return scheme.expected("\"always\", \"first\" or \"never\"");
    metaspace.prepend = name == "first" ? Prepend::first : name == "never" ? Prepend::never : Prepend::always;
  }
  INGOT_ASSIGN(const bool prefix, place["add_prefix_space"].boolean_or(true));  // how older files say it
  if (prefix) return metaspace;
  if (!scheme.is_null() && metaspace.prepend != Prepend::never)
    return place["add_prefix_space"].wrong("false contradicts the prepend_scheme beside it");
  metaspace.prepend = Prepend::never;
  return metaspace;
}

}  // namespace ingot
