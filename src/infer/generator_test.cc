#include "infer/generator.h"

#include <algorithm>

#include "infer/testing.h"

namespace ingot {
namespace {

using testing::kGemma2;
using testing::kGpt2;
using testing::kLlama;
using testing::kMistral;
using testing::model_of;
using testing::plain_logits;
using testing::some_ids;

std::unique_ptr<Generator> generator_of(const Model& model, int64_t tokens, const ThreadPool& pool) {
  auto generator = Generator::create(model, {.tokens = tokens}, pool);
  EXPECT_TRUE(generator.ok()) << generator.error().message;
  initialize_weights(model, 7, (*generator)->arena(), pool);
  return std::move(*generator);
}

std::vector<float> fed(Generator& generator, std::span<const int32_t> ids) {
  auto logits = generator.feed(ids);
  EXPECT_TRUE(logits.ok()) << logits.error().message;
  return {logits->begin(), logits->end()};
}

void expect_close(const std::vector<float>& a, const std::vector<float>& b, const std::string& where) {
  ASSERT_EQ(a.size(), b.size());
  float largest = 1;
  for (const float x : b) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4f * largest) << where << ", logit " << i;
}

TEST(Generator, GreedyTokensAreTheArgmaxOfTheWholeForward) {
  const ThreadPool pool(2);
  for (const char* json : {kGpt2, kLlama, kMistral, kGemma2}) {
    const Model model = model_of(json);
    auto generator = generator_of(model, 40, pool);
    std::vector<int32_t> ids = some_ids(9);
    GenerateOptions options;
    options.max_tokens = 25;
    options.sampling.temperature = 0;
    const auto result = generate(*generator, ids, options);
    ASSERT_TRUE(result.ok()) << result.error().message;
    ASSERT_EQ(result->tokens.size(), 25u);
    EXPECT_FALSE(result->context_is_full);
    EXPECT_GT(result->prefill_seconds, 0);
    EXPECT_GT(result->seconds_per_token, 0);
    const size_t prompt = ids.size();
    ids.insert(ids.end(), result->tokens.begin(), result->tokens.end());
    const auto rows = plain_logits(model, ids, pool);
    for (size_t t = prompt; t < ids.size(); ++t)
      EXPECT_EQ(ids[t], std::ranges::max_element(rows[t - 1]) - rows[t - 1].begin()) << json << " at " << t;
  }
}

// Whole batches of 256, padded ones, and what does not fit the cache with padding.
TEST(Generator, PiecesOfAnySizeGiveTheLogitsOfTheWholeRow) {
  const ThreadPool pool(2);
  for (const char* json : {kGpt2, kLlama, kMistral, kGemma2}) {
    const Model model = model_of(json);
    const std::vector<int32_t> ids = some_ids(320);
    const auto rows = plain_logits(model, ids, pool);
    auto generator = generator_of(model, 320, pool);
    for (const auto& sizes :
         std::vector<std::vector<size_t>>{{320}, {1, 1, 2, 16, 17, 63, 3}, {300, 20}, {250, 70}, {64, 1, 255}}) {
      generator->clear();
      size_t at = 0;
      for (const size_t size : sizes) {
        const auto logits = fed(*generator, std::span(ids).subspan(at, size));
        at += size;
        expect_close(logits, rows[at - 1], fmt::format("{} after {}", json, at));
      }
      EXPECT_EQ(generator->length(), static_cast<int64_t>(at));
    }
  }
}

// Prompts of very different lengths side by side: each gets the tokens that it gets alone, also where it ends early.
TEST(Generator, SeveralPromptsGetWhatEachGetsAlone) {
  const ThreadPool pool(2);
  for (const char* json : {kGpt2, kLlama, kMistral}) {
    SCOPED_TRACE(json);
    const Model model = model_of(json);
    auto alone = generator_of(model, 320, pool);
    std::vector<std::vector<int32_t>> prompts;
    for (const int count : {3, 70, 1, 310, 17}) prompts.push_back(some_ids(count));
    prompts[1][0] = prompts[0][0] + 1;
    auto together = Generator::create(model, {.tokens = 320, .sequences = 6}, pool).value();  // one stays empty
    initialize_weights(model, 7, together->arena(), pool);
    for (const double temperature : {0.0, 1.2}) {
      GenerateOptions options;
      options.max_tokens = 40;  // more than the longest has room for
      options.sampling.temperature = temperature;
      options.sampling.seed = 21;
      options.ends = {55, 17};
      together->clear();
      std::vector<std::vector<int32_t>> told(prompts.size());
      const auto results = generate(*together, prompts, options, [&](size_t i, int32_t token) {
        told[i].push_back(token);
        return Status();
      });
      ASSERT_TRUE(results.ok()) << results.error().message;
      ASSERT_EQ(results->size(), prompts.size());
      for (size_t i = 0; i < prompts.size(); ++i) {
        alone->clear();
        const auto expected = generate(*alone, prompts[i], options).value();
        EXPECT_EQ((*results)[i].tokens, expected.tokens) << i;
        EXPECT_EQ((*results)[i].context_is_full, expected.context_is_full) << i;
        EXPECT_EQ(told[i], expected.tokens) << i;
        ++options.sampling.seed;
      }
      EXPECT_TRUE((*results)[3].context_is_full || (*results)[3].tokens.back() == 17);
    }
  }
}

// With 8-bit weights a generator gives the logits of fp32 weights that were rounded the same way, and needs a third of
// the memory at most.
TEST(Generator, Int8WeightsAreTheRoundedOnes) {
  const ThreadPool pool(2);
  for (const char* json : {kGpt2, kLlama, kMistral, testing::kTiedLlama}) {
    SCOPED_TRACE(json);
    const Model model = model_of(json);
    const fs::path directory = fs::temp_directory_path() / "ingot_infer_int8";
    auto plain = generator_of(model, 64, pool);
    ASSERT_TRUE(write_model_directory(directory, model, nullptr, plain->arena()).ok());
    ASSERT_TRUE(round_weights_to_int8(model, plain->arena(), pool).ok());
    auto rounded = Generator::create(model, {.tokens = 64, .weights = WeightFormat::int8}, pool).value();
    ASSERT_TRUE(load_weights_as_kept(directory, model, rounded->arena(), pool).ok());
    const std::vector<int32_t> ids = some_ids(40);
    for (const size_t size : {size_t{1}, size_t{30}, size_t{9}}) {
      const Tokens piece = Tokens(ids).subspan(static_cast<size_t>(plain->length()), size);
      const std::vector<float> expected = fed(*plain, piece);
      expect_close(fed(*rounded, piece), expected, fmt::format("{} tokens", size));
    }
    for (const int threads : {1, 3}) {
      const ThreadPool other(threads);
      auto again = Generator::create(model, {.tokens = 64, .weights = WeightFormat::int8}, other).value();
      ASSERT_TRUE(load_weights_as_kept(directory, model, again->arena(), other).ok());
      rounded->clear();
      EXPECT_EQ(fed(*again, ids), fed(*rounded, ids));
    }
    (void)ingot::remove_all(directory);
  }
}

// Weights that products read the other way round give the same logits; none is left in both forms.
TEST(Generator, TransposedWeightsAreTheSameOnes) {
  const ThreadPool pool(2);
  for (const char* json : {kGpt2, kLlama, testing::kTiedLlama, kGemma2}) {
    SCOPED_TRACE(json);
    const Model model = model_of(json);
    const fs::path directory = fs::temp_directory_path() / "ingot_infer_transposed";
    auto plain = generator_of(model, 64, pool);
    ASSERT_TRUE(write_model_directory(directory, model, nullptr, plain->arena()).ok());
    ASSERT_EQ(for_generation(WeightFormat::fp32, {}), WeightFormat::transposed);
    auto turned = Generator::create(model, {.tokens = 64, .weights = WeightFormat::transposed}, pool).value();
    ASSERT_TRUE(load_weights_as_kept(directory, model, turned->arena(), pool).ok());
    EXPECT_EQ(turned->arena().variables().bytes(), plain->arena().variables().bytes());
    const bool has_inputs_first = json == kGpt2;
    EXPECT_EQ(turned->arena().variables().find("transformer.h.0.mlp.c_fc.weight.transposed") != nullptr,
              has_inputs_first);
    EXPECT_EQ(turned->arena().variables().find("transformer.h.0.mlp.c_fc.weight"), nullptr);
    const std::vector<int32_t> ids = some_ids(60);
    for (const size_t size : {size_t{1}, size_t{30}, size_t{4}, size_t{25}}) {
      const Tokens piece = Tokens(ids).subspan(static_cast<size_t>(plain->length()), size);
      expect_close(fed(*turned, piece), fed(*plain, piece), fmt::format("{} tokens", size));
    }
    (void)ingot::remove_all(directory);
  }
}

TEST(Generator, WeightsThatAreNotFiniteCannotBeRounded) {
  const ThreadPool pool(1);
  const Model model = model_of(kLlama);
  auto generator = generator_of(model, 8, pool);
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  generator->arena().variable(name).as<float>()[7] = std::numeric_limits<float>::infinity();
  const Status status = round_weights_to_int8(model, generator->arena(), pool);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::input);
  EXPECT_NE(status.error().message.find(name), std::string::npos);
}

