#include "checkpoint/reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "checkpoint/save_directory.h"
#include "checkpoint/testing.h"

namespace ingot {
namespace {

using testing::TemporaryDirectory;

// Checkpoints of one tensor [6, 4] cut into 2 × 2 boxes, and a whole one.
class Checkpoints : public ::testing::Test {
 protected:
  Checkpoints() {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(i);
  }

  fs::path save(int64_t step) {
    Snapshot snapshot;
    snapshot.step = step;
    snapshot.layout = R"({"tensor":4})";
    snapshot.files = {{"config.json", "{}"}};
    const Shape shape{6, 4};
    const ConstTensorView whole(reinterpret_cast<const std::byte*>(values_.data()), DType::f32, shape);
    std::vector<std::vector<float>> parts;
    for (const Box& box : {Box{{0, 0}, {4, 1}}, Box{{0, 1}, {4, 4}}, Box{{4, 0}, {6, 1}}, Box{{4, 1}, {6, 4}}}) {
      parts.emplace_back(static_cast<size_t>(box.shape().elements()));
      const TensorView part{reinterpret_cast<std::byte*>(parts.back().data()), DType::f32, box.shape()};
      copy_box(box, whole, Box::whole(shape), part, box);
      snapshot.pieces.push_back({"cut", "weight", shape, box, part});
    }
    snapshot.pieces.push_back(whole_piece("whole", "weight", whole));
    snapshot.pieces.push_back(whole_piece("whole", "adam_m", whole));
    const auto saved = save_directory(directory_.path(), snapshot);
    EXPECT_TRUE(saved.ok()) << saved.error().message;
    return directory_.path() / checkpoint_name(step);
  }

  static Checkpoint open(const fs::path& path) {
    auto opened = Checkpoint::open(path);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(opened).value();
  }

