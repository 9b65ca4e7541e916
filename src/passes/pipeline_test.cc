// Whole small models through the whole pipeline: after every pass the loss and every gradient stay what the plain graph
// gives, and the patterns that each model has are fused.
#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include "models/model.h"
#include "ops/add.h"
#include "ops/linear_cross_entropy_grad.h"
#include "passes/testing.h"

namespace ingot {
namespace {

struct ModelCase {
  std::string name, config;
  std::map<std::string, int> fused;  // how often each pattern is
};

void PrintTo(const ModelCase& test, std::ostream* out) {
  *out << test.name;
}

Graph loss_graph(const ModelCase& test) {
  auto model = Model::from_json(test.config, test.name);
  EXPECT_TRUE(model.ok()) << model.error().message;
  Graph graph;
  Builder builder(graph);
  const auto forward = model->build(builder, {.batch = 2, .tokens = 5, .dropout = true});
  builder.output("loss", model->build_loss(builder, forward));
  return graph;
}

// Every gradient is added to a state, as a micro-batch's is.
void accumulate_gradients(Graph& graph) {
  ingot::testing::differentiate(graph);
  Builder builder(graph);
  auto outputs = std::move(graph.outputs);
  graph.outputs.clear();
  for (const Output& output : outputs) {
    if (!output.name.starts_with("d.")) {
      graph.outputs.push_back(output);
      continue;
    }
    const ValueId state = builder.state("sum." + output.name, graph.type(output.value));
    builder.store(state, builder.add(kAdd, {state, output.value}));
  }
}

// What runs after the loss depends on its gradient, or is a view or a join of what is there anyway.
void expect_forward_first(const Graph& graph) {
  std::vector<bool> gradient(static_cast<size_t>(graph.value_count()), false);
  bool after = false;
  for (NodeId id : graph.schedule()) {
    const Node& node = graph.node(id);
    const bool is_loss = node.op == &kLinearCrossEntropyGrad;
    const bool depends = std::ranges::any_of(node.inputs, [&](ValueId v) { return gradient[static_cast<size_t>(v)]; });
    for (ValueId output : node.outputs) gradient[static_cast<size_t>(output)] = is_loss || depends;
    const bool allowed = !after || depends || node.op->traits.view || node.op->traits.join;
    EXPECT_TRUE(allowed) << node.op->name << " " << node.path;
    after = after || is_loss;
  }
}

class Pipeline : public ::testing::TestWithParam<ModelCase> {};

TEST_P(Pipeline, KeepsLossAndGradientsAfterEveryPass) {
  Graph graph = loss_graph(GetParam());
  Graph plain = graph;
  PassContext context;
  context.verify = true;
  const auto compare_with = [&](const Graph& before) {
    return [&](const Pass& pass, const Graph& after) {
      SCOPED_TRACE(pass.name);
      ingot::testing::expect_same_results(before, after);
    };
  };
  ASSERT_TRUE(run_passes(graph, forward_passes(), context, compare_with(plain)).ok());
  accumulate_gradients(plain);
  accumulate_gradients(graph);
  ingot::testing::expect_same_results(plain, graph);
  const Status status = run_passes(graph, backward_passes(), context, compare_with(plain));
  ASSERT_TRUE(status.ok()) << status.error().message;
  expect_forward_first(graph);
  std::map<std::string, int> fused;
  for (const FusionNote& note : context.notes) fused[note.pattern] += note.applied ? 1 : 0;
  EXPECT_EQ(fused, GetParam().fused) << fusion_report(context.notes);
}

TEST_P(Pipeline, LeavesLayersUnfusedWhereItIsTold) {
  Graph graph = loss_graph(GetParam());
  const Graph plain = graph;
  PassContext context{.no_fuse = {"*"}, .verify = true};
  ASSERT_TRUE(run_passes(graph, forward_passes(), context).ok());
  ingot::testing::expect_same_results(plain, graph);
  for (NodeId id : graph.schedule()) EXPECT_FALSE(graph.node(id).op->traits.fused) << graph.node(id).op->name;
}

TEST_P(Pipeline, ChangesNothingTheSecondTime) {
  Graph graph = loss_graph(GetParam());
  PassContext context;
  ASSERT_TRUE(run_passes(graph, forward_passes(), context).ok());
  const std::string once = print_graph(graph);
  ASSERT_TRUE(run_passes(graph, forward_passes(), context).ok());
  EXPECT_EQ(print_graph(graph), once);
}

std::vector<ModelCase> cases() {
  // A layer of each of these has two products that share an input, and four weights in all.
  const auto gated = [](int layers, int packed, int biased) {
    return std::map<std::string, int>{{"attention", layers},
                                      {"shared_input", 2 * layers},
                                      {"attention_packed", packed},
                                      {"glu", layers},
                                      {"linear_cross_entropy", 1},
                                      {"merge_loss", 1},
                                      {"matmul_add", 4 * layers},
                                      {"embedding_grad", 1},
                                      {"residual_rms_norm", 2 * layers},
                                      {"rms_norm_grad", 2 * layers},
                                      {"linear", biased}};
  };
  const auto without_linear = [](std::map<std::string, int> fused) {
    fused.erase("linear");
    return fused;
  };
  return {
      {"gpt2",
       R"({"model_type":"gpt2","vocab_size":11,"n_embd":8,"n_layer":2,"n_head":2,"n_positions":8,
                   "resid_pdrop":0.1,"embd_pdrop":0.1,"attn_pdrop":0.1})",
       {{"attention", 2},
        {"attention_packed", 2},
        {"linear_cross_entropy", 1},
        {"merge_loss", 1},
        {"matmul_add", 8},
        {"embedding_grad", 2},
        {"residual_layer_norm", 4},
        {"layer_norm_grad", 4},
        {"linear", 10},
        {"cluster", 1}}},
      {"llama", R"({"model_type":"llama","vocab_size":11,"hidden_size":8,"intermediate_size":12,"num_hidden_layers":2,
                    "num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":8})",
       without_linear(gated(2, 2, 0))},
      {"mistral", R"({"model_type":"mistral","vocab_size":11,"hidden_size":8,"intermediate_size":12,
                      "num_hidden_layers":1,"num_attention_heads":2,"num_key_value_heads":1,"sliding_window":3})",
       without_linear(gated(1, 1, 0))},
      {"qwen2", R"({"model_type":"qwen2","vocab_size":11,"hidden_size":8,"intermediate_size":12,"num_hidden_layers":2,
                    "num_attention_heads":2,"num_key_value_heads":1})",
       gated(2, 2, 2)},
      {"qwen3", R"({"model_type":"qwen3","vocab_size":11,"hidden_size":8,"intermediate_size":12,"num_hidden_layers":1,
                    "num_attention_heads":2,"num_key_value_heads":1,"head_dim":6})",
       without_linear(gated(1, 0, 0))},
      {"gemma2",
       R"({"model_type":"gemma2","vocab_size":11,"hidden_size":8,"intermediate_size":12,"num_hidden_layers":2,
                     "num_attention_heads":2,"num_key_value_heads":1,"head_dim":6,"sliding_window":3,
                     "attn_logit_softcapping":2.0,"final_logit_softcapping":3.0})",
       without_linear(gated(2, 2, 0))},
      {"gemma2_uncapped",
       R"({"model_type":"gemma2","vocab_size":11,"hidden_size":8,"intermediate_size":12,"num_hidden_layers":2,
           "num_attention_heads":2,"num_key_value_heads":1,"head_dim":6,"sliding_window":3,
           "attn_logit_softcapping":null,"final_logit_softcapping":null})",
       without_linear(gated(2, 2, 0))},
  };
}

