// Attributes: what a node says beside its inputs, as a plain struct held by value. Equality, hash, printing and parsing
// all follow from the struct's list of fields:
//
//   struct TransposeAttributes {
//     std::vector<int64_t> permutation;
//     static constexpr auto fields = std::tuple(field("permutation", &TransposeAttributes::permutation));
//     bool operator==(const TransposeAttributes&) const = default;
//   };
//
// Fields may be bool, int64_t, double, std::string, DType, vectors of these, and vectors of structs with fields of
// their own.
#pragma once

#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <typeinfo>
#include <vector>

#include "base/check.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/result.h"

namespace ingot {

template <class Struct, class Member>
struct Field {
  std::string_view name;
  Member Struct::*member;
};
template <class Struct, class Member>
constexpr Field<Struct, Member> field(std::string_view name, Member Struct::*member) {
  return {name, member};
}

struct NoAttributes {
  static constexpr auto fields = std::tuple<>();
  bool operator==(const NoAttributes&) const = default;
};

// Reads attribute text from the front of a string; used by the IR parser.
class AttributeReader {
 public:
  explicit AttributeReader(std::string_view text) : text_(text) {}
  bool take(char c);        // skips spaces, then c if it stands there
  bool at(char c);          // skips spaces; does c stand there?
  bool done();              // skips spaces; is nothing left?
  std::string_view word();  // letters, digits and any of _.+-
  bool quoted(std::string& out);
  std::string_view rest() const { return text_; }

 private:
  void skip_spaces();
  std::string_view text_;
};

namespace attribute_text {

template <class T>
concept HasFields = requires {
  T::fields;
};

std::string quote(std::string_view text);

inline void print(std::string& out, bool value) {
  out += value ? "true" : "false";
}
inline void print(std::string& out, int64_t value) {
  out += std::to_string(value);
}
void print(std::string& out, double value);
inline void print(std::string& out, const std::string& value) {
  out += quote(value);
}
inline void print(std::string& out, DType value) {
  out += name_of(value);
}
template <HasFields T>
void print(std::string& out, const T& value);
template <class T>
void print(std::string& out, const std::vector<T>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    print(out, values[i]);
  }
  out += ']';
}
template <HasFields T>
void print(std::string& out, const T& value) {
  out += '{';
  bool first = true;
  std::apply(
      [&](const auto&... f) {
        ((out += first ? "" : ", ", first = false, out += f.name, out += '=', print(out, value.*(f.member))), ...);
      },
      T::fields);
  out += '}';
}

bool parse(AttributeReader& in, bool& value);
bool parse(AttributeReader& in, int64_t& value);
bool parse(AttributeReader& in, double& value);
bool parse(AttributeReader& in, std::string& value);
bool parse(AttributeReader& in, DType& value);
template <HasFields T>
bool parse(AttributeReader& in, T& value);
template <class T>
bool parse(AttributeReader& in, std::vector<T>& values) {
  if (!in.take('[')) return false;
  values.clear();
  if (in.take(']')) return true;
  do {
    T value{};
    if (!parse(in, value)) return false;
    values.push_back(std::move(value));
  } while (in.take(','));
  return in.take(']');
}
// Absent fields keep the struct's defaults; an unknown one fails.
template <HasFields T>
bool parse(AttributeReader& in, T& value) {
  if (!in.take('{')) return false;
  if (in.take('}')) return true;
  do {
    const std::string_view name = in.word();
    if (!in.take('=')) return false;
    const bool found = std::apply(
        [&](const auto&... f) { return ((f.name == name && parse(in, value.*(f.member))) || ...); }, T::fields);
    if (!found) return false;
  } while (in.take(','));
  return in.take('}');
}

}  // namespace attribute_text

// A value-semantic holder of any attribute struct. Immutable and cheap to copy.
class Attributes {
 public:
  Attributes() : Attributes(NoAttributes{}) {}
  template <attribute_text::HasFields T>
  Attributes(T value)
      : model_(std::make_shared<Model<T>>(std::move(value))) {}  // NOLINT: an attribute struct is Attributes

  template <class T>
  const T& as() const {
    const auto* model = dynamic_cast<const Model<T>*>(model_.get());
    INGOT_CHECK(model != nullptr, "attributes {} read as another type", to_string());
    return model->value;
  }
  bool operator==(const Attributes& other) const { return model_->equal(*other.model_); }
  std::string to_string() const { return model_->text(); }  // "{axis=1, keep=true}"
  uint64_t hash() const { return hash_bytes(to_string()); }

 private:
  struct Concept {
    virtual ~Concept() = default;
    virtual bool equal(const Concept& other) const = 0;
    virtual std::string text() const = 0;
  };
  template <class T>
  struct Model final : Concept {
    explicit Model(T v) : value(std::move(v)) {}
    bool equal(const Concept& other) const override {
      const auto* same = dynamic_cast<const Model*>(&other);
      return same != nullptr && same->value == value;
    }
    std::string text() const override {
      std::string out;
      attribute_text::print(out, value);
      return out;
    }
    T value;
  };
  std::shared_ptr<const Concept> model_;
};

// Parses the text of one attribute struct from the front of `in`; what OpDef::parse_attributes points to.
template <class T>
Result<Attributes> parse_attributes(AttributeReader& in) {
  T value{};
  if (!attribute_text::parse(in, value)) {
    Attributes defaults{T{}};
    return input_error("cannot read attributes before \"{}\"; expected some of {}", in.rest().substr(0, 40),
                       defaults.to_string());
  }
  return Attributes(std::move(value));
}

}  // namespace ingot
