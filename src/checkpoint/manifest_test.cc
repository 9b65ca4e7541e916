#include "checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/hash.h"
#include "checkpoint/convert.h"

namespace ingot {
namespace {

Manifest sample() {
  Manifest manifest;
  manifest.step = 500;
  manifest.layout = R"({"data":1,"tensor":2})";
  manifest.files = {{"weight-00001.safetensors", 100, 7}, {"weight-00000.safetensors", 200, 0xfedcba9876543210u}};
  const Shape shape{4, 6};
  manifest.pieces = {{"w", "weight", DType::f32, shape, {{2, 0}, {4, 6}}, "weight-00001.safetensors", "w[2:4,0:6]"},
                     {"w", "weight", DType::f32, shape, {{0, 0}, {2, 6}}, "weight-00000.safetensors", "w[0:2,0:6]"},
                     {"scalar", "adam_m", DType::f32, {}, {{}, {}}, "weight-00000.safetensors", "scalar"}};
  return manifest;
}

std::string problem_after(const std::function<void(Manifest&)>& change) {
  Manifest manifest = sample();
  change(manifest);
  const auto text = render_manifest(manifest);
  if (!text.ok()) return text.error().message;
  const auto parsed = parse_manifest(*text, "manifest.json");
  return parsed.ok() ? "" : parsed.error().message;
}

void expect_problem(const std::function<void(Manifest&)>& change, const std::string& part) {
  const std::string problem = problem_after(change);
  EXPECT_NE(problem.find(part), std::string::npos) << problem;
}

TEST(Manifest, ReadsBackWhatWasWritten) {
  const auto text = render_manifest(sample());
  ASSERT_TRUE(text.ok());
  const auto parsed = parse_manifest(*text, "manifest.json");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message << "\n" << *text;
  EXPECT_EQ(parsed->step, 500);
  EXPECT_EQ(parsed->layout, R"({"data":1,"tensor":2})");
  ASSERT_EQ(parsed->files.size(), 2u);
  EXPECT_EQ(parsed->files[0].name, "weight-00000.safetensors");
  EXPECT_EQ(parsed->files[0].hash, 0xfedcba9876543210u);
  ASSERT_EQ(parsed->pieces.size(), 3u);
  EXPECT_EQ(parsed->pieces[0].tensor, "scalar");
  EXPECT_EQ(parsed->pieces[0].shape.rank(), 0);
  EXPECT_EQ(parsed->pieces[1].box, (Box{{0, 0}, {2, 6}}));
  EXPECT_EQ(parsed->pieces[2].key, "w[2:4,0:6]");
  const auto again = render_manifest(*parsed);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *text);
}

TEST(Manifest, AnyChangedOrMissingByteIsFound) {
  const std::string text = *render_manifest(sample());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(parse_manifest(damaged, "manifest.json").ok()) << "byte " << at;
    EXPECT_FALSE(parse_manifest(text.substr(0, at), "manifest.json").ok()) << "cut at " << at;
  }
  EXPECT_FALSE(parse_manifest(text + "\n", "manifest.json").ok());
}

TEST(Manifest, RefusesPiecesThatDoNotCoverTheirTensorExactlyOnce) {
  EXPECT_EQ(problem_after([](Manifest&) {}), "");
  expect_problem([](Manifest& m) { m.pieces[0].box = {{1, 0}, {4, 6}}; }, "overlap");
  expect_problem([](Manifest& m) { m.pieces[0].box = {{2, 0}, {4, 5}}; }, "22 elements of the 24");
  expect_problem([](Manifest& m) { m.pieces.erase(m.pieces.begin()); }, "12 elements of the 24");
  expect_problem([](Manifest& m) { m.pieces[0].box.stop = Shape{5, 6}; }, "not within its shape");
  expect_problem([](Manifest& m) { m.pieces[0].box.start = Shape{5, 6}; }, "not within its shape");
  expect_problem([](Manifest& m) { m.pieces[0].box.start = Shape{2}; }, "not within its shape");
  expect_problem([](Manifest& m) { m.pieces[0].dtype = DType::bf16; }, "disagree");
  expect_problem([](Manifest& m) { m.pieces[0].shape = Shape{5, 6}; }, "disagree");
}

