// What the tests of this folder share: an encoder without a tokenizer, a store without files, a directory of their own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/encoder.h"
#include "data/sequences.h"
#include "data/shards.h"

namespace ingot::data_testing {

// A token a byte, its id the byte; 256 ends a document.
inline TextEncoder byte_encoder() {
  TextEncoder encoder;
  encoder.encode = [](std::string_view text, std::vector<int32_t>& ids) {
    for (char c : text) ids.push_back(static_cast<uint8_t>(c));
  };
  encoder.vocab_size = 257;
  encoder.eos = 256;
  encoder.fingerprint = 0xb17e;
  encoder.token_bytes.assign(257, 1);
  encoder.token_bytes[256] = 0;
  return encoder;
}

// A token a word with the space before it, the id a hash: encoding a part of a word gives other ids than the word's.
inline TextEncoder word_encoder() {
  TextEncoder encoder = byte_encoder();
  encoder.encode = [](std::string_view text, std::vector<int32_t>& ids) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find_first_of(" \n", at + 1), text.size());
      ids.push_back(static_cast<int32_t>(hash_bytes(text.substr(at, end - at)) % 65536));
      at = end;
    }
  };
  encoder.vocab_size = 65537;
  encoder.eos = 65536;
  encoder.fingerprint = 0x3012d;
  encoder.token_bytes.clear();
  return encoder;
}

// Calls of operator new in this program (data/allocations_test.cc).
int64_t allocations_so_far();

// A directory that is removed at the end of the test.
class TestDirectory {
 public:
  TestDirectory() {
    static std::atomic<int> counter = 0;
    path_ = fs::temp_directory_path() / fmt::format("ingot-data-test-{}-{}", ::getpid(), counter++);
    fs::create_directories(path_);
  }
  ~TestDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  const fs::path& path() const { return path_; }
  fs::path operator/(std::string_view name) const { return path_ / name; }
  std::string write(std::string_view name, std::string_view content) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << content;
    return (path_ / name).string();
  }

 private:
  fs::path path_;
};

// Documents of given lengths; token p is p % 1000.
class FakeStore final : public TokenStore {
 public:
  explicit FakeStore(const std::vector<int64_t>& lengths, std::vector<int64_t> prompts = {})
      : prompts_(std::move(prompts)) {
    int64_t end = 0;
    for (int64_t length : lengths) ends_.push_back(end += length);
  }
  int64_t tokens() const override { return ends_.empty() ? 0 : ends_.back(); }
  int64_t documents() const override { return static_cast<int64_t>(ends_.size()); }
  int64_t document_end(int64_t document) const override { return ends_[static_cast<size_t>(document)]; }
  uint64_t document_hash(int64_t document) const override { return hash_bytes(std::to_string(document)); }
  bool has_prompts() const override { return !prompts_.empty(); }
  int64_t prompt_tokens(int64_t document) const override {
    return prompts_.empty() ? 0 : prompts_[static_cast<size_t>(document)];
  }
  uint64_t fingerprint() const override { return hash_bytes(std::as_bytes(std::span(ends_))); }
  Status read(int64_t position, std::span<int32_t> out) const override {
    EXPECT_GE(position, 0);
    EXPECT_LE(position + static_cast<int64_t>(out.size()), tokens());
    for (int32_t& token : out) token = static_cast<int32_t>(position++ % 1000);
    return {};
  }

 private:
  std::vector<int64_t> ends_, prompts_;
};

inline std::shared_ptr<const TokenStore> fake_store(std::vector<int64_t> lengths, std::vector<int64_t> prompts = {}) {
  return std::make_shared<FakeStore>(lengths, std::move(prompts));
}

// A row with room of its own.
struct OwnedRow {
  explicit OwnedRow(int64_t length)
      : ids(static_cast<size_t>(length), -7), targets(ids), segment_start(ids), positions(ids) {}
  RowView view() { return {ids, targets, segment_start, positions}; }
  std::vector<int32_t> ids, targets, segment_start, positions;
};

}  // namespace ingot::data_testing

// The value of a Result, or a test failure with its message.
#define ASSERT_VALUE(declaration, expression) \
  ASSERT_VALUE_INNER(INGOT_CONCAT(test_result_, __LINE__), declaration, expression)
#define ASSERT_VALUE_INNER(name, declaration, expression) \
  auto name = (expression);                               \
  ASSERT_TRUE(name.ok()) << name.error().message;         \
  declaration = std::move(name).value()

// An error of a kind whose message holds a text.
#define EXPECT_ERROR(expression, expected_kind, expected_text)                                                    \
  do {                                                                                                            \
    const auto& test_status = (expression);                                                                       \
    ASSERT_FALSE(test_status.ok());                                                                               \
    EXPECT_EQ(test_status.error().kind, expected_kind) << test_status.error().message;                            \
    EXPECT_NE(test_status.error().message.find(expected_text), std::string::npos) << test_status.error().message; \
  } while (false)
