#include "ops/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/dropout.h"
#include "ops/interpret.h"

namespace ingot::attention_reference {
namespace {

using Row = std::vector<double>;

// Where things lie, and what each element of the [B,H,T,T] weights is multiplied by after softmax.
class View {
 public:
  explicit View(const Problem& problem) : p_(problem) {
    if (p_.attributes.dropout == 0) return;
    const Type type{DType::f32, {p_.batch, p_.heads, p_.tokens, p_.tokens}};
    const RefTensor ones{type.shape, Row(static_cast<size_t>(type.shape.elements()), 1.0)};
    factors_ = evaluate_op(kDropout, DropoutAttributes{p_.attributes.dropout, p_.attributes.stream}, {&type, 1},
                           {&ones, 1}, p_.random)[0]
                   .data;
  }

  size_t q(int64_t b, int64_t t, int64_t h) const { return at(((b * p_.tokens + t) * p_.heads + h) * p_.head_dim); }
  size_t kv(int64_t b, int64_t t, int64_t h) const {
    return at(((b * p_.tokens + t) * p_.kv_heads + h / (p_.heads / p_.kv_heads)) * p_.head_dim);
  }
  size_t lse(int64_t b, int64_t t, int64_t h) const { return at(2 * ((b * p_.heads + h) * p_.tokens + t)); }
  double factor(int64_t b, int64_t h, int64_t t, int64_t j) const {
    return factors_.empty() ? 1.0 : factors_[at(((b * p_.heads + h) * p_.tokens + t) * p_.tokens + j)];
  }
  int64_t first(const RefTensor& first_visible, int64_t b, int64_t t) const {
    const auto first = static_cast<int64_t>(first_visible.data[at(b * p_.tokens + t)]);
    return std::max({first, int64_t{0}, p_.attributes.window > 0 ? t - p_.attributes.window + 1 : 0});
  }
  double dot(const RefTensor& x, size_t i, const RefTensor& y, size_t j) const {
    double sum = 0;
    for (size_t d = 0; d < at(p_.head_dim); ++d) sum += x.data[i + d] * y.data[j + d];
    return sum;
  }
  void add(RefTensor& to, size_t i, double factor, const RefTensor& from, size_t j) const {
    for (size_t d = 0; d < at(p_.head_dim); ++d) to.data[i + d] += factor * from.data[j + d];
  }
  // The score of a query and a key, and its derivative by the scaled product of the two.
  std::pair<double, double> score(const RefTensor& q, size_t query, const RefTensor& k, size_t key) const {
    const double product = p_.attributes.scale * dot(q, query, k, key), cap = p_.attributes.softcap;
    if (cap == 0) return {product, 1.0};
    const double t = std::tanh(product / cap);
    return {cap * t, 1 - t * t};
  }
  template <class Body>
  void each_row(const Body& body) const {
    for (int64_t b = 0; b < p_.batch; ++b)
      for (int64_t h = 0; h < p_.heads; ++h)
        for (int64_t t = 0; t < p_.tokens; ++t) body(b, h, t);
  }

 private:
  static size_t at(int64_t index) { return static_cast<size_t>(index); }
  const Problem& p_;
  Row factors_;
};

}  // namespace

void forward(const Problem& problem, const Inputs& in, RefTensor& out, RefTensor& lse) {
  const View view(problem);
  view.each_row([&](int64_t b, int64_t h, int64_t t) {
    const int64_t first = view.first(in.first_visible, b, t);
    double largest = -std::numeric_limits<double>::infinity();
    Row scores;
    for (int64_t j = first; j <= t; ++j) {
      scores.push_back(view.score(in.q, view.q(b, t, h), in.k, view.kv(b, j, h)).first);
      largest = std::max(largest, scores.back());
    }
    double* row_lse = &lse.data[view.lse(b, t, h)];
    row_lse[0] = largest / std::numbers::ln2;
    row_lse[1] = 0;
    if (scores.empty()) return;
    double total = 0;
    for (double score : scores) total += std::exp(score - largest);
    row_lse[1] = std::log2(total);
    for (int64_t j = first; j <= t; ++j) {
      const double weight =
          std::exp(scores[static_cast<size_t>(j - first)] - largest) / total * view.factor(b, h, t, j);
      view.add(out, view.q(b, t, h), weight, in.v, view.kv(b, j, h));
    }
  });
}

// With W the weights and D what dropout multiplies them by: dV = (W·D)^T dO, dW = D·(dO V^T),
// dS = W (dW - sum_j W dW), where the sum is dO·O; a softcap's slope goes on top.
void backward(const Problem& problem, const Inputs& in, const Saved& saved, RefTensor& dq, RefTensor& dk,
              RefTensor& dv) {
  const View view(problem);
  const double scale = problem.attributes.scale;
  view.each_row([&](int64_t b, int64_t h, int64_t t) {
    const size_t row = view.q(b, t, h);
    const double* lse = &saved.lse.data[view.lse(b, t, h)];
    const double shift = view.dot(saved.dout, row, saved.out, row);
    for (int64_t j = view.first(in.first_visible, b, t); j <= t; ++j) {
      const size_t key = view.kv(b, j, h);
      const auto [score, slope] = view.score(in.q, row, in.k, key);
      const double weight = std::exp2(score / std::numbers::ln2 - lse[0] - lse[1]);
      const double factor = view.factor(b, h, t, j);
      const double dscore = slope * weight * (factor * view.dot(saved.dout, row, in.v, key) - shift);
      view.add(dv, key, weight * factor, saved.dout, row);
      view.add(dq, row, scale * dscore, in.k, key);
      view.add(dk, key, scale * dscore, in.q, row);
    }
  });
}

}  // namespace ingot::attention_reference
