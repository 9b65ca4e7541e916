// ingot check, from outside.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "command_line.h"
#include "kernels/instruction_set.h"

namespace ingot::integration {
namespace {

using Json = nlohmann::json;

TEST(Check, ASoundInstallationIsOkAndSaysWhatItIs) {
  const Outcome outcome = run_ingot({"check", "--json", "--threads", "2"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json check = Json::parse(outcome.out);
  EXPECT_EQ(check["ok"], true);
  EXPECT_EQ(check["threads"], 2);
  EXPECT_EQ(check["isa"], kernels::instruction_set());
  EXPECT_EQ(check["mpi"], (Json{{"enabled", false}, {"ranks", 1}}));
  EXPECT_GT(check["peak_gflops"]["fp32"].get<double>(), 0);
  EXPECT_GE(check["peak_gflops"]["bf16"].get<double>(), 0);
  EXPECT_GT(check["memory_gbytes_per_s"]["read"].get<double>(), 0);
  EXPECT_GT(check["memory_gbytes_per_s"]["copy"].get<double>(), 0);
  EXPECT_FALSE(check["version"].get<std::string>().empty());
  EXPECT_FALSE(check["cpu"].get<std::string>().empty());
}

TEST(Check, EveryInstructionSetStepsAndEveryLibraryHasItsVersions) {
  const Outcome outcome = run_ingot({"check", "--json", "--threads", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json check = Json::parse(outcome.out);
  std::set<std::string> stepped;
  for (const Json& kernel : check["kernels"]) {
    stepped.insert(kernel["isa"].get<std::string>());
    EXPECT_EQ(kernel["ok"], true) << kernel;
    EXPECT_LT(kernel["max_error"].get<double>(), 1e-4) << kernel;
    EXPECT_GT(kernel["max_error"].get<double>(), 0) << "fp32 cannot agree with double to the bit: " << kernel;
  }
  const auto sets = kernels::all_instruction_sets();
  EXPECT_EQ(stepped, std::set<std::string>(sets.begin(), sets.end()));
  EXPECT_EQ(stepped.count("SCALAR"), 1u);
  for (const Json& library : check["libraries"]) {
    EXPECT_FALSE(library["build"].get<std::string>().empty()) << library;
    EXPECT_FALSE(library["run"].get<std::string>().empty()) << library;
  }
}

TEST(Check, IsNotOkAsOneOfManyRanksWithoutMpi) {
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  const Outcome outcome = run_ingot({"check", "--threads", "1"});
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("without MPI"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("not ok"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace ingot::integration
