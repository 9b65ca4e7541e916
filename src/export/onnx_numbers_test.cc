// Exported graphs, evaluated in double precision by the specification of their operators, against PyTorch's stored
// numbers: in one go and with a past, in batches whose rows are padded on the left to one length.
#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoint/safetensors.h"
#include "checkpoint/testing.h"
#include "export/export.h"
#include "export/onnx_testing.h"
#include "ops/interpret.h"

namespace ingot {
namespace {

using testing::OnnxEvaluator;
using testing::OnnxTensor;
using Sequence = std::vector<double>;

fs::path references() {
  return fs::path(INGOT_SOURCE_DIR) / "tests" / "golden" / "references";
}

std::vector<std::string> reference_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(references())) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// The documents of a reference's rows, and the logits after each of their tokens.
struct Documents {
  std::vector<Sequence> ids, logits;
  int64_t vocabulary = 0;
};

Documents documents_of(const fs::path& directory) {
  auto file = SafetensorsFile::open(directory / "reference.safetensors");
  if (!file.ok()) throw std::runtime_error(file.error().message);
  std::map<std::string, ConstTensorView> tensors;
  for (const TensorInfo& info : file->tensors()) tensors.emplace(info.name, file->view(info));
  const auto ids = tensors.at("input_ids").span<int64_t>();
  const auto logits = tensors.at("logits").span<float>();
  const int64_t tokens = tensors.at("input_ids").shape[1];
  Documents out;
  out.vocabulary = tensors.at("logits").shape[-1];
  for (int64_t i = 0; i < static_cast<int64_t>(ids.size()); ++i) {
    const auto document = [&](int64_t at) {
      return tensors.contains("document_ids") ? tensors.at("document_ids").span<int64_t>()[static_cast<size_t>(at)] : 0;
    };
    if (i % tokens == 0 || document(i) != document(i - 1)) out.ids.emplace_back(), out.logits.emplace_back();
    out.ids.back().push_back(static_cast<double>(ids[static_cast<size_t>(i)]));
    const auto row = logits.subspan(static_cast<size_t>(i * out.vocabulary), static_cast<size_t>(out.vocabulary));
    out.logits.back().insert(out.logits.back().end(), row.begin(), row.end());
  }
  return out;
}

// The inputs for columns [begin, end) of a batch whose rows are the documents, each behind its padding.
OnnxEvaluator::Values inputs_of(const Documents& documents, size_t width, size_t begin, size_t end) {
  const auto batch = static_cast<int64_t>(documents.ids.size()), columns = static_cast<int64_t>(end - begin);
  OnnxTensor ids{{batch, columns}, {}}, mask{{batch, static_cast<int64_t>(end)}, {}}, positions{{batch, columns}, {}};
  for (const Sequence& document : documents.ids) {
    const size_t padding = width - document.size();
    for (size_t t = 0; t < end; ++t) mask.data.push_back(t >= padding ? 1 : 0);
    for (size_t t = begin; t < end; ++t) {
      ids.data.push_back(t >= padding ? document[t - padding] : 0);
      positions.data.push_back(t >= padding ? static_cast<double>(t - padding) : 1);
    }
  }
  return {{"input_ids", ids}, {"attention_mask", mask}, {"position_ids", positions}};
}

class OnnxNumbers : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const fs::path directory = references() / GetParam();
    const auto config = read_file(directory / "config.json");
    ASSERT_TRUE(config.ok());
    auto model = Model::from_json(*config, "config.json");
    ASSERT_TRUE(model.ok());
    model_ = std::move(*model);
    const auto report = export_onnx({directory, *model_, nullptr}, scratch_.path() / "out", DType::f32);
    ASSERT_TRUE(report.ok()) << report.error().message;
    documents_ = documents_of(directory);
    layers_ = static_cast<size_t>(model_->config().num_hidden_layers);
    heads_ = model_->config().num_key_value_heads;
    head_dim_ = model_->config().head_dim;
  }

  OnnxEvaluator::Values no_past() const {
    OnnxEvaluator::Values past;
    const auto batch = static_cast<int64_t>(documents_.ids.size());
    for (size_t layer = 0; layer < layers_; ++layer)
      for (const char* what : {"key", "value"})
        past[fmt::format("past_key_values.{}.{}", layer, what)] = {{batch, heads_, 0, head_dim_}, {}};
    return past;
  }

  // The logits of columns [begin, end) against the reference; the past for what comes behind them.
  OnnxEvaluator::Values expect_logits(const OnnxEvaluator& graph, size_t width, size_t begin, size_t end,
                                      const OnnxEvaluator::Values& past) {
    OnnxEvaluator::Values inputs = inputs_of(documents_, width, begin, end), next;
    inputs.insert(past.begin(), past.end());
    auto results = graph.run(inputs);
    const OnnxTensor& logits = results.at("logits");
    const auto batch = static_cast<int64_t>(documents_.ids.size()), columns = static_cast<int64_t>(end - begin);
    EXPECT_EQ(logits.shape, (std::vector<int64_t>{batch, columns, documents_.vocabulary}));
    for (size_t b = 0; b < documents_.ids.size(); ++b) expect_row(logits, b, width, begin, end);
    for (const auto& [name, value] : past) {
      next[name] = results.at("present" + name.substr(name.find('.')));
      EXPECT_EQ(next[name].shape, (std::vector<int64_t>{batch, heads_, static_cast<int64_t>(end), head_dim_}));
    }
    return next;
  }

  void expect_row(const OnnxTensor& logits, size_t b, size_t width, size_t begin, size_t end) {
    const auto vocabulary = static_cast<size_t>(documents_.vocabulary);
    const size_t padding = width - documents_.ids[b].size();
    double largest = 1e-3;
    for (const double x : documents_.logits[b]) largest = std::max(largest, std::abs(x));
    for (size_t t = std::max(begin, padding); t < end; ++t)
      for (size_t v = 0; v < vocabulary; ++v)
        ASSERT_NEAR(logits.data[(b * (end - begin) + t - begin) * vocabulary + v],
                    documents_.logits[b][(t - padding) * vocabulary + v], 1e-6 * largest)
            << "document " << b << ", token " << t - padding << ", past " << begin;
  }

  // The logits of Ingot's training graph for those inputs, where padding sees nothing and a token what is behind it.
  OnnxTensor logits_of_ingot(const OnnxEvaluator::Values& inputs) const {
    const OnnxTensor& mask = inputs.at("attention_mask");
    const int64_t batch = mask.shape[0], tokens = mask.shape[1];
    std::map<std::string, RefTensor> sources;
    const auto weights = SafetensorsFile::open(references() / GetParam() / "model.safetensors");
    for (const TensorInfo& info : weights->tensors()) {
      const auto values = weights->view(info).span<float>();
      sources[info.name] = {info.shape, {values.begin(), values.end()}};
    }
    RefTensor first{{batch, tokens}, {}};
    for (size_t i = 0; i < mask.data.size(); ++i) {
      const size_t t = i % static_cast<size_t>(tokens);
      const auto row = mask.data.begin() + static_cast<int64_t>(i - t);
      first.data.push_back(static_cast<double>(mask.data[i] == 0 ? t + 1 : std::find(row, row + tokens, 1) - row));
    }
    sources["ids"] = {first.shape, inputs.at("input_ids").data};
    sources["positions"] = {first.shape, inputs.at("position_ids").data};
    sources["first_visible"] = first;
    Graph graph;
    Builder builder(graph);
    const Model::Forward forward = model_->build(builder, {batch, tokens, false});
    builder.output("logits", model_->build_logits(builder, forward));
    graph.remove_dead_nodes();
    const RefTensor logits = interpret_results(graph.compacted(), sources).at("logits");
    return {{logits.shape.begin(), logits.shape.end()}, logits.data};
  }

  testing::TemporaryDirectory scratch_;
  std::optional<Model> model_;
  Documents documents_;
  size_t layers_ = 0;
  int64_t heads_ = 0, head_dim_ = 0;
};

