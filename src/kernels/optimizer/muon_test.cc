#include "kernels/optimizer/muon.h"

#include "kernels/optimizer/muon_reference.h"
#include "kernels/testing.h"

namespace ingot::kernels {
namespace {

using testing::Guarded;
using testing::normal_numbers;

TEST(Muon, ElementwisePartsAgreeWithTheReferenceAndDoNotDependOnTheCut) {
  testing::on_each_instruction_set([] {
    for (const int64_t n : testing::kOddSizes) {
      const Guarded<float> grad = normal_numbers(n, 1), moment = normal_numbers(n, 2), start = normal_numbers(n, 3);
      Guarded<float> m = moment, direction(n), p = start, cut_m = moment, cut_direction(n), cut_p = start;
      muon_momentum(0.95, 0.5, grad.data(), m.data(), direction.data(), n);
      muon_apply(0.99, 0.01, p.data(), direction.data(), n);
      const int64_t half = n / 3;
      for (const auto& [begin, end] : {std::pair{int64_t{0}, half}, std::pair{half, n}}) {
        muon_momentum(0.95, 0.5, grad.data() + begin, cut_m.data() + begin, cut_direction.data() + begin, end - begin);
        muon_apply(0.99, 0.01, cut_p.data() + begin, cut_direction.data() + begin, end - begin);
      }
      std::vector<double> m64 = testing::as_double(moment), p64 = testing::as_double(start), direction64;
      for (size_t i = 0; i < p64.size(); ++i) {
        direction64.push_back(reference::muon_momentum(0.95, 0.5, double{grad[static_cast<int64_t>(i)]}, m64[i]));
        p64[i] = reference::muon_apply(0.99, 0.01, p64[i], direction64[i]);
      }
      testing::expect_close(m, m64, 1e-6);
      testing::expect_close(direction, direction64, 1e-6);
      testing::expect_close(p, p64, 1e-6);
      EXPECT_TRUE(m.same_bits(cut_m) && direction.same_bits(cut_direction) && p.same_bits(cut_p));
    }
  });
}

}  // namespace
}  // namespace ingot::kernels
