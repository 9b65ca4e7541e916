#include "checkpoint/writer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstring>

#include "checkpoint/reader.h"
#include "checkpoint/save_directory.h"
#include "checkpoint/testing.h"

namespace ingot {
namespace {

using testing::TemporaryDirectory;

// A run whose every tensor follows from the step.
class Saves : public ::testing::TestWithParam<bool> {
 protected:
  Snapshot snapshot(int64_t step) {
    weights_.assign(24, 0.5f * static_cast<float>(step));
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] += static_cast<float>(i);
    half_.assign(3, bf16_from_float(static_cast<float>(step)));
    Snapshot result;
    result.step = step;
    result.state = fmt::format(R"({{"step":{}}})", step);
    result.files = {{"config.json", R"({"model_type":"llama"})"}, {"tokenizer.json", "{}"}};
    const ConstTensorView w(reinterpret_cast<const std::byte*>(weights_.data()), DType::f32, {4, 6});
    result.pieces = {whole_piece("w", "weight", w), whole_piece("w", "adam_m", w), whole_piece("w", "adam_v", w),
                     whole_piece("h", "weight", {reinterpret_cast<const std::byte*>(half_.data()), DType::bf16, {3}})};
    return result;
  }
  std::unique_ptr<CheckpointWriter> writer(int keep = 3, std::optional<int64_t> resumed = {}) {
    auto created = CheckpointWriter::create({directory_.path(), keep, GetParam(), resumed});
    EXPECT_TRUE(created.ok()) << created.error().message;
    return std::move(created).value();
  }
  void save(CheckpointWriter& to, int64_t step) {
    ASSERT_TRUE(to.save(snapshot(step)).ok());
    const Status status = to.wait();
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  void expect_intact(int64_t step) {
    const auto report = verify_checkpoint(path_of(step));
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->damaged.empty()) << report->to_string();
    const auto checkpoint = Checkpoint::open(path_of(step));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    (void)snapshot(step);
    std::vector<float> read(24);
    for (const char* kind : {"weight", "adam_m", "adam_v"}) {
      const TensorView memory{reinterpret_cast<std::byte*>(read.data()), DType::f32, {4, 6}};
      ASSERT_TRUE(checkpoint->read_tensor("w", kind, memory).ok());
      EXPECT_EQ(read, weights_) << kind;
    }
    EXPECT_EQ(*checkpoint->read_file("state.json"), fmt::format(R"({{"step":{}}})", step));
  }
  fs::path path_of(int64_t step) const { return directory_.path() / checkpoint_name(step); }
  std::vector<std::string> names() const { return testing::names_in(directory_.path()); }

