#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/dtype.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "base/shape.h"
#include "base/system.h"

namespace ingot {
namespace {

fs::path fresh_directory(const std::string& name) {
  const fs::path path = fs::path(::testing::TempDir()) / ("ingot_base_" + name);
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}

TEST(AtomicFile, FollowsLinksAndReplacesNothingButFiles) {
  const fs::path directory = fresh_directory("places");
  ASSERT_TRUE(write_file_atomic(directory / "file", "old").ok());
  fs::create_symlink(directory / "file", directory / "link");
  ASSERT_TRUE(write_file_atomic(directory / "link", "new").ok());
  EXPECT_TRUE(fs::is_symlink(directory / "link"));
  EXPECT_EQ(read_file(directory / "file").value(), "new");
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  fs::create_directory(directory / "directory");
  for (const char* name : {"pipe", "directory"}) {
    const Status status = write_file_atomic(directory / name, "x");
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().kind, ErrorKind::usage);
    EXPECT_FALSE(fs::is_regular_file(directory / name));
  }
}

// The known answers that come with Random123 (kat_vectors).
TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, NormalNumbersHaveMeanZeroAndVarianceOne) {
  double sum = 0, squares = 0;
  constexpr int kCount = 200000;
  for (int i = 0; i < kCount; ++i) {
    const double x = normal_at(stream_key(1, "w"), static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.01);
}

TEST(Rng, StreamsDifferBySeedAndByPath) {
  EXPECT_NE(stream_key(1, "a"), stream_key(2, "a"));
  EXPECT_NE(stream_key(1, "a"), stream_key(1, "b"));
}

TEST(DType, Bf16RoundsToNearestEven) {
  EXPECT_EQ(bf16_from_float(1.0f), 0x3f80);
  EXPECT_EQ(bf16_from_float(1.00390625f), 0x3f80);  // halfway, to even
  EXPECT_EQ(bf16_from_float(1.01171875f), 0x3f82);  // halfway, to even
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::nanf("")))));
}

TEST(DType, F16RoundTripsEveryBitPattern) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = float_from_f16(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float_from_f16(f16_from_float(value))));
    } else {
      EXPECT_EQ(f16_from_float(value), half) << bits;
    }
  }
}

TEST(DType, F16RoundsToNearestEvenAndOverflowsToInfinity) {
  EXPECT_EQ(f16_from_float(65519.0f), 0x7bff);
  EXPECT_EQ(f16_from_float(65520.0f), 0x7c00);
  EXPECT_EQ(f16_from_float(1.00048828125f), 0x3c00);  // halfway, to even
  EXPECT_EQ(f16_from_float(0x1p-25f), 0x0000);        // halfway between 0 and the least subnormal, to even
}

TEST(Crc32c, GivesThePublishedCheckValue) {
  const std::string_view digits = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(digits.data(), digits.size()))), 0xE3069283u);
}

TEST(Shape, CountsNegativeAxesFromTheEnd) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape.elements(), 30);
  EXPECT_EQ(shape.to_string(), "[2,3,5]");
  EXPECT_THROW(shape[3], BugError);
}

TEST(ThreadPool, RunsEveryTileOnce) {
  for (const int threads : {1, 2, 5, 70})
    for (const int64_t tiles : {0, 1, 2, 3, 64, 101, 5000}) {
      SCOPED_TRACE(std::to_string(tiles) + " tiles on " + std::to_string(threads) + " threads");
      std::vector<std::atomic<int>> seen(static_cast<size_t>(tiles));
      ThreadPool(threads).run(tiles, [&](int64_t tile, int thread) {
        ++seen[static_cast<size_t>(tile)];
        EXPECT_LT(thread, threads);
      });
      for (const auto& count : seen) EXPECT_EQ(count, 1);
    }
}

// One thread's tiles wait until the others have done all the rest.
TEST(ThreadPool, TakesTilesFromAThreadThatIsBusy) {
  constexpr int64_t kTiles = 200;
  for (const int64_t slow : {int64_t{0}, kTiles / 2, kTiles - 1}) {
    std::atomic<int64_t> done = 0;
    ThreadPool(3).run(kTiles, [&](int64_t tile, int) {
      while (tile == slow && done < kTiles - 1) std::this_thread::yield();
      ++done;
    });
    EXPECT_EQ(done, kTiles);
  }
}

// Half of the smallest normal number, computed at run time.
float denormal() {
  volatile float smallest = std::numeric_limits<float>::min();
  return smallest / 2;
}

