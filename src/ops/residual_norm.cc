#include "ops/residual_norm.h"

#include "graph/storage.h"
#include "ops/dropout.h"
#include "ops/interpret.h"

namespace ingot {
namespace {

template <class T>
std::vector<T> norm_inputs(const T& sum, std::span<const T> inputs) {
  std::vector<T> result{sum};
  result.insert(result.end(), inputs.begin() + 2, inputs.end());
  return result;
}

}  // namespace

Result<std::vector<Type>> infer_residual_norm(const ResidualNorm& op, std::span<const Type> inputs) {
  if (inputs.size() < 2 || !(inputs[0].shape == inputs[1].shape))
    return failed_error("expected x and delta of one shape");
  if (!(op.dropout >= 0 && op.dropout < 1)) return failed_error("dropout {}, expected within [0, 1)", op.dropout);
  INGOT_ASSIGN(std::vector<Type> types, op.norm.infer(norm_inputs(inputs[0], inputs), op.attributes));
  types.insert(types.begin(), computed(inputs[0]));
  return types;
}

void evaluate_residual_norm(const ResidualNorm& op, const EvalContext& context) {
  std::vector<Type> types;
  std::vector<RefTensor> inputs;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    types.push_back(context.graph.type(context.node.inputs[i]));
    inputs.push_back(*context.inputs[i]);
  }
  RefTensor sum = evaluate_op(kDropout, DropoutAttributes{op.dropout, op.stream}, std::span(types).subspan(1, 1),
                              std::span(inputs).subspan(1, 1), context.random)[0];
  for (size_t i = 0; i < sum.data.size(); ++i)
    sum.data[i] = stored(sum.data[i] + inputs[0].data[i], context.graph.type(context.node.outputs[0]).dtype);
  auto normed = evaluate_op(op.norm, op.attributes, norm_inputs<Type>(types[0], types),
                            norm_inputs<RefTensor>(sum, inputs), context.random);
  context.outputs[0].data = std::move(sum.data);
  for (size_t i = 0; i < normed.size(); ++i) context.outputs[i + 1].data = std::move(normed[i].data);
}

}  // namespace ingot
