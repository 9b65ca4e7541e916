#include "train/config.h"

#include <algorithm>
#include <set>

#include "base/files.h"
#include "train/config_codec.h"
#include "train/config_fields.h"
#include "train/config_optimizer.h"

namespace ingot {
namespace {

using config::Entry;
using config::Field;
using config::FieldVisitor;
using config::Value;

// Where a walk stands: "data.train.0".
class Path {
 public:
  std::string with(std::string_view key) const {
    return text_.empty() ? std::string(key) : text_ + "." + std::string(key);
  }
  const std::string& text() const { return text_; }
  template <class F>
  void inside(const std::string& path, F&& body) {
    const std::string outer = std::exchange(text_, path);
    body();
    text_ = outer;
  }

 private:
  std::string text_;
};

class KeyLister : public FieldVisitor {
 public:
  void field(const Field& field) override {
    keys.push_back({path_.with(field.key), field.expected, field.required ? "" : field.write()});
    names.push_back(keys.back().path);
  }
  void section(std::string_view key, bool* automatic, FunctionRef<void()> body) override {
    names.push_back(path_.with(key));
    path_.inside(path_.with(key), body);
  }
  void list(std::string_view key, size_t size, FunctionRef<void(size_t)> resize,
            FunctionRef<void(size_t)> body) override {
    names.push_back(path_.with(key));
    resize(1);
    path_.inside(path_.with(key) + ".0", [&] { body(0); });
    resize(size);
  }

  std::vector<ConfigKey> keys;
  std::vector<std::string> names;  // of keys, sections and lists

 private:
  Path path_;
};

KeyLister list_keys() {
  KeyLister lister;
  RunConfig defaults;
  config::visit_fields(defaults, lister);
  return lister;
}

// "learning_rate" -> "lr"
std::string initials(std::string_view words) {
  std::string letters;
  for (size_t i = 0; i < words.size(); ++i)
    if (i == 0 || words[i - 1] == '_') letters += words[i];
  return letters;
}

// Exact below `limit`; from there on, some number that is no less.
size_t name_distance(std::string_view unknown, std::string_view known, size_t limit) {
  if (unknown.size() > 2 && known.find(unknown) != std::string_view::npos) return 1;  // "batch_size"
  if (unknown.size() > 1 && initials(known) == unknown) return 1;                     // "lr"
  const size_t at_least = std::max(unknown.size(), known.size()) - std::min(unknown.size(), known.size());
  return at_least < limit ? config::edit_distance(unknown, known) : at_least;
}

// The known key nearest to `unknown` in the section `path`; one of another section only where it is clearly nearer.
std::string nearest_key(const std::string& path, const std::string& unknown) {
  std::string schema_path = path;  // elements of lists are listed as the first
  for (size_t i = 0; i < schema_path.size(); ++i)
    if (schema_path[i] >= '1' && schema_path[i] <= '9' && i > 0 && schema_path[i - 1] == '.') {
      const size_t end = std::min(schema_path.find('.', i), schema_path.size());
      schema_path.replace(i, end - i, "0");
    }
  constexpr size_t kLongest = 64;  // of what is compared: no key is half as long, and edits take time by length
  const std::string_view compared = std::string_view(unknown).substr(0, kLongest);
  std::string nearest;
  size_t least = std::string::npos;
  for (const std::string& name : list_keys().names) {
    const size_t dot = name.rfind('.');
    const bool same_section = (dot == std::string::npos ? "" : name.substr(0, dot)) == schema_path;
    const std::string_view leaf = std::string_view(name).substr(dot == std::string::npos ? 0 : dot + 1);
    const size_t distance = 2 * name_distance(compared, leaf, least / 2 + 1) + (same_section ? 0 : 3);
    if (distance >= least) continue;
    least = distance;
    nearest = same_section && !path.empty() ? path + "." + std::string(leaf) : name;
  }
  return nearest;
}

// Reads a tree into the configuration that is walked over. Stops at the first error.
class Reader : public FieldVisitor {
 public:
  explicit Reader(const Value& root) : section_(&root) {}

  void field(const Field& field) override {
    if (failed()) return;
    const Value* value = take(field.key);
    const std::string name = path_.with(field.key);
    if (value == nullptr) {
      if (field.required)
        error_ = usage_error("{}: the key '{}' is missing: expected {}", section_->origin, name, field.expected);
      return;
    }
    if (!field.read(*value))
      error_ = usage_error("{}: {}: expected {}, found {}", value->origin, name, field.expected, describe(*value));
  }

  void section(std::string_view key, bool* automatic, FunctionRef<void()> body) override {
    if (failed()) return;
    const Value* value = take(key);
    if (value == nullptr || value->kind == Value::Kind::null) return;
    if (automatic != nullptr && value->kind == Value::Kind::scalar && value->text == "auto") {
      *automatic = true;
      return;
    }
    read_section(path_.with(key), *value, automatic != nullptr, body);
  }

