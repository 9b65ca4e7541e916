#include "train/metrics.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/files.h"

namespace ingot {
namespace {

fs::path fresh_directory(const std::string& name) {
  const fs::path path = fs::path(::testing::TempDir()) / ("ingot_metrics_" + name);
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}

std::string content(const fs::path& path) {
  return read_file(path).value();
}

EvaluationWriter open_evaluation(const fs::path& directory, int64_t resumed_step) {
  auto writer = EvaluationWriter::open(directory, resumed_step);
  EXPECT_TRUE(writer.ok()) << writer.error().message;
  return std::move(writer).value();
}

const std::string kHeader = "step,loss,perplexity,bits_per_byte\n";

TEST(Metrics, HasTheDocumentedColumns) {
  const fs::path directory = fresh_directory("columns");
  auto writer = MetricsWriter::open(directory, 0).value();
  writer.write({.step = 1,
                .tokens = 8192,
                .counted_tokens = 8184,
                .loss = 10.5,
                .learning_rate = 3e-4,
                .grad_norm = 1.25,
                .tokens_per_second = 1000,
                .step_ms = 8192.5,
                .data_wait_ms = 0.125,
                .exposed_comm_ms = 0,
                .mfu = 0.5,
                .peak_memory_mb = 812,
                .loss_scale = 1,
                .skipped = 2});
  EXPECT_EQ(
      content(directory / "metrics.csv"),
      "step,tokens,counted_tokens,loss,learning_rate,grad_norm,tokens_per_second,step_ms,data_wait_ms,exposed_comm_ms,"
      "mfu,peak_memory_mb,loss_scale,skipped\n1,8192,8184,10.5,0.0003,1.25,1000,8192.5,0.125,0,0.5,812,1,2\n");
}

TEST(Metrics, FloatsReadBackToTheSameValue) {
  const fs::path directory = fresh_directory("floats");
  const double values[] = {0.1, 1.0 / 3, std::nextafter(2.0, 3.0), 5e-324, 1.7976931348623157e308, 12345678.9f};
  {
    EvaluationWriter writer = open_evaluation(directory, 0);
    for (int i = 0; i < 6; ++i) writer.write({i + 1, values[i], 1, 1});
  }
  const std::string text = content(directory / "evaluation.csv");
  size_t at = kHeader.size();
  for (double value : values) {
    const size_t comma = text.find(',', at);
    EXPECT_EQ(std::strtod(text.c_str() + comma + 1, nullptr), value);
    at = text.find('\n', at) + 1;
  }
}

TEST(Metrics, RowsAreInTheFileAsSoonAsTheyAreWritten) {
  const fs::path directory = fresh_directory("flush");
  EvaluationWriter writer = open_evaluation(directory, 0);
  EXPECT_EQ(content(directory / "evaluation.csv"), kHeader);
  writer.write({1, 2.5, 12.25, 0.5});
  EXPECT_EQ(content(directory / "evaluation.csv"), kHeader + "1,2.5,12.25,0.5\n");
}

TEST(Metrics, WhatIsNotFiniteIsWrittenAndReadBack) {
  const fs::path directory = fresh_directory("nan");
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  open_evaluation(directory, 0).write({1, nan, infinity, -infinity});
  EXPECT_EQ(content(directory / "evaluation.csv"), kHeader + "1,nan,inf,-inf\n");
  EXPECT_EQ(open_evaluation(directory, 5).last_step(), 1);
}

TEST(Metrics, AResumeDropsTheRowsAfterItsStepAndGoesOn) {
  const fs::path directory = fresh_directory("resume"), path = directory / "evaluation.csv";
  {
    EvaluationWriter writer = open_evaluation(directory, 0);
    for (int64_t step : {1, 10, 20, 30}) writer.write({step, 1, 1, 1});
  }
  {
    EvaluationWriter writer = open_evaluation(directory, 20);
    EXPECT_EQ(writer.last_step(), 20);
    EXPECT_EQ(content(path), kHeader + "1,1,1,1\n10,1,1,1\n20,1,1,1\n");
    writer.write({20, 7, 7, 7});  // is there already
    writer.write({30, 2, 2, 2});
    writer.write({30, 3, 3, 3});
  }
  open_evaluation(directory, 100);  // nothing to drop
  EXPECT_EQ(content(path), kHeader + "1,1,1,1\n10,1,1,1\n20,1,1,1\n30,2,2,2\n");
  open_evaluation(directory, 15);  // and a second resume, from further back
  EXPECT_EQ(content(path), kHeader + "1,1,1,1\n10,1,1,1\n");
  open_evaluation(directory, 0);  // a new run
  EXPECT_EQ(content(path), kHeader);
}

TEST(Metrics, ATornLastLineIsRepaired) {
  const fs::path directory = fresh_directory("torn"), path = directory / "evaluation.csv";
  const std::string whole = kHeader + "1,1,1,1\n2,1,1,1\n";
  for (const std::string& torn :
       {std::string("3"), std::string("3,1.2"), std::string("3,1,1,1"), std::string(40, '\0')}) {
    ASSERT_TRUE(write_file_atomic(path, whole + torn).ok());
    open_evaluation(directory, 3).write({3, 2, 2, 2});
    EXPECT_EQ(content(path), whole + "3,2,2,2\n");
  }
  for (const char* torn : {"", "step,lo"}) {
    ASSERT_TRUE(write_file_atomic(path, torn).ok());
    open_evaluation(directory, 3);
    EXPECT_EQ(content(path), kHeader);
  }
}

TEST(Metrics, AStepThatStandsTwiceIsKeptOnce) {
  const fs::path directory = fresh_directory("twice"), path = directory / "evaluation.csv";
  ASSERT_TRUE(write_file_atomic(path, kHeader + "1,1,1,1\n2,1,1,1\n2,5,5,5\n1,6,6,6\n3,1,1,1\n").ok());
  open_evaluation(directory, 9);
  EXPECT_EQ(content(path), kHeader + "1,1,1,1\n2,1,1,1\n3,1,1,1\n");
}

TEST(Metrics, AForeignFileIsNotTouched) {
  const fs::path directory = fresh_directory("foreign"), path = directory / "evaluation.csv";
  const auto refused = [&](const std::string& text, const std::string& where) {
    EXPECT_TRUE(write_file_atomic(path, text).ok());
    const auto writer = EvaluationWriter::open(directory, 5);
    ASSERT_FALSE(writer.ok()) << text;
    EXPECT_EQ(writer.error().kind, ErrorKind::input);
    EXPECT_NE(writer.error().message.find(path.string() + where), std::string::npos) << writer.error().message;
    EXPECT_EQ(content(path), text);
  };
  refused("step,loss\n1,2\n", ":1: expected the header");
  refused(kHeader + "1,1,1,1\nhello\n2,1,1,1\n", ":3:");
  refused(kHeader + "1,1,1\n", ":2:");
  refused(kHeader + "1,1,1,1,1\n", ":2:");
  refused(kHeader + "1,1,x,1\n", ":2:");
  refused(kHeader + "1.5,1,1,1\n", ":2:");
  refused(kHeader + ",1,1,1\n", ":2:");
  refused(kHeader + "\n", ":2:");
}

TEST(Metrics, AMissingDirectoryIsAnError) {
  const auto writer = MetricsWriter::open("/nonexistent-ingot/run", 0);
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().kind, ErrorKind::failed);
}

// Lets files of this process grow to `bytes` only, while it lives: a disk that is full, with the same effects.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = ::signal(SIGXFSZ, SIG_IGN);  // EFBIG instead of death
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const struct rlimit limit { bytes, before_.rlim_max };
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  struct rlimit before_ {};
  sighandler_t handler_ = SIG_DFL;
};

