// From files to shards.
#include "data/build.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <csignal>
#include <map>

#include "data/testing.h"
#include "text/tokenizer.h"

namespace ingot {
namespace {

using namespace data_testing;  // NOLINT: helpers of this folder's tests

SourceSpec source(std::string path) {
  SourceSpec spec;
  spec.path = std::move(path);
  return spec;
}

Result<std::shared_ptr<const ShardSet>> build(const SourceSpec& spec, const fs::path& out,
                                              const TextEncoder& encoder = byte_encoder(), int threads = 1,
                                              ShardBuildOptions options = {}) {
  return build_shards(std::span(&spec, 1), encoder, out, ThreadPool(threads), options);
}

// The documents as text, if the encoder is byte_encoder().
std::vector<std::string> texts(const ShardSet& set) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < set.documents(); ++i) {
    std::vector<int32_t> ids(static_cast<size_t>(set.document_end(i) - set.document_begin(i)));
    EXPECT_TRUE(set.read(set.document_begin(i), ids).ok());
    EXPECT_EQ(ids.back(), 256) << "the end-of-document token";
    out.emplace_back(ids.begin(), ids.end() - 1);
  }
  return out;
}

std::map<std::string, std::string> contents(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory))
    files[entry.path().filename().string()] = read_file(entry.path()).value();
  return files;
}

using Texts = std::vector<std::string>;

TEST(Build, ATextFileIsOneDocumentWithLfAndWithoutByteOrderMark) {
  TestDirectory dir;
  ASSERT_VALUE(const auto set, build(source(dir.write("a.txt", "\xEF\xBB\xBFone\r\ntwo\r\rthree\n\r\n")), dir / "out"));
  EXPECT_EQ(texts(*set), Texts{"one\ntwo\r\rthree\n\n"});
  EXPECT_EQ(set->index().text_bytes, 16);
  EXPECT_EQ(set->tokens(), 17);
}

TEST(Build, ADirectoryGivesItsFilesInOrderOfTheirNames) {
  TestDirectory dir;
  dir.write("in/b.txt", "b");
  dir.write("in/a.txt", "a");
  dir.write("in/B.txt", "B");
  dir.write("in/sub/c.jsonl", "{\"text\": \"c1\"}\n\n{\"text\": \"c2\"}");
  dir.write("in/readme.md", "not data");
  ASSERT_VALUE(const auto set, build(source((dir / "in").string()), dir / "out"));
  EXPECT_EQ(texts(*set), (Texts{"B", "a", "b", "c1", "c2"}));
  ASSERT_VALUE(const auto globbed, build(source((dir / "in" / "?.txt").string()), dir / "out2"));
  EXPECT_EQ(texts(*globbed), (Texts{"B", "a", "b"}));
}

TEST(Build, CsvRowsAreDocuments) {
  TestDirectory dir;
  const std::string path = dir.write("a.csv", "\xEF\xBB\xBFname,note\r\nx,\"1\r\n2\"\r\n\r\ny,\r\n");
  ASSERT_VALUE(const auto set, build(source(path), dir / "out"));
  EXPECT_EQ(texts(*set), (Texts{"name: x\nnote: 1\n2", "name: y\nnote: "}));
}

