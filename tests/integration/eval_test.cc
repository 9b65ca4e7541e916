// ingot eval, from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "infer/generator.h"
#include "model_directory.h"

namespace ingot::integration {
namespace {

using Json = nlohmann::json;

Json evaluated(std::vector<std::string> arguments) {
  return json_of("eval", std::move(arguments));
}

class Eval : public ::testing::Test {
 protected:
  void SetUp() override { write_small_model(scratch_.path() / "model", kByteModel); }
  std::string model() const { return scratch_ / "model"; }
  std::string file(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(write_file_atomic(scratch_.path() / name, text).ok());
    return scratch_ / name;
  }
  ScratchDirectory scratch_;
};

std::string sentences(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "the " + std::to_string(i * 7919 % 97) + " cats sat on the mat.\n";
  return text;
}

// The sum of the losses of ids[counted_from…] given all before them, one token at a time with a cache.
double nats_of(const LoadedModel& model, const std::vector<int32_t>& ids, size_t counted_from) {
  const ThreadPool pool(1);
  auto generator = taken(Generator::create(model.model, {.tokens = static_cast<int64_t>(ids.size())}, pool));
  EXPECT_TRUE(load_weights(model.directory, model.model, generator->arena()).ok());
  double nats = 0;
  for (size_t t = 0; t + 1 < ids.size(); ++t) {
    const auto logits = taken(generator->feed(Tokens(&ids[t], 1)));
    if (t + 1 < counted_from) continue;
    double total = 0;
    for (const float x : logits) total += std::exp(static_cast<double>(x));
    nats += std::log(total) - static_cast<double>(logits[static_cast<size_t>(ids[t + 1])]);
  }
  return nats;
}

TEST(EvalStories, LossOnTheGoldenTextIsTheGoldenOne) {
  if (!has_stories()) return;
  const Json golden = Json::parse(read_file(kStories / "golden.json").value());
  const auto ids = golden["greedy_ids"].get<std::vector<int32_t>>();
  const LoadedModel model = taken(open_model(kStories));
  // The model's own ids, which are not in every place those of its text.
  EXPECT_NEAR(nats_of(model, ids, 1) / static_cast<double>(ids.size() - 1),
              golden["mean_loss_on_these_ids"].get<double>(), 1e-4);

  const ScratchDirectory scratch;
  const std::string text = golden["greedy_text"];
  ASSERT_TRUE(write_file_atomic(scratch.path() / "text.txt", text).ok());
  const auto encoded = model.tokenizer->encode(text, {.add_special = true});
  const Json json = evaluated({kStories.string(), "--text", scratch / "text.txt"});
  const double nats = nats_of(model, encoded, 1);
  EXPECT_EQ(json["tokens"], encoded.size() - 1);
  EXPECT_NEAR(json["loss"].get<double>(), nats / static_cast<double>(encoded.size() - 1), 1e-4);
  EXPECT_NEAR(json["bits_per_byte"].get<double>(), nats / std::log(2.0) / static_cast<double>(text.size()), 1e-4);
  if (encoded == ids) {
    EXPECT_NEAR(json["loss"].get<double>(), golden["mean_loss_on_these_ids"].get<double>(), 1e-4);
  }
}

TEST_F(Eval, AFileShorterThanAWindowIsOneWindow) {
  const std::string text = sentences(2), path = file("short.txt", text);
  const LoadedModel loaded = taken(open_model(model()));
  const auto ids = loaded.tokenizer->encode(text, {.add_special = true});
  ASSERT_LT(ids.size(), 64u);
  const double nats = nats_of(loaded, ids, 1);
  const Json json = evaluated({model(), "--text", path});
  EXPECT_EQ(json["tokens"], ids.size() - 1);
  EXPECT_NEAR(json["loss"].get<double>(), nats / static_cast<double>(ids.size() - 1), 1e-4);
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(json["loss"].get<double>()),
              1e-9 * json["perplexity"].get<double>());
  const size_t predicted_bytes = text.size() - loaded.tokenizer->token_bytes(ids[0]).size();
  EXPECT_NEAR(json["bits_per_byte"].get<double>(), nats / std::log(2.0) / static_cast<double>(predicted_bytes), 1e-4);
}

TEST_F(Eval, WindowsSlideOverALongerFile) {
  const std::string text = sentences(20), path = file("long.txt", text);
  const LoadedModel loaded = taken(open_model(model()));
  const auto ids = loaded.tokenizer->encode(text, {.add_special = true});
  ASSERT_GT(ids.size(), 200u);
  for (const size_t stride : {10u, 32u, 63u}) {
    double nats = 0;
    for (size_t begin = 0, done = 1; done < ids.size(); begin += stride) {
      const size_t end = std::min(begin + 64, ids.size());
      nats += nats_of(
          loaded, {ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end)},
          done - begin);
      done = end;
    }
    const Json json = evaluated({model(), "--text", path, "--stride", std::to_string(stride), "--threads", "2"});
    EXPECT_EQ(json["tokens"], ids.size() - 1) << stride;
    EXPECT_NEAR(json["loss"].get<double>(), nats / static_cast<double>(ids.size() - 1), 1e-4) << stride;
    if (stride == 32) {
      EXPECT_EQ(evaluated({model(), "--text", path, "--threads", "1"}), json) << "half a window is the default";
    }
  }
  EXPECT_EQ(evaluated({model(), "--text", path, "--stride", "64"})["tokens"], ids.size() - (ids.size() + 63) / 64);
}