TEST_P(OnnxNumbers, AreThoseOfPyTorch) {
  const OnnxEvaluator graph(scratch_.path() / "out");
  size_t longest = 0;
  for (const Sequence& document : documents_.ids) longest = std::max(longest, document.size());
  for (const size_t padding : {0, 2}) {  // of the longest row
    const size_t width = longest + padding;
    expect_logits(graph, width, 0, width, no_past());
    // In parts, of which the first may be padding alone.
    const auto first = expect_logits(graph, width, 0, 2, no_past());
    const auto second = expect_logits(graph, width, 2, 3, first);
    if (width > 3) expect_logits(graph, width, 3, width, second);
  }
}

// Also of the padding itself, which sees nothing and so attends with zeros.
TEST_P(OnnxNumbers, AreIngotsForPaddingToo) {
  const size_t width = documents_.ids[0].size() + 3;
  documents_.ids.resize(1);
  OnnxEvaluator::Values inputs = inputs_of(documents_, width, 0, width);
  const OnnxTensor expected = logits_of_ingot(inputs);
  inputs.merge(no_past());
  const OnnxTensor found = OnnxEvaluator(scratch_.path() / "out").run(inputs).at("logits");
  ASSERT_EQ(found.shape, expected.shape);
  for (size_t i = 0; i < found.data.size(); ++i) ASSERT_NEAR(found.data[i], expected.data[i], 1e-6) << i;
}

INSTANTIATE_TEST_SUITE_P(All, OnnxNumbers, ::testing::ValuesIn(reference_names()), [](const auto& one) {
  std::string name = one.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace ingot
