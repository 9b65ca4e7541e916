// Elementwise ops, alone or as a cluster: tiles of a matrix view, each through the whole program while it is in cache.
#include <algorithm>

#include "kernels/elementwise/gated.h"
#include "kernels/layout/layout.h"
#include "ops/cluster.h"
#include "ops/glu.h"
#include "runtime/bindings.h"
#include "runtime/elementwise.h"
#include "runtime/staged_rows.h"
#include "runtime/widening.h"

namespace ingot {
namespace {

constexpr int64_t kTileElements = 16384;

class ClusterKernel final : public NodeKernel {
 public:
  ClusterKernel(ElementwiseRunner runner, MatrixView view, ValueDtypes dtypes)
      : runner_(std::move(runner)),
        view_(std::move(view)),
        dtypes_(std::move(dtypes)),
        outputs_(dtypes_.outputs.size()) {
    tile_columns_ = std::min(view_.columns, kTileElements);
    tile_rows_ = rows_a_tile(tile_columns_, kTileElements);
    scratch_bytes = runner_.scratch_bytes();
  }

  void run(const RunArguments& args) const override {
    std::array<kernels::EwInput, kernels::kMaxEwRegisters> inputs;
    std::array<kernels::EwOutput, kernels::kMaxEwOutputs> outputs;
    for (size_t i = 0; i < view_.inputs.size(); ++i)
      inputs[i] = {args.inputs[i], view_.inputs[i].row, view_.inputs[i].column, 0, 0, dtypes_.inputs[i]};
    for (size_t i = 0; i < outputs_; ++i) outputs[i] = {args.outputs[i], view_.columns, 0, 0, 0, dtypes_.outputs[i]};
    const ElementwiseRunner::Call call{
        {inputs.data(), view_.inputs.size()}, {outputs.data(), outputs_}, args.random, view_.rows, view_.columns};
    const int64_t across = (view_.columns + tile_columns_ - 1) / std::max<int64_t>(tile_columns_, 1);
    const int64_t down = (view_.rows + tile_rows_ - 1) / tile_rows_;
    args.pool.run(across * down, [&](int64_t tile, int thread) {
      const int64_t row = tile / across * tile_rows_, column = tile % across * tile_columns_;
      runner_.run(
          call, {row, std::min(view_.rows, row + tile_rows_), column, std::min(view_.columns, column + tile_columns_)},
          args.scratch_of(thread));
    });
  }

 private:
  ElementwiseRunner runner_;
  MatrixView view_;
  ValueDtypes dtypes_;
  size_t outputs_;
  int64_t tile_rows_ = 1, tile_columns_ = 1;
};

// The general case: row by row, for broadcasts that no matrix view shows.
class RowsKernel final : public NodeKernel {
 public:
  RowsKernel(ElementwiseRunner runner, RowWalk walk, ValueDtypes dtypes)
      : runner_(std::move(runner)), walk_(std::move(walk)), dtypes_(std::move(dtypes)) {
    scratch_bytes = runner_.scratch_bytes();
  }

  void run(const RunArguments& args) const override {
    for_ranges(args, walk_.rows, rows_a_tile(walk_.columns), [&](int64_t begin, int64_t end, int thread) {
      std::array<kernels::EwInput, kernels::kMaxEwRegisters> inputs;
      std::array<kernels::EwOutput, kernels::kMaxEwOutputs> outputs;
      const size_t count = walk_.strides.size(), written = dtypes_.outputs.size();
      for (int64_t row = begin; row < end; ++row) {
        for (size_t i = 0; i < count; ++i)
          inputs[i] = {at(args.inputs[i], dtypes_.inputs[i], walk_.offset(i, row)),
                       0,
                       walk_.column_strides[i],
                       row,
                       0,
                       dtypes_.inputs[i]};
        for (size_t i = 0; i < written; ++i)
          outputs[i] = {at(args.outputs[i], dtypes_.outputs[i], row * walk_.columns),
                        walk_.columns,
                        0,
                        row,
                        0,
                        dtypes_.outputs[i]};
        runner_.run({{inputs.data(), count}, {outputs.data(), written}, args.random, walk_.rows, walk_.columns},
                    {row, row + 1, 0, walk_.columns}, args.scratch_of(thread));
      }
    });
  }

 private:
  static std::byte* at(std::byte* data, DType dtype, int64_t element) {
    return data + element * static_cast<int64_t>(size_of(dtype));
  }

  ElementwiseRunner runner_;
  RowWalk walk_;
  ValueDtypes dtypes_;
};

KernelResult bind_program(const NodeView& node, const Program& program, std::vector<int64_t> registers) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < node.inputs(); ++i) {
    if (computed(node.input(i)).dtype != DType::f32)
      return failed_error("{}: elementwise kernels take floating-point numbers, input {} is {}", node.node.op->name, i,
                          name_of(node.input(i).dtype));
    shapes.push_back(node.input(i).shape);
  }
  ValueDtypes dtypes = dtypes_of(node);
  INGOT_ASSIGN(ElementwiseRunner runner,
               ElementwiseRunner::create(program, node.inputs(), std::move(registers), dtypes.outputs));
  auto matrix = view_as_matrix(node.output(0).shape, shapes);
  if (!matrix.ok())
    return std::unique_ptr<NodeKernel>(
        new RowsKernel(std::move(runner), walk_rows(node.output(0).shape, shapes), std::move(dtypes)));
  MatrixView& view = *matrix;
  return std::unique_ptr<NodeKernel>(new ClusterKernel(std::move(runner), std::move(view), std::move(dtypes)));
}