TEST(Manifest, RefusesFilesAndKeysThatDoNotFit) {
  expect_problem([](Manifest& m) { m.files[0].name = "../weight"; }, "not the name of a file");
  expect_problem([](Manifest& m) { m.files[0].name = "manifest.json"; }, "not the name of a file");
  expect_problem([](Manifest& m) { m.files[0].name = m.files[1].name; }, "listed twice");
  expect_problem([](Manifest& m) { m.files.pop_back(); }, "which is not listed");
  expect_problem([](Manifest& m) { m.pieces[2].key = "w[0:2,0:6]"; }, "two pieces");
  expect_problem([](Manifest& m) { m.pieces[0].kind = "Adam m"; }, "not a word");
  expect_problem(
      [](Manifest& m) {
        m.pieces[0].shape = Shape{int64_t{1} << 40, int64_t{1} << 40};
      },
      "can be addressed");
  expect_problem([](Manifest& m) { m.step = -1; }, "\"step\"");
  expect_problem([](Manifest& m) { m.layout = "7"; }, "\"layout\"");
}

TEST(Manifest, AnotherVersionIsAnErrorThatNamesBoth) {
  std::string text = *render_manifest(sample());
  text.replace(text.find("\"format_version\":1"), 18, "\"format_version\":2");
  const size_t body = text.find("\n\"checksum\"");
  text.replace(text.size() - 19, 16, hash_text(hash_bytes(std::string_view(text).substr(0, body))));
  const auto parsed = parse_manifest(text, "manifest.json");
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.error().message.find("format version 2, this program reads version 1"), std::string::npos)
      << parsed.error().message;
}

TEST(Box, IntersectionIsEmptyWhereBoxesOnlyTouch) {
  EXPECT_EQ(intersect({{0, 0}, {4, 4}}, {{2, 1}, {6, 3}}), (Box{{2, 1}, {4, 3}}));
  EXPECT_FALSE(intersect({{0}, {4}}, {{4}, {6}}).has_value());
  EXPECT_FALSE(intersect({{0}, {4}}, {{2}, {2}}).has_value());
  EXPECT_TRUE(intersect(Box::whole(Shape{}), Box::whole(Shape{})).has_value());
}

// Copies every part of every box of a small tensor and compares element by element.
TEST(Box, CopiesAnyPartBetweenAnyBoxes) {
  const Shape shape{3, 4, 5};
  std::vector<float> tensor(60);
  for (size_t i = 0; i < 60; ++i) tensor[i] = static_cast<float>(i);
  const std::vector<Box> boxes{Box::whole(shape),      {{0, 1, 0}, {3, 3, 5}}, {{1, 0, 0}, {2, 4, 5}},
                               {{0, 0, 2}, {3, 4, 4}}, {{1, 1, 1}, {3, 4, 4}}, {{2, 3, 4}, {3, 4, 5}}};
  const auto data_of = [&](const Box& box) {
    std::vector<float> data(static_cast<size_t>(box.shape().elements()));
    copy_box(box, {reinterpret_cast<const std::byte*>(tensor.data()), DType::f32, shape}, Box::whole(shape),
             {reinterpret_cast<std::byte*>(data.data()), DType::f32, box.shape()}, box);
    return data;
  };
  for (const Box& source : boxes)
    for (const Box& destination : boxes) {
      const auto part = intersect(source, destination);
      if (!part) continue;
      const std::vector<float> from = data_of(source);
      std::vector<float> to(static_cast<size_t>(destination.shape().elements()), -1);
      copy_box(*part, {reinterpret_cast<const std::byte*>(from.data()), DType::f32, source.shape()}, source,
               {reinterpret_cast<std::byte*>(to.data()), DType::f32, destination.shape()}, destination);
      size_t at = 0;
      for (int64_t i = destination.start[0]; i < destination.stop[0]; ++i)
        for (int64_t j = destination.start[1]; j < destination.stop[1]; ++j)
          for (int64_t k = destination.start[2]; k < destination.stop[2]; ++k) {
            const bool inside = intersect(*part, {{i, j, k}, {i + 1, j + 1, k + 1}}).has_value();
            ASSERT_EQ(to[at++], inside ? static_cast<float>((i * 4 + j) * 5 + k) : -1.0f);
          }
    }
}

}  // namespace
}  // namespace ingot