  void list(std::string_view key, size_t, FunctionRef<void(size_t)> resize, FunctionRef<void(size_t)> body) override {
    if (failed()) return;
    const Value* value = take(key);
    if (value == nullptr || value->kind == Value::Kind::null) return;
    const std::string name = path_.with(key);
    if (value->kind != Value::Kind::list) {
      error_ = usage_error("{}: {}: expected a list of sections, found {}", value->origin, name, describe(*value));
      return;
    }
    resize(value->items.size());
    for (size_t i = 0; i < value->items.size() && !failed(); ++i)
      read_section(fmt::format("{}.{}", name, i), value->items[i], false, [&] { body(i); });
  }

  // Call after the walk: what is left over in the top section is unknown.
  Status finish() {
    if (!failed()) refuse_unknown();
    return failed() ? Status(*error_) : Status();
  }

 private:
  bool failed() const { return error_.has_value(); }

  const Value* take(std::string_view key) {
    known_.insert(key);
    const auto found = std::find_if(section_->entries.begin(), section_->entries.end(),
                                    [&](const Entry& entry) { return entry.key == key; });
    return found == section_->entries.end() ? nullptr : &found->value;
  }

  void read_section(const std::string& name, const Value& value, bool may_be_auto, FunctionRef<void()> body) {
    if (value.kind != Value::Kind::map) {
      error_ = usage_error("{}: {}: expected a section{}, found {}", value.origin, name, may_be_auto ? " or auto" : "",
                           describe(value));
      return;
    }
    const Value* outer = std::exchange(section_, &value);
    std::set<std::string_view> outer_known = std::exchange(known_, {});
    path_.inside(name, [&] {
      body();
      if (!failed()) refuse_unknown();
    });
    section_ = outer;
    known_ = std::move(outer_known);
  }

  void refuse_unknown() {
    for (const Entry& entry : section_->entries) {
      if (known_.count(entry.key) > 0) continue;
      error_ = usage_error("{}: unknown key '{}'; the nearest known key is '{}'", entry.origin, path_.with(entry.key),
                           nearest_key(path_.text(), entry.key));
      return;
    }
  }

  const Value* section_;
  std::set<std::string_view> known_;  // keys of the current section that the walk has asked for
  Path path_;
  std::optional<Error> error_;
};

class Writer : public FieldVisitor {
 public:
  void field(const Field& field) override { item(field.key, field.write()); }

  void section(std::string_view key, bool* automatic, FunctionRef<void()> body) override {
    if (automatic != nullptr && *automatic) return item(key, "auto");
    text += fmt::format("{:{}}{}:\n", "", indent_, key);
    indent_ += 2;
    body();
    indent_ -= 2;
  }

  void list(std::string_view key, size_t size, FunctionRef<void(size_t)> resize,
            FunctionRef<void(size_t)> body) override {
    if (size == 0) return item(key, "[]");
    text += fmt::format("{:{}}{}:\n", "", indent_, key);
    for (size_t i = 0; i < size; ++i) {
      element_.emplace();
      body(i);
      text += fmt::format("{:{}}- {{{}}}\n", "", indent_ + 2, *element_);
      element_.reset();
    }
  }

  std::string text;

 private:
  void item(std::string_view key, const std::string& value) {
    if (element_)
      *element_ += fmt::format("{}{}: {}", element_->empty() ? "" : ", ", key, value);
    else
      text += fmt::format("{:{}}{}: {}\n", "", indent_, key, value);
  }

  size_t indent_ = 0;
  std::optional<std::string> element_;  // the element of a list that is being written, on one line
};

}  // namespace

Result<RunConfig> parse_config(std::string_view yaml, std::string_view name, std::span<const std::string> overrides) {
  INGOT_ASSIGN(Value root, config::parse_yaml(yaml, name));
  if (root.kind == Value::Kind::scalar || root.kind == Value::Kind::list)
    return usage_error("{}: expected sections such as 'training:', found {}", root.origin, config::describe(root));
  for (const std::string& text : overrides) INGOT_TRY(config::apply_override(root, text));
  RunConfig result;
  Reader reader(root);
  config::visit_fields(result, reader);
  INGOT_TRY(reader.finish());
  if (const Status consistent = check_consistent(result); !consistent.ok())
    return usage_error("{}: {}", name, consistent.error().message);
  fill_in_defaults(result.optimizer);
  return result;
}

Result<RunConfig> load_config(const std::filesystem::path& path, std::span<const std::string> overrides) {
  INGOT_ASSIGN(const std::string yaml, read_file(path));
  return parse_config(yaml, path.string(), overrides);
}

std::string to_yaml(const RunConfig& source) {
  RunConfig copy = source;  // the walk's references are mutable
  fill_in_defaults(copy.optimizer);
  Writer writer;
  config::visit_fields(copy, writer);
  return writer.text;
}

std::vector<ConfigKey> config_keys() {
  return list_keys().keys;
}

}  // namespace ingot
