#include "bench_tokenizer.h"

#include <algorithm>

#include "base/clock.h"
#include "base/median.h"
#include "kernels/peak/peak.h"
#include "text/tokenizer.h"

namespace ingot::cli {
namespace {

// The median of the times that `work` takes.
template <class Work>
double median_seconds(int64_t repetitions, Work work) {
  std::vector<double> seconds;
  work();
  for (int64_t i = 0; i < repetitions; ++i) {
    const auto start = Clock::now();
    work();
    seconds.push_back(seconds_since(start));
  }
  return median(std::move(seconds));
}

}  // namespace

Result<TokenizerBench> bench_tokenizer(const std::string& tokenizer_path, const std::string& file,
                                       int64_t repetitions) {
  INGOT_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(tokenizer_path));
  INGOT_ASSIGN(const std::string text, read_file(file));
  if (text.empty()) return input_error("{} is empty: there is nothing to measure", file);
  TokenizerBench result;
  result.bytes = static_cast<int64_t>(text.size());
  const double megabytes = static_cast<double>(text.size()) * 1e-6;
  std::vector<TokenId> ids;
  result.encode_mb_per_s = megabytes / median_seconds(repetitions, [&] {
                             ids.clear();
                             tokenizer.encode(text, ids);
                           });
  result.tokens = static_cast<int64_t>(ids.size());
  result.decode_mb_per_s = megabytes / median_seconds(repetitions, [&] { static_cast<void>(tokenizer.decode(ids)); });
  result.read_gbytes_per_s = kernels::read_bandwidth(ThreadPool(1));
  return result;
}

}  // namespace ingot::cli