KernelResult bind_cluster(const NodeView& node) {
  const auto& cluster = node.node.attributes.as<ClusterAttributes>();
  return bind_program(node, cluster.program, cluster.outputs);
}

Result<kernels::GatedActivation> gated_kernel(const std::string& name) {
  using kernels::GatedActivation;
  static constexpr std::pair<std::string_view, GatedActivation> kAll[] = {{"gelu", GatedActivation::gelu},
                                                                          {"gelu_tanh", GatedActivation::gelu_tanh},
                                                                          {"relu", GatedActivation::relu},
                                                                          {"sigmoid", GatedActivation::sigmoid},
                                                                          {"silu", GatedActivation::silu}};
  for (const auto& [known, activation] : kAll)
    if (known == name) return activation;
  return failed_error("there is no gated kernel for the activation {}", name);
}

KernelResult bind_glu(const NodeView& node) {
  INGOT_ASSIGN(const auto activation, gated_kernel(node.node.attributes.as<GluAttributes>().activation));
  const int64_t n = node.output(0).shape[-1], rows = node.output(0).shape.elements() / std::max<int64_t>(n, 1);
  const int64_t grain = rows_a_tile(n), buffer = grain * n;
  return make_kernel(
      [=, in = node.input(0).dtype, out = node.output(0).dtype](const RunArguments& args) {
        const StagedRows x(args.inputs[0], in, 2 * n), y(args.outputs[0], out, n);
        for_ranges(args, rows, grain, [&](int64_t begin, int64_t end, int thread) {
          auto* buffers = reinterpret_cast<float*>(args.scratch_of(thread));
          float* to = y.place(begin, buffers + 2 * buffer);
          kernels::gated_activation(activation, x.read(begin, end - begin, buffers), to, n, 0, end - begin);
          y.write(begin, end - begin, to);
        });
      },
      0, has_narrow_values(node) ? 3 * buffer * static_cast<int64_t>(sizeof(float)) : 0);
}

KernelResult bind_glu_grad(const NodeView& node) {
  INGOT_ASSIGN(const auto activation, gated_kernel(node.node.attributes.as<GluAttributes>().activation));
  const int64_t n = node.output(0).shape[-1] / 2, rows = node.output(0).shape.elements() / std::max<int64_t>(2 * n, 1);
  const int64_t grain = rows_a_tile(n), buffer = grain * n;
  const ValueDtypes dtypes = dtypes_of(node);
  return make_kernel(
      [=](const RunArguments& args) {
        const StagedRows x(args.inputs[0], dtypes.inputs[0], 2 * n), dy(args.inputs[1], dtypes.inputs[1], n),
            dx(args.outputs[0], dtypes.outputs[0], 2 * n);
        for_ranges(args, rows, grain, [&](int64_t begin, int64_t end, int thread) {
          auto* buffers = reinterpret_cast<float*>(args.scratch_of(thread));
          const int64_t count = end - begin;
          float* to = dx.place(begin, buffers + 3 * buffer);
          kernels::gated_activation_grad(activation, x.read(begin, count, buffers),
                                         dy.read(begin, count, buffers + 2 * buffer), to, n, 0, count);
          dx.write(begin, count, to);
        });
      },
      0, has_narrow_values(node) ? 5 * buffer * static_cast<int64_t>(sizeof(float)) : 0);
}

KernelResult bind_cast(const NodeView& node) {
  const DType from = node.input(0).dtype, to = node.output(0).dtype;
  const int64_t count = node.output(0).shape.elements();
  if (from == DType::i32 && to == DType::f32)
    return make_kernel([count](const RunArguments& args) {
      for_ranges(args, count, kTileElements, [&](int64_t begin, int64_t end, int) {
        std::transform(args.in<int32_t>(0) + begin, args.in<int32_t>(0) + end, args.out(0) + begin,
                       [](int32_t x) { return static_cast<float>(x); });
      });
    });
  if (!kernels::can_cast(from, to))
    return failed_error("a cast from {} to {} has no kernel", name_of(from), name_of(to));
  return make_kernel([=](const RunArguments& args) {
    for_ranges(args, count, kTileElements, [&](int64_t begin, int64_t end, int) {
      kernels::cast(args.inputs[0] + begin * static_cast<int64_t>(size_of(from)), from,
                    args.outputs[0] + begin * static_cast<int64_t>(size_of(to)), to, end - begin);
    });
  });
}

bool reads_no_integers(const NodeView& node) {
  return is_float(node.input(0).dtype);
}

}  // namespace

KernelResult bind_elementwise(const NodeView& node) {
  ProgramInstruction only{std::string(node.node.op->name), {}, node.node.attributes.to_string()};
  for (size_t i = 0; i < node.inputs(); ++i) only.inputs.push_back(static_cast<int64_t>(i));
  return bind_program(node, {only}, {static_cast<int64_t>(node.inputs())});
}

std::span<const Binding> elementwise_bindings() {
  static constexpr Binding kBindings[] = {{"cast", bind_cast, reads_no_integers},
                                          {"cluster", bind_cluster, takes_any},
                                          {"glu", bind_glu, takes_any},
                                          {"glu_grad", bind_glu_grad, takes_any}};
  return kBindings;
}

}  // namespace ingot
