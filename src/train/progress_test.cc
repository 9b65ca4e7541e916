#include "train/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace ingot {
namespace {

struct Screen {
  std::string drawn;
  std::vector<std::string> lines;
  double now = 100;

  ProgressOutput output(bool terminal, int width = 200) {
    return {terminal, width, [this](std::string_view text) { drawn += text; },
            [this](const std::string& line) { lines.push_back(line); }, [this] { return now; }};
  }
};

TEST(Progress, PrintsPlainLinesAtLoggedStepsOnly) {
  Screen screen;
  {
    Progress progress(100, 0, screen.output(false));
    for (int64_t step = 1; step <= 20; ++step) {
      screen.now += 2;
      progress.step({step, 3.25, 3e-4, 1.5, 1234.4}, step % 10 == 0);
    }
  }
  ASSERT_EQ(screen.lines.size(), 2u);
  EXPECT_EQ(screen.lines[0], "step 10/100 (10%)  loss 3.2500  lr 3.000e-04  grad 1.5  1234 tokens/s  eta 3m00s");
  EXPECT_TRUE(screen.drawn.empty());
  for (const std::string& line : screen.lines)
    EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](unsigned char c) { return std::iscntrl(c); }));
}

TEST(Progress, RedrawsOneLineOnATerminal) {
  Screen screen;
  Progress progress(3, 0, screen.output(true));
  screen.now += 1;
  progress.step({1, 3.25, 3e-4, 1.5, 100}, true);
  const std::string first = screen.drawn;
  EXPECT_EQ(first[0], '\r');
  EXPECT_EQ(first.find('\n'), std::string::npos);
  screen.now += 0.01;
  progress.step({2, 3.25, 3e-4, 1.5, 100}, true);  // too soon to draw again
  EXPECT_EQ(screen.drawn, first);
  screen.now += 1;
  progress.step({3, 3, 3e-4, 1.5, 100}, true);
  progress.finish();
  progress.finish();
  EXPECT_TRUE(screen.lines.empty());
  EXPECT_EQ(std::count(screen.drawn.begin(), screen.drawn.end(), '\n'), 1);
  EXPECT_EQ(screen.drawn.back(), '\n');
  EXPECT_NE(screen.drawn.find("step 3/3 (100%)"), std::string::npos);
}

TEST(Progress, AShorterLineCoversTheLongerOneBefore) {
  Screen screen;
  Progress progress(100, 0, screen.output(true));
  screen.now += 1;
  progress.step({1, 123456789.0, 3e-4, 1.5, 100}, true);
  const size_t long_line = screen.drawn.size();
  screen.drawn.clear();
  screen.now += 1;
  progress.step({2, 1.0, 3e-4, 1.5, 100}, true);
  EXPECT_EQ(screen.drawn.size(), long_line);
  EXPECT_EQ(screen.drawn.back(), ' ');
  screen.drawn.clear();
  progress.clear();
  EXPECT_EQ(screen.drawn.find_first_not_of("\r "), std::string::npos);
  EXPECT_EQ(screen.drawn.back(), '\r');
  screen.drawn.clear();
  progress.clear();
  EXPECT_TRUE(screen.drawn.empty());
  screen.now += 0.01;
  progress.step({3, 1.0, 3e-4, 1.5, 100}, true);  // after clear the line comes back at once
  EXPECT_FALSE(screen.drawn.empty());
}

TEST(Progress, NeverWritesBeyondTheTerminalsWidth) {
  Screen screen;
  Progress progress(100, 0, screen.output(true, 20));
  screen.now += 1;
  progress.step({1, 3.25, 3e-4, 1.5, 100}, true);
  EXPECT_EQ(screen.drawn.size(), 1u + 19u);
}

TEST(Progress, EstimatesFromTheRecentStepsOfThisRunAlone) {
  Screen screen;
  Progress progress(1000, 900, screen.output(false));  // 900 were made before, at whatever speed
  for (int64_t step = 901; step <= 960; ++step) {
    screen.now += step <= 910 ? 1000 : 1;  // a slow beginning falls out of the window
    progress.step({step, 1, 1e-3, 1, 1}, step == 960);
  }
  ASSERT_EQ(screen.lines.size(), 1u);
  EXPECT_NE(screen.lines[0].find("eta 40s"), std::string::npos) << screen.lines[0];
}

TEST(Progress, DurationsAreShort) {
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(3599), "59m59s");
  EXPECT_EQ(duration_text(7620), "2h07m");
  EXPECT_EQ(duration_text(86400 * 3 + 3600 * 4), "3d04h");
  EXPECT_EQ(duration_text(1e300), "?");
  EXPECT_EQ(duration_text(-1), "?");
}

}  // namespace
}  // namespace ingot
