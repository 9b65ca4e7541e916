#include "kernels/instruction_set.h"

#include <gtest/gtest.h>

namespace ingot::kernels {
namespace {

TEST(InstructionSet, EachListedSetCanBeChosen) {
  const std::vector<std::string> names = all_instruction_sets();
  ASSERT_FALSE(names.empty());
  EXPECT_TRUE(names.back() == "SCALAR" || names.back() == "EMU128") << names.back();
  for (const std::string& name : names) {
    ASSERT_TRUE(choose_instruction_set(name).ok());
    EXPECT_EQ(instruction_set(), name);
  }
  ASSERT_TRUE(choose_instruction_set(names.front()).ok());
  EXPECT_EQ(instruction_set(), names.front());
  EXPECT_EQ(all_instruction_sets(), names);
}

TEST(InstructionSet, UnknownNameIsAnErrorThatListsTheKnownOnes) {
  const Status status = choose_instruction_set("MMX");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(all_instruction_sets().back()), std::string::npos) << status.error().message;
  EXPECT_EQ(instruction_set(), all_instruction_sets().front());
}

}  // namespace
}  // namespace ingot::kernels