TEST(Build, ErrorsOfRowsNameTheirLine) {
  TestDirectory dir;
  EXPECT_ERROR(build(source(dir.write("a.csv", "a,b\n\"1\n1\",2\n3\n")), dir / "out"), ErrorKind::input,
               "a.csv:4: 1 fields, expected 2");
  EXPECT_ERROR(build(source(dir.write("b.jsonl", "{\"text\":\"\"}\n\n{\"text\"}\n{\"text\"")), dir / "out"),
               ErrorKind::input, "b.jsonl:3:");
  EXPECT_FALSE(fs::exists(dir / "out"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 2)
      << "nothing but the inputs is left";
}

TEST(Build, EmptyDocumentsAreSkippedAndCounted) {
  TestDirectory dir;
  dir.write("in/a.txt", "");
  dir.write("in/b.txt", "b");
  dir.write("in/c.jsonl", "{\"text\": \"\"}\n{\"text\": \"c\"}\n{\"text\": \"\"}\n");
  dir.write("in/d.txt", "\xEF\xBB\xBF");
  dir.write("in/e.csv", "");
  ASSERT_VALUE(const auto set, build(source((dir / "in").string()), dir / "out"));
  EXPECT_EQ(texts(*set), (Texts{"b", "c"}));
  EXPECT_EQ(set->index().empty_documents, 4);
  ASSERT_VALUE(const auto only, build(source(dir.write("only.txt", "")), dir / "out2"));
  EXPECT_EQ(only->documents(), 0);
  EXPECT_EQ(only->tokens(), 0);
  EXPECT_EQ(only->index().empty_documents, 1);
}

TEST(Build, BytesThatAreNotUtf8PassUnchanged) {
  TestDirectory dir;
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  ASSERT_VALUE(const auto set, build(source(dir.write("a.txt", bytes + "\xC3(")), dir / "out"));
  EXPECT_EQ(texts(*set), Texts{bytes + "\xC3("});
}

TEST(Build, WhatIsNotThereIsNamed) {
  TestDirectory dir;
  EXPECT_ERROR(build(source((dir / "no.txt").string()), dir / "out"), ErrorKind::input, "no.txt does not exist");
  EXPECT_ERROR(build(source((dir / "*.txt").string()), dir / "out"), ErrorKind::input, "no file matches");
  EXPECT_ERROR(build(source(dir.path().string()), dir / "out"), ErrorKind::input, "holds no .txt, .jsonl or .csv file");
  EXPECT_ERROR(build(source(dir.write("a.parquet", "x")), dir / "out"), ErrorKind::input,
               "a.parquet is of an unknown kind");
  EXPECT_ERROR(build(source(""), dir / "out"), ErrorKind::usage, "no path");
}

TEST(Build, AFileWhoseNameLooksLikeAPatternIsAFile) {
  TestDirectory dir;
  ASSERT_VALUE(const auto set, build(source(dir.write("a[1].txt", "x")), dir / "out"));
  EXPECT_EQ(texts(*set), Texts{"x"});
}

TEST(Build, PromptsAreCountedInTokens) {
  TestDirectory dir;
  SourceSpec spec = source(dir.write("a.jsonl", R"({"q": "what", "text": "this"}
{"q": "", "text": "that"})"));
  spec.prompt_template = "{q}";
  ASSERT_VALUE(const auto set, build(spec, dir / "out"));
  EXPECT_EQ(texts(*set), (Texts{"whatthis", "that"}));
  EXPECT_TRUE(set->has_prompts());
  EXPECT_EQ(set->prompt_tokens(0), 4);
  EXPECT_EQ(set->prompt_tokens(1), 0);
}

// Text of words, long enough to be cut many times.
std::string long_text(size_t bytes, std::string_view line_end) {
  std::string text;
  for (uint64_t i = 0; text.size() < bytes; ++i)
    text += fmt::format("word{} number{}{}", i * 7919 % 1000, "abc"[i % 3], i % 9 == 8 ? line_end : " ");
  return text;
}

TEST(Build, ALongFileGivesTheIdsOfTheWholeForAnyNumberOfThreads) {
  TestDirectory dir;
  for (std::string_view line_end : {"\n", "\r\n"}) {
    const std::string text = long_text(5 << 20, line_end);
    std::string with_lf = text;
    std::erase(with_lf, '\r');
    const std::string path = dir.write("long.txt", text);
    const TextEncoder encoder = word_encoder();
    ASSERT_VALUE(const auto one, build(source(path), dir / "one", encoder, 1));
    ASSERT_VALUE(const auto four, build(source(path), dir / "four", encoder, 4));
    EXPECT_EQ(contents(dir / "one"), contents(dir / "four"));
    EXPECT_EQ(one->documents(), 1);
    std::vector<int32_t> whole, found(static_cast<size_t>(one->tokens()));
    encoder.encode(with_lf, whole);
    whole.push_back(*encoder.eos);
    ASSERT_TRUE(one->read(0, found).ok());
    EXPECT_TRUE(found == whole) << "CRLF: " << (line_end.size() == 2);
    fs::remove_all(dir / "one");
    fs::remove_all(dir / "four");
  }
}

TEST(Build, AnEncoderThatMarksEveryStartGetsWholeDocuments) {
  TestDirectory dir;
  TextEncoder encoder = byte_encoder();
  encoder.encode = [](std::string_view text, std::vector<int32_t>& ids) {
    ids.push_back(0);
    for (char c : text) ids.push_back(static_cast<uint8_t>(c));
  };
  const std::string text = long_text(4 << 20, "\n");
  ASSERT_VALUE(const auto set, build(source(dir.write("long.txt", text)), dir / "out", encoder, 2));
  EXPECT_EQ(set->tokens(), static_cast<int64_t>(text.size()) + 2);
}

TEST(Build, ManyRowsKeepTheirOrderOnAnyNumberOfThreads) {
  TestDirectory dir;
  std::string rows;
  Texts expected;
  for (int i = 0; i < 40000; ++i) {
    expected.push_back(fmt::format("row {} {}", i, std::string(static_cast<size_t>(i % 50), 'x')));
    rows += fmt::format("{{\"text\": \"{}\"}}\n", expected.back());
  }
  const std::string path = dir.write("rows.jsonl", rows);
  ASSERT_VALUE(const auto one, build(source(path), dir / "one", byte_encoder(), 1));
  ASSERT_VALUE(const auto three, build(source(path), dir / "three", byte_encoder(), 3));
  EXPECT_EQ(texts(*one), expected);
  EXPECT_EQ(contents(dir / "one"), contents(dir / "three"));
  ASSERT_TRUE(one->verify().ok());
}

TEST(Build, DocumentsCrossFromShardToShard) {
  TestDirectory dir;
  dir.write("in/a.txt", "hello world");
  dir.write("in/b.txt", "again");
  for (int64_t shard_tokens : {1, 5, 9, 18, 1000}) {
    ShardBuildOptions options;
    options.shard_tokens = shard_tokens;
    const fs::path out = dir / fmt::format("out{}", shard_tokens);
    ASSERT_VALUE(const auto set, build(source((dir / "in").string()), out, byte_encoder(), 1, options));
    EXPECT_EQ(set->shards(), (18 + shard_tokens - 1) / shard_tokens);
    EXPECT_EQ(texts(*set), (Texts{"hello world", "again"}));
    EXPECT_TRUE(set->verify().ok());
  }
}

TEST(Build, TokensTakeFourBytesWhereTheVocabularyIsLarge) {
  TestDirectory dir;
  ASSERT_VALUE(const auto set, build(source(dir.write("a.txt", "some words here")), dir / "out", word_encoder()));
  EXPECT_EQ(set->index().token_width, 4);
  std::vector<int32_t> expected, found(4);
  word_encoder().encode("some words here", expected);
  expected.push_back(65536);
  ASSERT_TRUE(set->read(0, found).ok());
  EXPECT_EQ(found, expected);
}

TEST(Build, TheSameInputsAreNotBuiltAgainAndOthersReplaceThem) {
  TestDirectory dir;
  int encoded = 0;
  TextEncoder encoder = byte_encoder();
  encoder.encode = [&, inner = encoder.encode](std::string_view text, std::vector<int32_t>& ids) {
    ++encoded;
    inner(text, ids);
  };
  const SourceSpec spec = source(dir.write("a.txt", "one"));
  ASSERT_TRUE(build(spec, dir / "out/", encoder).ok());
  ASSERT_TRUE(build(spec, dir / "out", encoder).ok());
  EXPECT_EQ(encoded, 1);
  dir.write("a.txt", "other");
  ASSERT_VALUE(const auto set, build(spec, dir / "out", encoder));
  EXPECT_EQ(encoded, 2);
  EXPECT_EQ(texts(*set), Texts{"other"});
  encoder.fingerprint = 5;
  ASSERT_TRUE(build(spec, dir / "out", encoder).ok());
  EXPECT_EQ(encoded, 3);
  fs::resize_file(dir / "out" / "shard-00000.bin", 2);
  ASSERT_TRUE(build(spec, dir / "out", encoder).ok()) << "damaged shards are built again";
  EXPECT_EQ(encoded, 4);
}

TEST(Build, ADirectoryOfOtherFilesIsLeftAlone) {
  TestDirectory dir;
  const SourceSpec spec = source(dir.write("a.txt", "one"));
  dir.write("out/precious.doc", "x");
  EXPECT_ERROR(build(spec, dir / "out"), ErrorKind::usage, "holds other files");
  EXPECT_ERROR(build(spec, dir / "a.txt"), ErrorKind::usage, "is a file");
  fs::create_directories(dir / "empty");
  EXPECT_TRUE(build(spec, dir / "empty").ok());
}

TEST(Build, OpenOrBuildReusesTheCacheAndRefusesAnotherTokenizersShards) {
  TestDirectory dir;
  const SourceSpec spec = source(dir.write("a.txt", "one"));
  const ThreadPool pool(1);
  ASSERT_VALUE(const auto first, open_or_build(spec, byte_encoder(), dir / "cache", pool));
  ASSERT_VALUE(const auto second, open_or_build(spec, byte_encoder(), dir / "cache", pool));
  EXPECT_EQ(first->directory(), second->directory());
  SourceSpec other = spec;
  other.text_key = "body";
  ASSERT_VALUE(const auto third, open_or_build(other, byte_encoder(), dir / "cache", pool));
  EXPECT_NE(first->directory(), third->directory());
  const SourceSpec built = source(first->directory().string());
  EXPECT_TRUE(open_or_build(built, byte_encoder(), dir / "cache", pool).ok());
  EXPECT_ERROR(open_or_build(built, word_encoder(), dir / "cache", pool), ErrorKind::input,
               "built with another tokenizer");
}

// Kills itself at the n-th text that it encodes, or once all is encoded.
TextEncoder deadly_encoder(int n) {
  TextEncoder encoder = byte_encoder();
  auto count = std::make_shared<int>(0);
  encoder.encode = [n, count, inner = encoder.encode](std::string_view text, std::vector<int32_t>& ids) {
    if (++*count == n) ::raise(SIGKILL);
    inner(text, ids);
  };
  return encoder;
}

TEST(Build, KilledItLeavesNothingOrAllAndTheNextBuildClearsUp) {
  TestDirectory dir;
  for (int i = 0; i < 5; ++i) dir.write(fmt::format("in/{}.txt", i), std::string(300000, static_cast<char>('a' + i)));
  const SourceSpec spec = source((dir / "in").string());
  for (int n = 1; n <= 5; ++n) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(build(spec, dir / "work/out", deadly_encoder(n)).ok() ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_FALSE(fs::exists(dir / "work/out"));
  }
  EXPECT_GT(std::distance(fs::directory_iterator(dir / "work"), fs::directory_iterator()), 1)
      << "dead builds left something";
  ASSERT_VALUE(const auto set, build(spec, dir / "work/out"));
  EXPECT_EQ(set->documents(), 5);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir / "work"), fs::directory_iterator()), 1)
      << "only the shards are left";
}

