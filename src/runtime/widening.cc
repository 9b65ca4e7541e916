#include "runtime/widening.h"

#include <array>

#include "kernels/layout/layout.h"
#include "memory/variables.h"

namespace ingot {
namespace {

constexpr size_t kMostValues = 64;  // inputs or outputs of a node
constexpr int64_t kTileElements = 16384;

struct Widened {
  size_t index = 0;  // of the node's inputs or outputs
  DType dtype = DType::bf16;
  int64_t elements = 0;
  int64_t offset = 0;  // bytes into the temporary memory
};

class WideningKernel final : public NodeKernel {
 public:
  WideningKernel(const NodeView& node, std::unique_ptr<NodeKernel> kernel) : kernel_(std::move(kernel)) {
    temporary_bytes = align_up(kernel_->temporary_bytes);
    scratch_bytes = kernel_->scratch_bytes;
    for (size_t i = 0; i < node.inputs(); ++i) add(inputs_, i, node.graph.type(node.node.inputs[i]));
    for (size_t i = 0; i < node.outputs(); ++i) add(outputs_, i, node.graph.type(node.node.outputs[i]));
  }

  void run(const RunArguments& args) const override {
    std::array<std::byte*, kMostValues> inputs{}, outputs{};
    std::ranges::copy(args.inputs, inputs.begin());
    std::ranges::copy(args.outputs, outputs.begin());
    for (const Widened& in : inputs_) {
      inputs[in.index] = args.temporary + in.offset;
      convert(args, in, args.inputs[in.index], in.dtype, inputs[in.index], DType::f32);
    }
    for (const Widened& out : outputs_) outputs[out.index] = args.temporary + out.offset;
    kernel_->run({args.pool, std::span(inputs).first(args.inputs.size()), std::span(outputs).first(args.outputs.size()),
                  args.temporary, args.scratch, args.scratch_stride, args.random});
    for (const Widened& out : outputs_)
      convert(args, out, outputs[out.index], DType::f32, args.outputs[out.index], out.dtype);
  }

 private:
  void add(std::vector<Widened>& list, size_t index, const Type& type) {
    if (!is_narrow(type.dtype)) return;
    list.push_back({index, type.dtype, type.shape.elements(), temporary_bytes});
    temporary_bytes += align_up(computed(type).bytes());
  }

  static void convert(const RunArguments& args, const Widened& value, const std::byte* from, DType from_dtype,
                      std::byte* to, DType to_dtype) {
    for_ranges(args, value.elements, kTileElements, [&](int64_t begin, int64_t end, int) {
      kernels::cast(from + begin * static_cast<int64_t>(size_of(from_dtype)), from_dtype,
                    to + begin * static_cast<int64_t>(size_of(to_dtype)), to_dtype, end - begin);
    });
  }

  std::unique_ptr<NodeKernel> kernel_;
  std::vector<Widened> inputs_, outputs_;
};

}  // namespace

bool has_narrow_values(const NodeView& node) {
  const auto narrow = [&](ValueId id) { return is_narrow(node.graph.type(id).dtype); };
  return std::ranges::any_of(node.node.inputs, narrow) || std::ranges::any_of(node.node.outputs, narrow);
}

KernelResult bind_widened(const NodeView& node, KernelResult (*bind)(const NodeView& node)) {
  if (std::max(node.inputs(), node.outputs()) > kMostValues)
    return failed_error("{} has more than {} inputs or outputs", node.node.op->name, kMostValues);
  NodeView wide = node;
  wide.widened = true;
  INGOT_ASSIGN(auto kernel, bind(wide));
  return std::unique_ptr<NodeKernel>(new WideningKernel(node, std::move(kernel)));
}

}  // namespace ingot