TEST(Generator, TheSameBitsForAnyNumberOfThreads) {
  for (const char* json : {kGpt2, kLlama}) {
    const Model model = model_of(json);
    std::vector<std::vector<float>> logits;
    std::vector<std::vector<int32_t>> texts;
    for (const int threads : {1, 2, 5}) {
      const ThreadPool pool(threads);
      auto generator = generator_of(model, 320, pool);
      logits.push_back(fed(*generator, some_ids(83)));
      generator->clear();
      GenerateOptions options;
      options.max_tokens = 60;
      options.sampling = {.temperature = 1.3, .top_k = 30, .top_p = 0.97, .seed = 11};
      texts.push_back(generate(*generator, some_ids(5), options).value().tokens);
    }
    EXPECT_EQ(logits[0], logits[1]);
    EXPECT_EQ(logits[0], logits[2]);
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_EQ(texts[0], texts[2]);
  }
}

TEST(Generator, SeedsAndNarrowChoices) {
  const ThreadPool pool(1);
  const Model model = model_of(kLlama);
  auto generator = generator_of(model, 100, pool);
  const auto text = [&](SamplingOptions sampling) {
    generator->clear();
    GenerateOptions options;
    options.max_tokens = 40;
    options.sampling = sampling;
    return generate(*generator, some_ids(4), options).value().tokens;
  };
  const auto greedy = text({.temperature = 0});
  EXPECT_EQ(text({.top_k = 1, .seed = 5}), greedy);
  EXPECT_EQ(text({.top_p = 1e-9, .seed = 6}), greedy);
  EXPECT_EQ(text({.seed = 5}), text({.seed = 5}));
  EXPECT_NE(text({.seed = 5}), text({.seed = 6}));
}

