// Embedding, its gradient, and rotary positions.
#include <algorithm>

#include "kernels/embedding/embedding.h"
#include "kernels/rope/rope.h"
#include "ops/embedding_grad.h"
#include "ops/rope.h"
#include "runtime/bindings.h"

namespace ingot {
namespace {

KernelResult bind_embedding(const NodeView& node) {
  const kernels::EmbeddingTable table{.vocab = node.input(0).shape[0], .width = node.input(0).shape[1]};
  const int64_t rows = node.input(1).shape.elements();
  return make_kernel([table, rows](const RunArguments& args) {
    const kernels::Embedding call{.shape = table, .table = args.in(0), .ids = args.in<int32_t>(1), .out = args.out(0)};
    for_ranges(args, rows, rows_a_tile(table.width),
               [&](int64_t begin, int64_t end, int) { kernels::embedding(call, begin, end); });
  });
}

KernelResult bind_embedding_grad(const NodeView& node) {
  const auto& attributes = node.node.attributes.as<EmbeddingGradAttributes>();
  const kernels::EmbeddingTable table{.vocab = attributes.rows, .width = node.output(0).shape[1]};
  const int64_t rows = node.input(0).shape.elements(), elements = node.output(0).shape.elements();
  const bool accumulate = attributes.accumulate;
  return make_kernel([table, rows, elements, accumulate](const RunArguments& args) {
    float* out = args.out(0);
    if (accumulate)
      bring_to_output(args, args.in(2), out, elements);
    else
      for_ranges(args, elements, 65536,
                 [&](int64_t begin, int64_t end, int) { std::fill(out + begin, out + end, 0.0f); });
    const kernels::EmbeddingGrad call{
        .shape = table, .ids = args.in<int32_t>(0), .n = rows, .dy = args.in(1), .d_table = out};
    for_ranges(args, table.width, kernels::kEmbeddingGradColumns,
               [&](int64_t begin, int64_t end, int) { kernels::embedding_grad(call, begin, end); });
  });
}

// Angles for the positions of one row of tokens are computed with the program; positions beyond (generation with a
// cache) have theirs computed in each run.
class RopeKernel final : public NodeKernel {
 public:
  explicit RopeKernel(const NodeView& node) {
    const auto& attributes = node.node.attributes.as<RopeAttributes>();
    const Shape& x = node.input(0).shape;
    frequencies_ = attributes.inv_freq;
    known_ = x[1];
    rows_ = x[0] * x[1];
    call_.heads = x[2];
    call_.head_dim = call_.rotary_dim = x[3];
    call_.x_stride = call_.y_stride = x[2] * x[3];
    call_.rotated_heads = attributes.rotated_heads < 0 ? x[2] : attributes.rotated_heads;
    call_.inverse = attributes.inverse;
    const auto width = static_cast<int64_t>(frequencies_.size());
    std::string key = fmt::format("rope {}", known_);
    for (double frequency : frequencies_) key += fmt::format(" {}", frequency);
    table_ = node.tables.get(key, [&] {
      std::vector<float> table(static_cast<size_t>(2 * known_ * width));
      kernels::rope_table(frequencies_, 1.0, table.data(), table.data() + known_ * width, 0, known_);
      return table;
    });
    temporary_bytes = rows_ * (2 * width * 4 + 4);
  }

  void run(const RunArguments& args) const override {
    const auto width = static_cast<int64_t>(frequencies_.size());
    const auto* positions = args.in<int32_t>(1);
    kernels::Rope call = call_;
    call.x = args.in(0);
    call.y = args.out(0);
    call.positions = positions;
    call.cos = table_->data();
    call.sin = table_->data() + known_ * width;
    if (rows_ > 0 && *std::max_element(positions, positions + rows_) >= known_) {
      auto* own = reinterpret_cast<float*>(args.temporary);
      auto* index = reinterpret_cast<int32_t*>(own + 2 * rows_ * width);
      for (int64_t row = 0; row < rows_; ++row) {
        kernels::rope_table(frequencies_, 1.0, own + (row - positions[row]) * width,
                            own + (rows_ + row - positions[row]) * width, positions[row], positions[row] + 1);
        index[row] = static_cast<int32_t>(row);
      }
      call.positions = index;
      call.cos = own;
      call.sin = own + rows_ * width;
    }
    for_ranges(args, rows_, rows_a_tile(call.x_stride),
               [&](int64_t begin, int64_t end, int) { kernels::rope(call, begin, end); });
  }

 private:
  std::vector<double> frequencies_;
  int64_t known_ = 0, rows_ = 0;
  kernels::Rope call_;
  std::shared_ptr<const std::vector<float>> table_;
};

}  // namespace

std::span<const Binding> embedding_bindings() {
  static constexpr Binding kBindings[] = {
      {"embedding", bind_embedding},
      {"embedding_grad", bind_embedding_grad},
      {"rope", [](const NodeView& node) -> KernelResult { return std::unique_ptr<NodeKernel>(new RopeKernel(node)); }}};
  return kBindings;
}

}  // namespace ingot