  TemporaryDirectory directory_;
  std::vector<float> weights_;
  std::vector<uint16_t> half_;
};
INSTANTIATE_TEST_SUITE_P(Modes, Saves, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Background" : "Waiting"; });

TEST_P(Saves, KeepsExactlyTheNewest) {
  const auto to = writer(3);
  for (int64_t step = 100; step <= 700; step += 100) {
    save(*to, step);
    EXPECT_EQ(names().size(), static_cast<size_t>(std::min<int64_t>(3, step / 100)));
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000500", "step-00000600", "step-00000700"}));
  for (int64_t step : {500, 600, 700}) expect_intact(step);
  EXPECT_EQ(testing::names_in(path_of(700)),
            (std::vector<std::string>{"adam_m-00000.safetensors", "adam_v-00000.safetensors", "config.json",
                                      "manifest.json", "state.json", "tokenizer.json", "weight-00000.safetensors"}));
}

TEST_P(Saves, MayChangeTheTensorsAsSoonAsSaveReturns) {
  const auto to = writer();
  ASSERT_TRUE(to->save(snapshot(100)).ok());
  std::fill(weights_.begin(), weights_.end(), -1.0f);
  ASSERT_TRUE(to->wait().ok());
  expect_intact(100);
}

TEST_P(Saves, ReuseTheirStagingMemory) {
  const auto to = writer();
  ASSERT_TRUE(to->reserve(4096).ok());
  save(*to, 100);
  save(*to, 200);
  EXPECT_EQ(to->staging_bytes(), GetParam() ? 4096u : 0u);
}

TEST_P(Saves, CopyOnManyThreadsGivesTheSameBytes) {
  const std::vector<std::byte> large = testing::pattern((size_t{9} << 20) + 8, 5);
  const ThreadPool pool(3);
  Snapshot big = snapshot(100);
  big.pieces.push_back(whole_piece("large", "weight", {large.data(), DType::u8, {static_cast<int64_t>(large.size())}}));
  const auto to = writer();
  ASSERT_TRUE(to->save(std::move(big), &pool).ok());
  ASSERT_TRUE(to->wait().ok());
  const auto weights = open_weights(path_of(100));
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(std::memcmp(weights->find("large")->data, large.data(), large.size()), 0);
}

TEST_P(Saves, OfAStepThatExistsReplaceIt) {
  const auto to = writer();
  Snapshot first = snapshot(100);
  first.files.push_back({"old.txt", "old"});
  ASSERT_TRUE(to->save(std::move(first)).ok());
  save(*to, 100);
  EXPECT_EQ(names(), std::vector<std::string>{"step-00000100"});
  EXPECT_FALSE(fs::exists(path_of(100) / "old.txt"));
  expect_intact(100);
}

TEST_P(Saves, ReplaceADirectoryOfTheirNameThatIsNoCheckpoint) {
  fs::create_directories(path_of(100));
  testing::write_content(path_of(100) / "weight-00000.safetensors", "half a f");
  save(*writer(), 100);
  EXPECT_EQ(names(), std::vector<std::string>{"step-00000100"});
  expect_intact(100);
}

// Else the next start would go on from a run that was given up. Before the first save nothing of it goes.
TEST_P(Saves, AfterARewindRemoveLaterStepsAndNeverThemselves) {
  const auto to = writer(5);
  for (const int64_t step : {200, 400, 500}) save(*to, step);
  EXPECT_EQ(names().size(), 3u);
  save(*to, 300);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000200", "step-00000300"}));
  save(*to, 350);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000200", "step-00000300", "step-00000350"}));
}

TEST_P(Saves, AreCutToKeepAtTheStartOnlyWhereTheNewestIsKnownToBeIntact) {
  for (int64_t step : {100, 200, 300}) save(*writer(), step);
  (void)writer(1);
  EXPECT_EQ(names().size(), 3u);
  (void)writer(1, 200);  // 300 was found damaged, and the run resumed from 200
  EXPECT_EQ(names(), std::vector<std::string>{"step-00000200"});
}

TEST_P(Saves, LeaveForeignFilesAlone) {
  fs::create_directories(directory_.path() / "step-best");
  testing::write_content(directory_.path() / "notes.txt", "mine");
  const auto to = writer(1);
  save(*to, 100);
  save(*to, 200);
  EXPECT_EQ(names(), (std::vector<std::string>{"notes.txt", "step-00000200", "step-best"}));
}

// The same way as a full disk: a write that fails. The limit is on a file's size, so that the small files still
// succeed.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_DFL);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_P(Saves, ThatFailCostThemselvesAlone) {
  const auto to = writer(2);
  save(*to, 100);
  save(*to, 200);
  for (rlim_t limit : {1, 10, 100, 250}) {
    const FileSizeLimit full(limit);
    Snapshot next = snapshot(300);
    const Status saved = to->save(std::move(next));
    EXPECT_EQ(saved.ok(), GetParam());
    const Status status = to->wait();
    ASSERT_FALSE(status.ok()) << limit;
    EXPECT_EQ(status.error().kind, ErrorKind::failed);
    EXPECT_NE(status.error().message.find("File too large"), std::string::npos) << status.error().message;
    EXPECT_EQ(names(), (std::vector<std::string>{"step-00000100", "step-00000200"}));
  }
  expect_intact(100);
  expect_intact(200);
  save(*to, 400);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-00000200", "step-00000400"}));
}

TEST_P(Saves, OnlyOneProcessMayWriteADirectory) {
  {
    const auto first = writer();
    const auto second = CheckpointWriter::create({directory_.path(), 3, true, {}});
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().kind, ErrorKind::usage);
  }
  EXPECT_TRUE(CheckpointWriter::create({directory_.path(), 3, true, {}}).ok());
}

TEST_P(Saves, LeftoversOfDeadProcessesGoAtTheNextStart) {
  save(*writer(), 100);
  fs::copy(path_of(100), directory_.path() / "step-00000200.tmp-1", fs::copy_options::recursive);
  fs::copy(path_of(100), directory_.path() / "step-00000050.old-1", fs::copy_options::recursive);
  const auto to = writer();
  EXPECT_EQ(names(), std::vector<std::string>{"step-00000100"});
}

TEST_P(Saves, KilledAtAnyMomentLeaveTheEarlierCheckpointGood) {
  save(*writer(), 100);
  for (int round = 0; round < 8; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {  // saves without end until it is killed
      auto mine = CheckpointWriter::create({directory_.path(), 2, false, {}});
      if (!mine.ok()) ::_exit(1);
      for (int64_t step = 200;; step += 100) {
        if (!(*mine)->save(snapshot(step)).ok() || ::write(ready[1], "x", 1) != 1) ::_exit(1);
      }
    }
    char byte;
    for (int saved = 0; saved <= round; ++saved) ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    ::close(ready[0]);
    ::close(ready[1]);
    const auto newest = find_newest_checkpoint(directory_.path());
    ASSERT_TRUE(newest.ok()) << newest.error().message;
    ASSERT_TRUE(newest->has_value());
    EXPECT_GE((*newest)->step(), 100 * (round + 2));
    expect_intact((*newest)->step());
    save(*writer(2), 100000 + round);  // cleans up; later steps than any child's
    for (const std::string& name : names()) EXPECT_EQ(name.find('.'), std::string::npos) << name;
    fs::remove_all(path_of(100000 + round));
  }
}

TEST_P(Saves, KeepOfNoneIsAnError) {
  const auto created = CheckpointWriter::create({directory_.path(), 0, true, {}});
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().kind, ErrorKind::usage);
}

TEST_P(Saves, AreTheSameBytesForTheSameRun) {
  save(*writer(), 100);
  std::vector<std::string> before;
  for (const std::string& name : testing::names_in(path_of(100)))
    before.push_back(testing::content_of(path_of(100) / name));
  save(*writer(), 100);
  std::vector<std::string> after;
  for (const std::string& name : testing::names_in(path_of(100)))
    after.push_back(testing::content_of(path_of(100) / name));
  EXPECT_EQ(before, after);
}

TEST_P(Saves, TakeNoMoreDiskThanForeseen) {
  save(*writer(), 100);
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(path_of(100))) bytes += (file.file_size() + 4095) / 4096 * 4096;
  EXPECT_LE(bytes, checkpoint_bytes(snapshot(100)));
  EXPECT_EQ(required_disk_bytes(10, 5), 60u);
  EXPECT_TRUE(check_disk_space(directory_.path(), 1000, 5).ok());
  const Status full = check_disk_space(directory_.path() / "not/there/yet", uint64_t{1} << 58, 5);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace ingot
