#include "optim/parameter_groups.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

const std::vector<ParameterInfo> kParameters = {{"model.embed_tokens.weight", 2},
                                                {"model.layers.0.input_layernorm.weight", 1},
                                                {"model.layers.0.self_attn.q_proj.weight", 2},
                                                {"model.layers.0.self_attn.q_proj.bias", 1},
                                                {"lm_head.weight", 2}};

TEST(ParameterGroups, DecayFallsOnTensorsOfTwoDimensionsOnly) {
  const ParameterGroups groups = assign_groups(kParameters, {}, 0.1, 1.0);
  ASSERT_EQ(groups.parameters.size(), 5u);
  const double expected[] = {0.1, 0, 0.1, 0, 0.1};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(groups.parameters[i].weight_decay, expected[i]) << kParameters[i].name;
    EXPECT_EQ(groups.parameters[i].learning_rate_scale, 1.0);
    EXPECT_EQ(groups.parameters[i].clip_group, 0);
  }
  EXPECT_EQ(groups.max_grad_norms, std::vector<double>{1.0});
  EXPECT_TRUE(groups.warnings.empty());
}

TEST(ParameterGroups, TheFirstRuleThatMatchesDecides) {
  const std::vector<ParameterGroupRule> rules = {{.match = "*embed*", .weight_decay = 0, .learning_rate_scale = 0.5},
                                                 {.match = "*.weight", .weight_decay = 0.3}};
  const ParameterGroups groups = assign_groups(kParameters, rules, 0.1, 1.0);
  EXPECT_EQ(groups.parameters[0], (ParameterSettings{0, 0.5, 0}));
  EXPECT_EQ(groups.parameters[1], (ParameterSettings{0.3, 1, 0}));  // named by a rule: rank does not matter any more
  EXPECT_EQ(groups.parameters[3], (ParameterSettings{0, 1, 0}));
  EXPECT_EQ(groups.parameters[4], (ParameterSettings{0.3, 1, 0}));
}

TEST(ParameterGroups, ARuleWithoutDecayKeepsTheDefault) {
  const std::vector<ParameterGroupRule> rules = {{.match = "*", .learning_rate_scale = 2}};
  const ParameterGroups groups = assign_groups(kParameters, rules, 0.1, 1.0);
  EXPECT_EQ(groups.parameters[0], (ParameterSettings{0.1, 2, 0}));
  EXPECT_EQ(groups.parameters[1], (ParameterSettings{0, 2, 0}));
}

TEST(ParameterGroups, ARuleWithItsOwnNormIsAClipGroupOfItsOwn) {
  const std::vector<ParameterGroupRule> rules = {
      {.match = "*embed*", .max_grad_norm = 0.5}, {.match = "*layernorm*"}, {.match = "*bias", .max_grad_norm = 0}};
  const ParameterGroups groups = assign_groups(kParameters, rules, 0.1, 1.0);
  EXPECT_EQ(groups.max_grad_norms, (std::vector<double>{1.0, 0.5, 0.0}));
  const int expected[] = {1, 0, 0, 2, 0};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(groups.parameters[i].clip_group, expected[i]);
}

TEST(ParameterGroups, ARuleThatDecidesNothingIsReported) {
  const std::vector<ParameterGroupRule> rules = {{.match = "*"}, {.match = "*embed*"}, {.match = "*emded*"}};
  const ParameterGroups groups = assign_groups(kParameters, rules, 0.1, 1.0);
  ASSERT_EQ(groups.warnings.size(), 2u);
  EXPECT_NE(groups.warnings[0].find("earlier group"), std::string::npos) << groups.warnings[0];
  EXPECT_NE(groups.warnings[1].find("no parameter matches '*emded*'"), std::string::npos) << groups.warnings[1];
}

TEST(ParameterGroups, NoParametersIsNoError) {
  EXPECT_TRUE(assign_groups({}, {}, 0.1, 1.0).parameters.empty());
  EXPECT_EQ(assign_groups({}, std::vector<ParameterGroupRule>{{.match = "*"}}, 0.1, 1.0).warnings.size(), 1u);
}

}  // namespace
}  // namespace ingot
