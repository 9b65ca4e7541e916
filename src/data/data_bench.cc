// How fast rows come from shards, and text becomes shards. What training consumes is below a million tokens a second.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <fstream>

#include "data/batch_stream.h"
#include "data/build.h"

namespace ingot {
namespace {

// Documents of some 400 bytes; a token a byte.
class Corpus {
 public:
  Corpus() : directory_(fs::temp_directory_path() / fmt::format("ingot-data-bench-{}", ::getpid())) {
    fs::create_directories(directory_);
    std::ofstream file(directory_ / "corpus.jsonl");
    for (int64_t i = 0; i < kDocuments; ++i)
      file << "{\"text\": \"" << std::string(static_cast<size_t>(100 + i * 7919 % 600), static_cast<char>('a' + i % 26))
           << "\"}\n";
  }
  ~Corpus() {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  std::shared_ptr<const ShardSet> build(const char* name, int threads) const {
    TextEncoder encoder;
    encoder.encode = [](std::string_view text, std::vector<int32_t>& ids) {
      for (char c : text) ids.push_back(static_cast<uint8_t>(c));
    };
    encoder.vocab_size = 257;
    encoder.eos = 256;
    encoder.token_bytes.assign(257, 1);
    SourceSpec spec;
    spec.path = (directory_ / "corpus.jsonl").string();
    return build_shards(std::span(&spec, 1), encoder, directory_ / name, ThreadPool(threads)).value();
  }
  const fs::path& directory() const { return directory_; }

 private:
  static constexpr int64_t kDocuments = 50000;
  fs::path directory_;
};

void BM_Batches(benchmark::State& state) {
  const Corpus corpus;
  StreamOptions options;
  options.sequence_length = 1024;
  options.global_batch_size = options.micro_batch_size = 8;
  options.prefetch_batches = 0;
  const SequenceOptions sequence_options{1024, state.range(0) != 0, true};
  const auto sequences = make_sequences(Segments::all(corpus.build("shards", 2)), sequence_options).value();
  const auto stream = BatchStream::create({{sequences, std::nullopt}}, options).value();
  int64_t tokens = 0;
  for (auto _ : state) tokens += stream->next().value()->tokens;
  state.counters["tokens/s"] = benchmark::Counter(static_cast<double>(tokens), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Batches)->ArgName("packing")->Arg(1)->Arg(0);

void BM_Build(benchmark::State& state) {
  const Corpus corpus;
  int64_t bytes = 0;
  for (auto _ : state) {
    bytes += corpus.build("shards", static_cast<int>(state.range(0)))->index().text_bytes;
    state.PauseTiming();
    fs::remove_all(corpus.directory() / "shards");
    state.ResumeTiming();
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(BM_Build)->ArgName("threads")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace ingot
