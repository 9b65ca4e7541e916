// For the tests of text/: shared data files, random bytes, small tokenizers.
#pragma once

#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/json_reader.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace ingot::test {

// A file of the shared data beside the sources; an empty path and a line on stderr when it is not there.
inline fs::path shared_data(const std::string& name) {
  const fs::path path = fs::path(INGOT_SOURCE_DIR) / ".." / "shared" / "data" / name;
  if (fs::exists(path)) return path;
  std::fprintf(stderr, "%s is absent: what needs it is not tested\n", path.c_str());
  return {};
}

inline std::string random_bytes(std::mt19937& rng, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng() & 0xFF);
  return bytes;
}

// Text that visits every class of character: words, digits, spaces of all kinds, line ends, apostrophes, random code
// points and a few bytes that are no UTF-8.
inline std::string random_text(std::mt19937& rng, size_t characters) {
  static constexpr std::string_view kParts[] = {"'s",
                                                "'LL",
                                                "'\xC5\xBF",
                                                "'",
                                                " ",
                                                "  ",
                                                "\n",
                                                "\r\n",
                                                "\t",
                                                "a",
                                                "Zq",
                                                "don",
                                                "12",
                                                "7",
                                                "!",
                                                "#$",
                                                "\xE3\x80\x80",
                                                "\xC2\xA0",
                                                "\xC2\x85",
                                                "\xE1\xA0\x8E",
                                                "\xFF",
                                                "\xE2\x82",
                                                "é",
                                                "中文",
                                                "\xF0\x9F\xA6\x99",
                                                "½",
                                                "\xE2\x80\xA8",
                                                "_",
                                                std::string_view("\0", 1)};
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    const uint32_t draw = rng() % 10;
    if (draw < 8) {
      text += kParts[rng() % std::size(kParts)];
    } else {
      char32_t code = draw == 8 ? rng() % 0x3000 : rng() % 0x110000;
      if (code >= 0xD800 && code < 0xE000) code = 0x41;
      append_utf8(code, text);
    }
  }
  return text;
}

// A byte-level tokenizer.json: tokens 0 to 255 are the bytes in order, then one token a merge, then <|endoftext|>.
// Merges are written as bytes.
inline Json byte_level_json(const std::vector<std::pair<std::string, std::string>>& merges) {
  Json vocab = Json::object(), merge_list = Json::array();
  for (int b = 0; b < 256; ++b) vocab[bytes_to_alphabet(std::string(1, static_cast<char>(b)))] = b;
  for (const auto& [left, right] : merges) {
    vocab[bytes_to_alphabet(left + right)] = vocab.size();
    merge_list.push_back(bytes_to_alphabet(left) + " " + bytes_to_alphabet(right));
  }
  Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  Json eot = {{"id", vocab.size()},  {"content", "<|endoftext|>"}, {"special", true},
              {"normalized", false}, {"single_word", false},       {"lstrip", false},
              {"rstrip", false}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", {eot}},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merge_list}}}};
}

inline Tokenizer must_parse(const Json& json) {
  auto tokenizer = Tokenizer::parse(json.dump(), "test.json");
  INGOT_CHECK(tokenizer.ok(), "{}", tokenizer.ok() ? "" : tokenizer.error().message);
  return *tokenizer;
}

}  // namespace ingot::test
