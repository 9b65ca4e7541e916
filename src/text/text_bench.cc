// Speed of the tokenizer. INGOT_BENCH_TEXT names a text file; without it a text of made-up words is used.
// INGOT_BENCH_TOKENIZER names a tokenizer.json; without it one is trained on the text.
//
// On python3.11.info (English, technical, 19.6 MB) with GPT-2's vocabulary, one thread of a 2.1 GHz Sapphire Rapids,
// MB/s:
//   splitting: the scanner 294, PCRE2 with JIT 80: with PCRE2 splitting would take most of the time, hence the scanner
//   encoding: 111 whole, 86 line by line; decoding: 231; training (two threads): 57 for 16384 tokens, 51 for 32768
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>

#include "base/files.h"
#include "base/parallel.h"
#include "text/gpt_scanner.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace ingot {
namespace {

const std::string& bench_text() {
  static const std::string text = [] {
    if (const char* path = std::getenv("INGOT_BENCH_TEXT")) {
      auto content = read_file(path);
      if (content.ok()) return *std::move(content);
    }
    // Words drawn as in a language: short ones often, long ones seldom.
    std::mt19937 rng(1);
    std::vector<std::string> words;
    for (int i = 0; i < 30000; ++i) {
      std::string word(1 + rng() % 4 + (i > 500 ? rng() % 8 : 0), ' ');
      for (char& c : word) c = static_cast<char>('a' + rng() % 26);
      words.push_back(word);
    }
    std::string made;
    while (made.size() < 8'000'000) {
      const double u = static_cast<double>(rng() % 1000000 + 1) / 1e6;
      made += words[static_cast<size_t>(static_cast<double>(words.size() - 1) * u * u * u * u)];
      made += rng() % 12 == 0 ? ".\n" : " ";
    }
    return made;
  }();
  return text;
}

const Tokenizer& bench_tokenizer() {
  static const Tokenizer tokenizer = [] {
    if (const char* path = std::getenv("INGOT_BENCH_TOKENIZER")) {
      auto loaded = Tokenizer::load(path);
      if (loaded.ok()) return *std::move(loaded);
    }
    const std::string_view document = bench_text();
    BpeTrainOptions options;
    options.vocab_size = 16384;
    return *train_bpe({&document, 1}, options, ThreadPool(2));
  }();
  return tokenizer;
}

void count_bytes(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(bytes));
}

void split_with(benchmark::State& state, bool scanner) {
  const auto splitter = *make_regex_splitter(std::string(kGpt2Pattern), {}, scanner);
  for (auto _ : state) {
    size_t pieces = 0;
    splitter->split(bench_text(), [&](std::string_view) { ++pieces; });
    benchmark::DoNotOptimize(pieces);
  }
  count_bytes(state, bench_text().size());
}
void BM_SplitScanner(benchmark::State& state) {
  split_with(state, true);
}
void BM_SplitPcre2(benchmark::State& state) {
  split_with(state, false);
}
BENCHMARK(BM_SplitScanner)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SplitPcre2)->Unit(benchmark::kMillisecond);

void BM_Encode(benchmark::State& state) {
  std::vector<TokenId> ids;
  for (auto _ : state) {
    ids.clear();
    bench_tokenizer().encode(bench_text(), ids);
    benchmark::DoNotOptimize(ids.data());
  }
  count_bytes(state, bench_text().size());
}
BENCHMARK(BM_Encode)->Unit(benchmark::kMillisecond);

void BM_EncodeLines(benchmark::State& state) {
  std::vector<TokenId> ids;
  for (auto _ : state) {
    ids.clear();
    std::string_view rest = bench_text();
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      bench_tokenizer().encode(rest.substr(0, end), ids);
      rest.remove_prefix(end);
    }
    benchmark::DoNotOptimize(ids.data());
  }
  count_bytes(state, bench_text().size());
}
BENCHMARK(BM_EncodeLines)->Unit(benchmark::kMillisecond);

void BM_EncodeOnePiece(benchmark::State& state) {
  const std::string text(static_cast<size_t>(state.range(0)), 'a');
  for (auto _ : state) benchmark::DoNotOptimize(bench_tokenizer().encode(text));
  count_bytes(state, text.size());
}
BENCHMARK(BM_EncodeOnePiece)->RangeMultiplier(32)->Range(1 << 10, 1 << 20)->Unit(benchmark::kMicrosecond);

void BM_Decode(benchmark::State& state) {
  const std::vector<TokenId> ids = bench_tokenizer().encode(bench_text());
  for (auto _ : state) benchmark::DoNotOptimize(bench_tokenizer().decode(ids));
  count_bytes(state, bench_text().size());
}
BENCHMARK(BM_Decode)->Unit(benchmark::kMillisecond);

void BM_Train(benchmark::State& state) {
  const std::string_view document = bench_text();
  BpeTrainOptions options;
  options.vocab_size = state.range(0);
  for (auto _ : state) benchmark::DoNotOptimize(train_bpe({&document, 1}, options, ThreadPool(2)));
  count_bytes(state, document.size());
}
BENCHMARK(BM_Train)->Arg(16384)->Arg(32768)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace ingot
