#include "base/spelling.h"

#include <gtest/gtest.h>

#include <vector>

namespace ingot {
namespace {

TEST(NearestName, IsTheOneWithTheFewestEdits) {
  const std::vector<std::string> known{"hidden_size", "intermediate_size", "n_embd"};
  EXPECT_EQ(nearest_name("hiden_size", known), "hidden_size");
  EXPECT_EQ(nearest_name("intermediate", known), "intermediate_size");
  EXPECT_EQ(nearest_name("n_emb", known), "n_embd");
  EXPECT_EQ(nearest_name("", known), "n_embd");
  EXPECT_EQ(nearest_name("x", {}), "");
}

}  // namespace
}  // namespace ingot
