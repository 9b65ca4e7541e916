// Kinds of values: what each reads from YAML, how it writes it, and how it says what it expects. They compose:
// optional_of(list_of(integer(0, 9)), "all").
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/config_tree.h"

namespace ingot::config {

template <class T>
struct Codec {
  std::string expected;
  std::function<bool(const Value&, T&)> read;  // false, and the value unchanged, where it is not what is expected
  std::function<std::string(const T&)> write;
};

struct Bounds {
  double low = 0, high = 0;
  bool above_low = false, below_high = false;  // the bound itself is not allowed
};

Codec<bool> boolean();
Codec<int64_t> integer(int64_t low, int64_t high);
Codec<int64_t> byte_size();  // a whole number of bytes, or with a unit: 6GB, 512MiB
Codec<double> real(Bounds bounds);
Codec<std::string> text();
Codec<std::string> word_of(std::span<const std::string_view> words);
Codec<std::string> json_object();  // any section, kept as JSON

std::string yaml_string(const std::string& text);  // plain where that reads back as this string, else in quotes
std::string joined(std::span<const std::string_view> words);  // "a, b or c"

template <class E>
Codec<E> one_of(std::span<const std::string_view> names) {
  const Codec<std::string> word = word_of(names);
  return {word.expected,
          [=](const Value& value, E& choice) {
            std::string name;
            if (!word.read(value, name)) return false;
            size_t index = 0;
            while (names[index] != name) ++index;
            choice = static_cast<E>(index);
            return true;
          },
          [=](const E& choice) { return std::string(names[static_cast<size_t>(choice)]); }};
}

// `absent`: the word for no value; null is understood as well.
template <class T>
Codec<std::optional<T>> optional_of(Codec<T> codec, std::string_view absent = "null") {
  return {codec.expected + " or " + std::string(absent),
          [=](const Value& value, std::optional<T>& target) {
            const bool is_word = value.kind == Value::Kind::scalar && !value.quoted && value.text == absent;
            if (value.kind == Value::Kind::null || is_word) {
              target.reset();
              return true;
            }
            T inner{};
            if (!codec.read(value, inner)) return false;
            target = std::move(inner);
            return true;
          },
          [=](const std::optional<T>& target) { return target ? codec.write(*target) : std::string(absent); }};
}

template <class T>
std::string write_list(std::span<const T> items, const Codec<T>& codec) {
  std::string line = "[";
  for (size_t i = 0; i < items.size(); ++i) line += (i > 0 ? ", " : "") + codec.write(items[i]);
  return line + "]";
}

template <class T>
Codec<std::vector<T>> list_of(Codec<T> codec) {
  return {"a list of which each is " + codec.expected,
          [=](const Value& value, std::vector<T>& target) {
            if (value.kind != Value::Kind::list) return false;
            std::vector<T> items(value.items.size());
            for (size_t i = 0; i < items.size(); ++i)
              if (!codec.read(value.items[i], items[i])) return false;
            target = std::move(items);
            return true;
          },
          [=](const std::vector<T>& target) { return write_list(std::span<const T>(target), codec); }};
}

template <class T>
Codec<std::array<T, 2>> pair_of(Codec<T> codec) {
  return {"a list of two, each " + codec.expected,
          [=](const Value& value, std::array<T, 2>& target) {
            if (value.kind != Value::Kind::list || value.items.size() != 2) return false;
            std::array<T, 2> pair{};
            if (!codec.read(value.items[0], pair[0]) || !codec.read(value.items[1], pair[1])) return false;
            target = pair;
            return true;
          },
          [=](const std::array<T, 2>& target) { return write_list(std::span<const T>(target), codec); }};
}

}  // namespace ingot::config
