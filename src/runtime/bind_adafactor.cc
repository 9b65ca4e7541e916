// Adafactor: what runs between its sweeps over a matrix, and on parameters that are none.
#include <algorithm>
#include <cmath>

#include "kernels/optimizer/adafactor.h"
#include "kernels/reduce/reduce.h"
#include "ops/adafactor.h"
#include "runtime/bindings.h"

namespace ingot {
namespace {

// What a step takes from the program's control and clip.
struct AdafactorStep {
  double rate, decay, beta2, rest2, grad_scale;
  AdafactorStep(const AdafactorAttributes& a, const float* control, const float* clip)
      : rate(control[0] * a.learning_rate_scale),
        decay(1 - rate * a.weight_decay),
        beta2(control[1]),
        rest2(control[2]),
        grad_scale(clip[0]) {}
};

double total(const double* partials, int64_t parts) {
  double sum = 0;
  for (int64_t i = 0; i < parts; ++i) sum += partials[i];
  return sum;
}

// body(begin, end) gives a range's part of a sum; they are added in order. partials: one for each range.
template <class F>
double sum_over_ranges(const RunArguments& args, int64_t items, int64_t grain, double* partials, const F& body) {
  for_ranges(args, items, grain, [&](int64_t begin, int64_t end, int) { partials[begin / grain] = body(begin, end); });
  return total(partials, (items + grain - 1) / grain);
}

// By what u is multiplied: update_squares is the sum of its squares, param_squares that of the parameter's (asked for
// where the step is relative to it).
template <class F>
double step_size(const AdafactorAttributes& a, const AdafactorStep& step, double update_squares, int64_t elements,
                 const F& param_squares) {
  const auto rms = [&](double squares) { return std::sqrt(squares / static_cast<double>(elements)); };
  const double relative = a.relative_step ? std::max(a.smallest_scale, rms(param_squares())) : 1;
  return step.rate * relative / std::max(1.0, rms(update_squares) / a.threshold);
}

// The temporary memory of a matrix's step.
struct AdafactorScratch {
  double* partials;        // [parts]
  float* row_factors;      // [rows]; first the rows' sums
  float* column_factors;   // [columns]; first the columns' sums
  float* column_partials;  // [parts, columns]
  static int64_t bytes(int64_t rows, int64_t columns, int64_t parts) {
    return parts * 8 + (rows + columns + parts * columns) * 4;
  }
  AdafactorScratch(std::byte* memory, int64_t rows, int64_t columns, int64_t parts)
      : partials(reinterpret_cast<double*>(memory)),
        row_factors(reinterpret_cast<float*>(partials + parts)),
        column_factors(row_factors + rows),
        column_partials(column_factors + columns) {}
};

float averaged(const AdafactorStep& step, float state, double square_mean) {
  return static_cast<float>(step.beta2 * state + step.rest2 * square_mean);
}

// The moving averages of the rows' and columns' mean squares, and the factors of u that follow from them.
void update_row_averages(const AdafactorStep& step, double eps, int64_t rows, int64_t columns, float* sums_to_factors,
                         float* state) {
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r) {
    state[r] = averaged(step, state[r], sums_to_factors[r] / static_cast<double>(columns) + eps);
    sum += state[r];
  }
  const double mean = sum / static_cast<double>(rows);
  for (int64_t r = 0; r < rows; ++r) sums_to_factors[r] = static_cast<float>(std::sqrt(mean / state[r]));
}

void update_column_averages(const AdafactorStep& step, double eps, int64_t rows, int64_t begin, int64_t end,
                            float* sums_to_factors, float* state) {
  for (int64_t c = begin; c < end; ++c) {
    state[c] = averaged(step, state[c], sums_to_factors[c] / static_cast<double>(rows) + eps);
    sums_to_factors[c] = static_cast<float>(1 / std::sqrt(double{state[c]}));
  }
}

// Inputs param, grad, rows, columns, control, clip; outputs param, rows, columns, usually in place.
KernelResult bind_adafactor(const NodeView& node) {
  const auto& a = node.node.attributes.as<AdafactorAttributes>();
  const Shape& shape = node.output(0).shape;
  const int64_t rows = shape[0], columns = shape[1], grain = rows_a_partial(rows, columns);
  const int64_t parts = (rows + grain - 1) / grain;
  return make_kernel(
      [=](const RunArguments& args) {
        bring_to_output(args, args.in(0), args.out(0), rows * columns);
        bring_to_output(args, args.in(2), args.out(1), rows);
        bring_to_output(args, args.in(3), args.out(2), columns);
        if (args.in(5)[1] != 0 || rows * columns == 0) return;
        const AdafactorStep step(a, args.in(4), args.in(5));
        const AdafactorScratch s(args.temporary, rows, columns, parts);
        float* param = args.out(0);
        const float* grad = args.in(1);
        for_ranges(args, rows, grain, [&](int64_t begin, int64_t end, int) {
          kernels::adafactor_squares(grad, step.grad_scale, columns, begin, end, s.row_factors,
                                     s.column_partials + begin / grain * columns);
        });
        update_row_averages(step, a.eps, rows, columns, s.row_factors, args.out(1));
        for_ranges(args, columns, 512, [&](int64_t begin, int64_t end, int) {
          kernels::add_partials(s.column_partials, parts, columns, begin, end, false, s.column_factors);
          update_column_averages(step, a.eps, rows, begin, end, s.column_factors, args.out(2));
        });
        const double squares = sum_over_ranges(args, rows, grain, s.partials, [&](int64_t begin, int64_t end) {
          return kernels::adafactor_update_squares(grad, step.grad_scale, s.row_factors, s.column_factors, columns,
                                                   begin, end);
        });
        const double size = step_size(a, step, squares, rows * columns, [&] {
          return sum_over_ranges(args, rows, grain, s.partials, [&](int64_t begin, int64_t end) {
            return kernels::sum_squares(param + begin * columns, (end - begin) * columns);
          });
        });
        for_ranges(args, rows, grain, [&](int64_t begin, int64_t end, int) {
          kernels::adafactor_apply(step.decay, size, param, grad, step.grad_scale, s.row_factors, s.column_factors,
                                   columns, begin, end);
        });
      },
      AdafactorScratch::bytes(rows, columns, parts));
}

// Inputs param, grad, v, control, clip; outputs param, v, usually in place.
KernelResult bind_adafactor_vector(const NodeView& node) {
  constexpr int64_t kGrain = 65536;
  const auto& a = node.node.attributes.as<AdafactorAttributes>();
  const int64_t elements = node.output(0).shape.elements(), parts = (elements + kGrain - 1) / kGrain;
  return make_kernel(
      [=](const RunArguments& args) {
        bring_to_output(args, args.in(0), args.out(0), elements);
        bring_to_output(args, args.in(2), args.out(1), elements);
        if (args.in(4)[1] != 0 || elements == 0) return;
        const AdafactorStep step(a, args.in(3), args.in(4));
        auto* partials = reinterpret_cast<double*>(args.temporary);
        float *param = args.out(0), *v = args.out(1);
        const float* grad = args.in(1);
        const double squares = sum_over_ranges(args, elements, kGrain, partials, [&](int64_t begin, int64_t end) {
          return kernels::adafactor_vector_moment(grad + begin, step.grad_scale, step.beta2, a.eps, v + begin,
                                                  end - begin);
        });
        const double size = step_size(a, step, squares, elements, [&] {
          return sum_over_ranges(args, elements, kGrain, partials, [&](int64_t begin, int64_t end) {
            return kernels::sum_squares(param + begin, end - begin);
          });
        });
        for_ranges(args, elements, kGrain, [&](int64_t begin, int64_t end, int) {
          kernels::adafactor_vector_apply(step.decay, size, param + begin, grad + begin, step.grad_scale, v + begin,
                                          end - begin);
        });
      },
      std::max<int64_t>(parts, 1) * 8);
}

}  // namespace

std::span<const Binding> adafactor_bindings() {
  static constexpr Binding kBindings[] = {{"adafactor", bind_adafactor}, {"adafactor_vector", bind_adafactor_vector}};
  return kBindings;
}

}  // namespace ingot