TEST_F(Eval, EachFileIsADocument) {
  const std::string one = file("one.txt", sentences(2)), two = file("two.txt", sentences(9)),
                    none = file("none.txt", "");
  const Json a = evaluated({model(), "--text", one}), b = evaluated({model(), "--text", two}),
             both = evaluated({model(), "--text", one, two, none});
  const double ta = a["tokens"], tb = b["tokens"];
  EXPECT_EQ(both["tokens"].get<double>(), ta + tb);
  EXPECT_NEAR(both["loss"].get<double>(), (a["loss"].get<double>() * ta + b["loss"].get<double>() * tb) / (ta + tb),
              1e-5);
}

TEST_F(Eval, PrintsForPeopleToo) {
  const Outcome outcome = run_ingot({"eval", model(), "--text", file("a.txt", sentences(3))});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* word : {"loss", "perplexity", "bits per byte", "tokens"})
    EXPECT_NE(outcome.out.find(word), std::string::npos) << outcome.out;
}

TEST(EvalStories, Int8WeightsCostLittleAndTheCostIsShown) {
  if (!has_stories()) return;
  const Json golden = Json::parse(read_file(kStories / "golden.json").value());
  ScratchDirectory scratch;
  ASSERT_TRUE(write_file_atomic(scratch.path() / "a.txt", golden["greedy_text"].get<std::string>()).ok());
  const Json plain = evaluated({kStories.string(), "--text", scratch / "a.txt"});
  const Json rounded = evaluated({kStories.string(), "--text", scratch / "a.txt", "--weights", "int8"});
  EXPECT_EQ(rounded["fp32_weights"]["loss"], plain["loss"]);
  EXPECT_NE(rounded["loss"], plain["loss"]);
  EXPECT_NEAR(rounded["loss"].get<double>(), plain["loss"].get<double>(), 0.02);
  EXPECT_NEAR(rounded["perplexity_increase"].get<double>(),
              rounded["perplexity"].get<double>() / plain["perplexity"].get<double>() - 1, 1e-12);
  EXPECT_EQ(rounded["settings"]["weights"], "int8");
  EXPECT_FALSE(plain.contains("perplexity_increase"));
}

TEST_F(Eval, WeightsThatAreNotFiniteEndWithStatusOne) {
  change(scratch_.path() / "model" / "model.safetensors", "transformer.ln_f.weight", 0,
         std::numeric_limits<float>::quiet_NaN());
  expect_error({"eval", model(), "--text", file("a.txt", sentences(3))}, 1, {"not finite"});
}

TEST_F(Eval, ResultsDoNotReplaceFilesOfAModel) {
  const std::string config = scratch_ / "model/config.json";
  const std::string before = read_file(config).value();
  expect_error({"eval", model(), "--text", file("a.txt", sentences(3)), "--out", config}, 2, {"config.json"});
  EXPECT_EQ(read_file(config).value(), before);
}

TEST_F(Eval, SaysWhatIsWrong) {
  const std::string text = file("a.txt", sentences(3));
  expect_error({"eval", scratch_ / "nowhere", "--text", text}, 3, {"nowhere"});
  expect_error({"eval", model(), "--text", scratch_ / "missing.txt"}, 3, {"missing.txt"});
  expect_error({"eval", model(), "--text", file("empty.txt", "")}, 3, {"no token to predict"});
  expect_error({"eval", model()}, 2, {"--text"});
  expect_error({"eval", model(), "--text", text, "--stride", "0"}, 2, {"--stride"});
  expect_error({"eval", model(), "--text", text, "--stride", "65"}, 2, {"65", "64"});
  expect_error({"eval", model(), "--text", text, "--window", "65"}, 2, {"65", "64"});
  expect_error({"eval", model(), "--text", text, "--precision", "fp8"}, 2, {"--precision", "bf16"});
}

}  // namespace
}  // namespace ingot::integration