TEST(Metrics, RowsThatDoNotFitOnTheDiskAreWrittenLater) {
  const fs::path directory = fresh_directory("full"), path = directory / "evaluation.csv";
  EvaluationWriter writer = open_evaluation(directory, 0);
  for (int64_t step = 1; step <= 500; ++step) writer.write({step, 1, 1, 1});  // the captured log has the same limit
  const std::string before = content(path);
  ::testing::internal::CaptureStderr();
  {
    FileSizeLimit limit(before.size() + 3);  // room for a part of a row
    writer.write({501, 1, 1, 1});
    EXPECT_EQ(content(path), before);  // no half of a row
    writer.write({502, 1, 1, 1});
    EXPECT_EQ(content(path), before);
  }
  writer.write({503, 1, 1, 1});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(content(path), before + "501,1,1,1\n502,1,1,1\n503,1,1,1\n");
  const size_t first = log.find("cannot write " + path.string());
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("cannot write", first + 1), std::string::npos) << log;  // once a cause
}

TEST(Metrics, RowsStillInMemoryAreWrittenAtTheEnd) {
  const fs::path directory = fresh_directory("late"), path = directory / "evaluation.csv";
  ::testing::internal::CaptureStderr();
  {
    EvaluationWriter writer = open_evaluation(directory, 0);
    {
      FileSizeLimit full(kHeader.size());
      writer.write({1, 1, 1, 1});
    }
    EXPECT_EQ(content(path), kHeader);
  }
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(content(path), kHeader + "1,1,1,1\n");
}

}  // namespace
}  // namespace ingot
