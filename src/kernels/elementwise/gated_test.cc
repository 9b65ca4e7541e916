#include "kernels/elementwise/gated.h"

#include "kernels/elementwise/elementwise_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;

struct Case {
  GatedActivation activation;
  EwOp value, grad;
};
constexpr Case kCases[] = {{GatedActivation::silu, EwOp::silu, EwOp::silu_grad},
                           {GatedActivation::gelu, EwOp::gelu, EwOp::gelu_grad},
                           {GatedActivation::gelu_tanh, EwOp::gelu_tanh, EwOp::gelu_tanh_grad},
                           {GatedActivation::relu, EwOp::relu, EwOp::relu_grad},
                           {GatedActivation::sigmoid, EwOp::sigmoid, EwOp::sigmoid_grad}};

TEST(GatedActivation, ValueAndGradientAgreeWithTheReferenceAlsoInPlace) {
  testing::on_each_instruction_set([] {
    for (const Case& c : kCases) {
      for (int64_t n : testing::kOddSizes) {
        const int64_t rows = 3;
        const Guarded<float> gate_up = normal_numbers(rows * 2 * n, 21, 2.0f), dy = normal_numbers(rows * n, 22);
        Guarded<float> y(rows * n), grad = gate_up;
        gated_activation(c.activation, gate_up.data(), y.data(), n, 0, rows);
        gated_activation_grad(c.activation, grad.data(), dy.data(), grad.data(), n, 0, rows);
        std::vector<double> expected_y, expected_grad(static_cast<size_t>(rows * 2 * n));
        for (int64_t i = 0; i < rows * n; ++i) {
          const int64_t at = (i / n) * 2 * n + i % n;
          const double gate = gate_up[at], up = gate_up[at + n];
          expected_y.push_back(reference::apply<double>(c.value, gate, 0, 0) * up);
          expected_grad[static_cast<size_t>(at)] = reference::apply<double>(c.grad, gate, dy[i], 0) * up;
          expected_grad[static_cast<size_t>(at + n)] = reference::apply<double>(c.value, gate, 0, 0) * dy[i];
        }
        testing::expect_close(y, expected_y, 1e-6);
        testing::expect_close(grad, expected_grad, 1e-6);
      }
    }
  });
}

TEST(GatedActivation, WritesOnlyItsRows) {
  testing::on_each_instruction_set([] {
    const Guarded<float> gate_up = normal_numbers(5 * 2 * 19, 21);
    Guarded<float> whole(5 * 19), part(5 * 19);
    gated_activation(GatedActivation::silu, gate_up.data(), whole.data(), 19, 0, 5);
    gated_activation(GatedActivation::silu, gate_up.data(), part.data(), 19, 3, 5);
    EXPECT_FALSE(part.same_bits(whole));
    gated_activation(GatedActivation::silu, gate_up.data(), part.data(), 19, 0, 3);
    EXPECT_TRUE(part.same_bits(whole));
  });
}

}  // namespace
}  // namespace ingot::kernels