TEST(Generator, EndsAtEosAtTheContextAndWhereToldTo) {
  const ThreadPool pool(1);
  const Model model = model_of(
      R"({"model_type": "gpt2", "vocab_size": 61, "n_embd": 24, "n_layer": 1, "n_head": 3, "n_positions": 20})");
  auto generator = generator_of(model, 1000, pool);
  EXPECT_EQ(generator->context(), 20);
  GenerateOptions options;
  options.max_tokens = 1000;
  const auto full = generate(*generator, some_ids(5), options);
  ASSERT_TRUE(full.ok()) << full.error().message;
  EXPECT_EQ(full->tokens.size(), 16u);  // the last one needs no place
  EXPECT_TRUE(full->context_is_full);

  generator->clear();
  options.ends = {full->tokens[3]};
  const auto first = std::ranges::find(full->tokens, options.ends.front()) - full->tokens.begin();
  std::vector<int32_t> told;
  const auto ended = generate(*generator, some_ids(5), options, [&](int32_t token) {
    told.push_back(token);
    return Status();
  });
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->tokens.size(), static_cast<size_t>(first) + 1);
  EXPECT_EQ(told, ended->tokens);
  EXPECT_FALSE(ended->context_is_full);

  generator->clear();
  options.max_tokens = 0;
  EXPECT_TRUE(generate(*generator, some_ids(20), options).value().tokens.empty());
  generator->clear();
  options.max_tokens = 5;
  const auto refused =
      generate(*generator, some_ids(5), options, [&](int32_t) { return Status(failed_error("no more")); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "no more");
}

TEST(Generator, SaysWhatDoesNotFit) {
  const ThreadPool pool(1);
  const Model model = model_of(kGpt2);
  auto generator = generator_of(model, 12, pool);
  const auto long_prompt = generate(*generator, some_ids(13), {});
  ASSERT_FALSE(long_prompt.ok());
  EXPECT_EQ(long_prompt.error().kind, ErrorKind::usage);
  EXPECT_NE(long_prompt.error().message.find("13"), std::string::npos);
  EXPECT_NE(long_prompt.error().message.find("12"), std::string::npos);
  for (const int32_t id : {61, -1, 1 << 30}) {
    const auto outside = generator->feed(std::vector<int32_t>{1, id});
    ASSERT_FALSE(outside.ok());
    EXPECT_EQ(outside.error().kind, ErrorKind::input);
  }
  EXPECT_EQ(generator->length(), 0);
  GenerateOptions bad;
  bad.max_tokens = -1;
  EXPECT_EQ(generate(*generator, some_ids(3), bad).error().kind, ErrorKind::usage);
  bad = {};
  bad.sampling.top_p = 2;
  EXPECT_EQ(generate(*generator, some_ids(3), bad).error().kind, ErrorKind::usage);
}

TEST(Generator, AStepWritesTheCacheInItsPlaceAndCopiesNoWeights) {
  const ThreadPool pool(1);
  for (const char* json : {kGpt2, kLlama, kMistral, kGemma2}) {
    const Model model = model_of(json);
    auto generator = generator_of(model, 100, pool);
    const Program& step = generator->step_program();
    EXPECT_TRUE(step.plan().copies.empty()) << json;
    EXPECT_LT(step.plan().workspace_bytes, 16384) << json;
  }
}

}  // namespace
}  // namespace ingot