TEST(Build, ProcessesThatBuildTheSameDirectoryTakeTurns) {
  TestDirectory dir;
  for (int i = 0; i < 20; ++i) dir.write(fmt::format("in/{}.txt", i), std::string(100000, 'a'));
  const SourceSpec spec = source((dir / "in").string());
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) ::_exit(build(spec, dir / "work/out").ok() ? 0 : 1);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ASSERT_VALUE(const auto set, ShardSet::open(dir / "work/out"));
  EXPECT_TRUE(set->verify().ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(dir / "work"), fs::directory_iterator()), 1);
}

TEST(Build, AFullDiskIsAnErrorAndLeavesNothing) {
  TestDirectory dir;
  const SourceSpec spec = source(dir.write("a.txt", std::string(3 << 20, 'a')));
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit { 1 << 20, 1 << 20 };  // a write beyond it fails as on a full disk
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto result = build(spec, dir / "work/out");
    ::_exit(!result.ok() && result.error().kind == ErrorKind::failed ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::is_empty(dir / "work"));
}

TEST(Build, ARealTokenizersIdsDoNotChangeByCuttingALongText) {
  const fs::path shared = fs::path(INGOT_SOURCE_DIR) / ".." / "shared" / "data";
  if (!fs::exists(shared / "tokenizers")) {
    std::cerr << "no shared tokenizers here: not tried\n";
    return;
  }
  TestDirectory dir;
  std::string text;
  for (const char* table : {"tabular/lending_club.csv", "tabular/credit_data.csv"})
    text += read_file(shared / table).value();
  text += long_text(1 << 20, "\n\n") + text;
  const std::string path = dir.write("long.txt", text);
  for (const char* name : {"gpt2", "llama3"}) {
    ASSERT_VALUE(const Tokenizer tokenizer, Tokenizer::load(shared / "tokenizers" / name));
    ASSERT_VALUE(const auto set, build(source(path), dir / name, encoder_of(tokenizer), 2));
    std::vector<int32_t> expected = tokenizer.encode(text), found(static_cast<size_t>(set->tokens()));
    if (tokenizer.eos_id()) expected.push_back(*tokenizer.eos_id());
    ASSERT_TRUE(set->read(0, found).ok());
    EXPECT_TRUE(found == expected) << name;
    int64_t bytes = 0;
    for (int32_t id : found) bytes += set->token_bytes()[static_cast<size_t>(id)];
    EXPECT_EQ(bytes, static_cast<int64_t>(text.size())) << name;
  }
}

}  // namespace
}  // namespace ingot
