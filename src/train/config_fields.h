// The one description of the configuration's keys: what each is called, what it may be, and where its value lives.
// Reading, writing, listing and testing all walk over it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/parallel.h"
#include "train/config.h"
#include "train/config_tree.h"

namespace ingot::config {

// A key with a value of its own. The functions refer to the configuration that is walked over.
struct Field {
  std::string_view key;
  std::string expected;                    // completes "expected …"
  bool required = false;                   // has no default
  std::function<bool(const Value&)> read;  // false, and nothing changed, where the value is not what is expected
  std::function<std::string()> write;      // the value as YAML that fits into one line
};

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void field(const Field& field) = 0;
  // `automatic`, where not null, is set by the word `auto` in the section's place.
  virtual void section(std::string_view key, bool* automatic, FunctionRef<void()> body) = 0;
  // A list of sections: body(i) walks over element i.
  virtual void list(std::string_view key, size_t size, FunctionRef<void(size_t)> resize,
                    FunctionRef<void(size_t)> body) = 0;
};

void visit_fields(RunConfig& config, FieldVisitor& visitor);

}  // namespace ingot::config
