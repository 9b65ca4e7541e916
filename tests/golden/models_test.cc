// Every model family's graph, run by the reference evaluator in double precision, against PyTorch's numbers: hidden
// states, logits, loss and all gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autodiff/gradient.h"
#include "base/files.h"
#include "checkpoint/safetensors.h"
#include "graph/text.h"
#include "models/model.h"
#include "ops/interpret.h"
#include "ops/registry.h"
#include "references.h"

namespace ingot {
namespace {

using Tensors = std::map<std::string, RefTensor>;

Tensors load(const fs::path& path) {
  Tensors out;
  const auto file = SafetensorsFile::open(path);
  if (!file.ok()) throw std::runtime_error(file.error().message);
  for (const TensorInfo& info : file->tensors()) {
    const ConstTensorView view = file->view(info);
    RefTensor tensor{info.shape, {}};
    if (info.dtype == DType::i64)
      for (int64_t x : view.span<int64_t>()) tensor.data.push_back(static_cast<double>(x));
    else
      for (float x : view.span<float>()) tensor.data.push_back(x);
    out[info.name] = std::move(tensor);
  }
  return out;
}

// The model's inputs from a reference's ids, documents and (unshifted) labels.
void add_inputs(const Tensors& reference, Tensors& sources) {
  const RefTensor &ids = reference.at("input_ids"), &labels = reference.at("labels");
  const auto documents = reference.find("document_ids");
  const auto tokens = static_cast<size_t>(ids.shape[1]);
  RefTensor positions{ids.shape, {}}, first{ids.shape, {}}, targets{ids.shape, {}};
  double start = 0, counted = 0;
  for (size_t i = 0; i < ids.data.size(); ++i) {
    const size_t t = i % tokens;
    const bool new_document =
        documents != reference.end() && t > 0 && documents->second.data[i] != documents->second.data[i - 1];
    if (t == 0 || new_document) start = static_cast<double>(t);
    positions.data.push_back(static_cast<double>(t) - start);
    first.data.push_back(start);
    targets.data.push_back(t + 1 < tokens ? labels.data[i + 1] : -100);
    counted += targets.data.back() >= 0 ? 1 : 0;
  }
  sources["ids"] = ids;
  sources["positions"] = positions;
  sources["first_visible"] = first;
  sources["targets"] = targets;
  sources["loss_scale"] = {{}, {1 / counted}};
}

// The reference is stored in float32.
void expect_close(const std::string& name, const RefTensor& found, const RefTensor& expected) {
  ASSERT_EQ(found.shape, expected.shape) << name;
  double largest = 0;
  for (double x : expected.data) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < expected.data.size(); ++i)
    ASSERT_NEAR(found.data[i], expected.data[i], 1e-6 * std::max(largest, 1e-3)) << name << " element " << i;
}

class GoldenModels : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenModels, AgreesInEveryNumber) {
  const fs::path directory = references() / GetParam();
  const auto config = read_file(directory / "config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  const auto model = Model::from_json(*config, "config.json", {UnknownKeys::refuse, {}});
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Tensors reference = load(directory / "reference.safetensors");
  Tensors sources = load(directory / "model.safetensors");
  EXPECT_EQ(sources.size(), model->parameters().size());
  add_inputs(reference, sources);

  Graph graph;
  Builder builder(graph);
  const Shape ids = reference.at("input_ids").shape;
  const Model::Forward forward = model->build(builder, {ids[0], ids[1], true});
  const ValueId loss = model->build_loss(builder, forward);
  builder.output("loss", loss);
  builder.output("logits", model->build_logits(builder, forward));
  builder.output("final_norm", forward.final_norm);
  for (size_t i = 0; i < forward.hidden_states.size(); ++i)
    builder.output(fmt::format("hidden_states.{}", i), forward.hidden_states[i]);
  std::vector<ValueId> wrt;
  for (const ParameterSpec& parameter : model->parameters()) wrt.push_back(graph.find_source(parameter.name)->value);
  wrt.insert(wrt.end(), forward.hidden_states.begin(), forward.hidden_states.end());
  const std::vector<ValueId> gradients = add_gradients(graph, loss, wrt);
  const size_t parameters = model->parameters().size();
  for (size_t i = 0; i < wrt.size(); ++i) {
    const std::string name =
        i < parameters ? model->parameters()[i].name : fmt::format("hidden_states.{}", i - parameters);
    ASSERT_NE(gradients[i], kNone) << name;
    if (reference.contains("grad." + name)) builder.output("grad." + name, gradients[i]);
    EXPECT_TRUE(reference.contains("grad." + name) || i >= parameters) << name;
  }
  graph.remove_dead_nodes();
  const auto again = parse_graph(print_graph(graph), find_op);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(verify_graph(*again).ok());

  for (const auto& [name, tensor] : interpret_results(*again, sources)) {
    ASSERT_TRUE(reference.contains(name)) << name;
    expect_close(name, tensor, reference.at(name));
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModels, ::testing::ValuesIn(reference_names()), [](const auto& one) {
  std::string name = one.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace ingot