INSTANTIATE_TEST_SUITE_P(Models, Pipeline, ::testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

TEST(RunPasses, ShowsTheGraphAfterEachPassThatIsNotDisabled) {
  Graph graph = ingot::testing::graph_of(R"(%0 = input "x" : f32[3]
%1 = scale(%0) {factor=1}
output "y" = %1)");
  std::vector<std::string> names;
  PassContext context{.disabled = {"fuse_*", "fold"}};
  const auto after = [&](const Pass& pass, const Graph&) { names.emplace_back(pass.name); };
  ASSERT_TRUE(run_passes(graph, forward_passes(), context, after).ok());
  EXPECT_EQ(names, (std::vector<std::string>{"cse", "dce", "pack_attention", "fold_fused", "dce_fused"}));
}

TEST(RunPasses, NamesThePassThatBreaksTheGraph) {
  Graph graph = ingot::testing::graph_of(R"(%0 = input "x" : f32[3]
%1 = exp(%0)
output "y" = %1)");
  const Pass broken[] = {{"broken", [](Graph& g, PassContext&) {
                            g.node(0).dead = true;
                            return true;
                          }}};
  PassContext context{.verify = true};
  const Status status = run_passes(graph, broken, context);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("the pass broken left the graph malformed"), std::string::npos);
}

TEST(CheckPassNames, RefusesAPatternThatMatchesNone) {
  const std::string good[] = {"fuse_*", "cse"}, bad[] = {"fuse_everything"};
  EXPECT_TRUE(check_pass_names(good).ok());
  const Status status = check_pass_names(bad);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::usage);
  EXPECT_NE(status.error().message.find("fuse_attention"), std::string::npos);
}

TEST(FusionReport, ListsEachPatternWithPlacesAndReasons) {
  PassContext context;
  EXPECT_EQ(fusion_report(context.notes), "no pattern was found\n");
  context.applied("attention", "h.0");
  context.missed("glu", "", "the gate is not the first half");
  context.missed("attention", "h.1", "the scores are an output");
  context.missed("attention", "h.1", "the scores are an output");
  EXPECT_EQ(fusion_report(context.notes), R"(attention: applied 1, not applied 1
  + h.0
  - h.1: the scores are an output
glu: applied 0, not applied 1
  - (no path): the gate is not the first half
)");
}

}  // namespace
}  // namespace ingot
