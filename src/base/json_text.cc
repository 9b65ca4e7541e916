#include "base/json_text.h"

namespace ingot {

bool nests_too_deep(std::string_view json) {
  size_t levels = 0;
  bool in_string = false;
  for (size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++at;  // the character behind it ends no string
      continue;
    }
    if ((c == '[' || c == '{') && ++levels > kMostJsonLevels) return true;
    if ((c == ']' || c == '}') && levels > 0) --levels;
  }
  return false;
}

}  // namespace ingot