TEST(ThreadPool, ATimedPoolSaysWhatEachThreadDid) {
  for (const int threads : {1, 3}) {
    std::vector<ThreadTime> times(static_cast<size_t>(threads));
    const ThreadPool pool = ThreadPool(threads).timed(times);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<std::vector<std::pair<int64_t, int64_t>>> tiles(static_cast<size_t>(threads));
    const int64_t begin = steady_ns();
    for (int run = 0; run < 2; ++run)
      pool.run(16, [&](int64_t, int thread) {
        const int64_t start = steady_ns();
        while (steady_ns() - start < 20'000) {
        }
        tiles[static_cast<size_t>(thread)].emplace_back(start, steady_ns());
      });
    const int64_t end = steady_ns();
    for (size_t thread = 0; thread < times.size(); ++thread) {
      const ThreadTime& time = times[thread];
      if (tiles[thread].empty()) {
        EXPECT_EQ(time.begin, 0);
        EXPECT_EQ(time.busy, 0);
        continue;
      }
      EXPECT_LE(begin, time.begin);
      EXPECT_LE(time.begin, tiles[thread].front().first);
      EXPECT_GE(time.end, tiles[thread].back().second);
      EXPECT_LE(time.end, end);
      EXPECT_GE(time.busy, 20'000 * static_cast<int64_t>(tiles[thread].size()));
      EXPECT_LE(time.busy, time.end - time.begin);
    }
  }
}

TEST(ThreadPool, ComputesWithoutDenormalsAndOnlyThere) {
  ASSERT_GT(denormal(), 0.0f);
  for (int threads : {1, 2, 5}) {
    std::vector<float> results(64, 1.0f);
    ThreadPool(threads).run(64, [&](int64_t tile, int) { results[static_cast<size_t>(tile)] = denormal(); });
    for (const float result : results) EXPECT_EQ(result, 0.0f);
    EXPECT_GT(denormal(), 0.0f) << "the caller's arithmetic has changed";
  }
}

TEST(ThreadPool, RethrowsWhatATileThrows) {
  EXPECT_THROW(ThreadPool(2).run(8, [](int64_t tile, int) { INGOT_CHECK(tile != 5, "tile {}", tile); }), BugError);
}

TEST(SplitEvenly, CoversAllItemsInMultiplesOfTheGrain) {
  int64_t at = 0;
  for (int64_t part = 0; part < 3; ++part) {
    const Range range = split_evenly(100, 3, part, 16);
    EXPECT_EQ(range.begin, at);
    at = range.end;
  }
  EXPECT_EQ(at, 100);
}

TEST(AtomicFile, PublishesWholeContentOrNothing) {
  const fs::path directory = fresh_directory("atomic");
  const fs::path path = directory / "a.txt";
  ASSERT_TRUE(write_file_atomic(path, "old").ok());
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("new").ok());
  }  // destroyed without publish
  EXPECT_EQ(*read_file(path), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 1);
  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file->write("newer").ok());
  ASSERT_TRUE(file->publish().ok());
  EXPECT_EQ(*read_file(path), "newer");
  EXPECT_EQ(file->digest(), hash_bytes("newer"));
}

TEST(Files, TemporariesOfDeadProcessesAreRemovedAndNothingElse) {
  const fs::path directory = fresh_directory("abandoned");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const fs::path dead = directory / fmt::format("a.tmp-{}", child),
                 alive = directory / fmt::format("a.tmp-{}", ::getpid());
  for (const fs::path& path : {dead, alive, directory / "a.tmp-", directory / "a.tmp-1x", directory / "b"})
    ASSERT_TRUE(write_file_atomic(path, "x").ok());
  ASSERT_TRUE(remove_abandoned_files(directory).ok());
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 4);
  EXPECT_TRUE(remove_abandoned_files(directory / "nowhere").ok());
}

TEST(Files, AMissingFileIsAnInputErrorThatNamesIt) {
  const auto content = read_file("/no/such/file");
  ASSERT_FALSE(content.ok());
  EXPECT_EQ(content.error().kind, ErrorKind::input);
  EXPECT_NE(content.error().message.find("/no/such/file"), std::string::npos);
}

TEST(MappedFile, ShowsTheBytesAndAnEmptyFileIsEmpty) {
  const fs::path directory = fresh_directory("map");
  ASSERT_TRUE(write_file_atomic(directory / "x", "hello").ok());
  ASSERT_TRUE(write_file_atomic(directory / "empty", "").ok());
  EXPECT_EQ(MappedFile::open(directory / "x")->text(), "hello");
  EXPECT_TRUE(MappedFile::open(directory / "empty")->bytes().empty());
  EXPECT_FALSE(MappedFile::open(directory).ok());
}

TEST(System, ReportsPlausibleNumbers) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_EQ(default_threads(3), 3);
  EXPECT_GT(available_memory(), 0u);
  EXPECT_GT(resident_bytes(), 0u);
}

}  // namespace
}  // namespace ingot