  TemporaryDirectory directory_;
  std::vector<float> values_ = std::vector<float>(24);
};

TEST_F(Checkpoints, SayWhatTheyHold) {
  const Checkpoint checkpoint = open(save(7));
  EXPECT_EQ(checkpoint.step(), 7);
  EXPECT_EQ(checkpoint.manifest().layout, R"({"tensor":4})");
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  EXPECT_EQ(checkpoint.tensors()[0].kind, "adam_m");
  EXPECT_EQ(checkpoint.tensors()[1].name, "cut");
  EXPECT_EQ(checkpoint.tensors()[1].pieces, 4u);
  EXPECT_EQ(checkpoint.find("cut", "adam_m"), nullptr);
  EXPECT_FALSE(checkpoint.whole_view(checkpoint.tensors()[1]).has_value());
  EXPECT_TRUE(checkpoint.whole_view(checkpoint.tensors()[2]).has_value());
  EXPECT_TRUE(checkpoint.has_file("config.json"));
  EXPECT_FALSE(checkpoint.read_file("tokenizer.json").ok());
}

TEST_F(Checkpoints, GiveAnyBoxOfATensorHoweverItIsCut) {
  const Checkpoint checkpoint = open(save(7));
  for (int64_t a = 0; a < 6; ++a)
    for (int64_t b = a + 1; b <= 6; ++b)
      for (int64_t c = 0; c < 4; ++c)
        for (int64_t d = c + 1; d <= 4; ++d) {
          const Box box{{a, c}, {b, d}};
          std::vector<float> read(static_cast<size_t>(box.shape().elements()), -1);
          const TensorView memory{reinterpret_cast<std::byte*>(read.data()), DType::f32, box.shape()};
          ASSERT_TRUE(checkpoint.assemble("cut", "weight", {6, 4}, box, memory).ok());
          size_t at = 0;
          for (int64_t i = a; i < b; ++i)
            for (int64_t j = c; j < d; ++j) ASSERT_EQ(read[at++], static_cast<float>(4 * i + j)) << box.to_string();
        }
}

TEST_F(Checkpoints, ConvertFloatsOnTheWay) {
  const Checkpoint checkpoint = open(save(7));
  std::vector<uint16_t> read(24);
  ASSERT_TRUE(
      checkpoint.read_tensor("cut", "weight", {reinterpret_cast<std::byte*>(read.data()), DType::bf16, {6, 4}}).ok());
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(float_from_bf16(read[i]), static_cast<float>(i));
}

TEST_F(Checkpoints, RefuseATensorTheyLackOrOfAnotherShapeOrDType) {
  const Checkpoint checkpoint = open(save(7));
  std::vector<int64_t> memory(24);
  auto* data = reinterpret_cast<std::byte*>(memory.data());
  const auto problem = [&](const char* name, const char* kind, DType dtype, const Shape& shape) {
    const Status read = checkpoint.read_tensor(name, kind, {data, dtype, shape});
    return read.ok() ? "" : read.error().message;
  };
  EXPECT_NE(problem("cut", "adam_v", DType::f32, {6, 4}).find("no adam_v of tensor \"cut\""), std::string::npos);
  EXPECT_NE(problem("cut", "weight", DType::f32, {4, 6}).find("shape [6,4], expected [4,6]"), std::string::npos);
  EXPECT_NE(problem("cut", "weight", DType::i64, {6, 4}).find("is f32, expected i64"), std::string::npos);
}

TEST_F(Checkpoints, OpenAsAModelWithCutTensorsPutTogether) {
  const fs::path path = save(7);
  const auto model = open_weights(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  ASSERT_EQ(model->tensors().size(), 2u);
  for (const auto& tensor : model->tensors()) {
    EXPECT_EQ(tensor.info.shape, Shape({6, 4}));
    EXPECT_EQ(std::memcmp(tensor.data, values_.data(), 96), 0) << tensor.info.name;
  }
}

TEST_F(Checkpoints, EveryChangedByteOfEveryFileIsFoundAndTheFileNamed) {
  const fs::path path = save(7);
  for (const std::string& name : testing::names_in(path)) {
    const std::string content = testing::content_of(path / name);
    for (size_t at = 0; at < content.size(); ++at) {
      std::string damaged = content;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
      testing::write_content(path / name, damaged);
      const auto report = verify_checkpoint(path);
      ASSERT_TRUE(report.ok());
      ASSERT_EQ(report->damaged.size(), 1u) << name << " byte " << at;
      ASSERT_EQ(report->damaged[0].file, name);
    }
    testing::write_content(path / name, content);
  }
  EXPECT_TRUE(verify_checkpoint(path)->damaged.empty());
}

TEST_F(Checkpoints, EveryTruncationOfEveryFileIsFound) {
  const fs::path path = save(7);
  for (const std::string& name : testing::names_in(path)) {
    const std::string content = testing::content_of(path / name);
    for (size_t size = 0; size < content.size(); size += 1 + size / 64) {
      testing::write_content(path / name, content.substr(0, size));
      ASSERT_FALSE(Checkpoint::open(path).ok()) << name << " cut at " << size;
      ASSERT_EQ(verify_checkpoint(path)->damaged.size(), 1u) << name << " cut at " << size;
    }
    fs::remove(path / name);
    ASSERT_FALSE(Checkpoint::open(path).ok());
    if (name == kManifestName)
      EXPECT_EQ(verify_checkpoint(path).error().kind, ErrorKind::input);
    else
      EXPECT_EQ(verify_checkpoint(path)->damaged[0].problem, "it is missing");
    testing::write_content(path / name, content);
  }
}

TEST_F(Checkpoints, TheNewestIntactOneIsChosen) {
  EXPECT_FALSE(find_newest_checkpoint(directory_.path() / "none")->has_value());
  EXPECT_FALSE(find_newest_checkpoint(directory_.path())->has_value());
  save(100);
  save(200);
  const fs::path damaged = save(300), incomplete = save(400);
  fs::rename(save(500), directory_.path() / "step-00000500.tmp-1");
  testing::write_content(damaged / "config.json", "[]");
  fs::remove(incomplete / kManifestName);
  ::testing::internal::CaptureStderr();
  const auto newest = find_newest_checkpoint(directory_.path());
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(newest.ok());
  ASSERT_TRUE(newest->has_value());
  EXPECT_EQ((*newest)->step(), 200);
  for (const char* part : {"step-00000500.tmp-1 is passed over: its save did not end",
                           "step-00000400 is passed over: it has no manifest.json",
                           "step-00000300 is passed over: it is damaged: config.json: its checksum is"})
    EXPECT_NE(log.find(part), std::string::npos) << log;
  EXPECT_EQ(log.find("step-00000100"), std::string::npos) << log;
}

TEST_F(Checkpoints, ThatAllAreDamagedIsAnErrorAndNotANewStart) {
  testing::write_content(save(100) / "config.json", "[]");
  const auto newest = find_newest_checkpoint(directory_.path());
  ASSERT_FALSE(newest.ok());
  EXPECT_EQ(newest.error().kind, ErrorKind::input);
}

TEST_F(Checkpoints, AreListedByStepNotByName) {
  for (const int64_t step : std::initializer_list<int64_t>{100'000'000'000, 99'999'999, 5}) save(step);
  const auto entries = list_checkpoints(directory_.path());
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].step, 5);
  EXPECT_EQ((*entries)[2].step, 100'000'000'000);
}

TEST_F(Checkpoints, APathMeansOneOrThoseOfARun) {
  const fs::path a = save(100), b = save(200);
  EXPECT_EQ(*resolve_checkpoints(a), std::vector<fs::path>{a});
  EXPECT_EQ(*resolve_checkpoints(directory_.path()), (std::vector<fs::path>{a, b}));
  const fs::path run = directory_.path() / "run";
  fs::create_directories(run / "checkpoints");
  EXPECT_FALSE(resolve_checkpoints(run).ok());
  fs::rename(b, run / "checkpoints" / b.filename());
  EXPECT_EQ(*resolve_checkpoints(run), std::vector<fs::path>{run / "checkpoints" / b.filename()});
  EXPECT_FALSE(resolve_checkpoints(directory_.path() / "nowhere").ok());
}

TEST_F(Checkpoints, AnInconsistentManifestWithARightChecksumIsFound) {
  const fs::path path = save(7);
  Manifest manifest = open(path).manifest();
  for (ManifestPiece& piece : manifest.pieces)
    if (piece.tensor == "whole") piece.shape = piece.box.stop = Shape{4, 6};
  testing::write_content(path / kManifestName, *render_manifest(manifest));
  EXPECT_FALSE(Checkpoint::open(path).ok());
  EXPECT_EQ(verify_checkpoint(path)->damaged.size(), 1u);
}

}  // namespace
}  // namespace ingot
