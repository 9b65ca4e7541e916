#include "nn/positions.h"

#include <cmath>
#include <numbers>

#include "ops/broadcast_to.h"
#include "ops/constant.h"
#include "ops/embedding.h"
#include "ops/reshape.h"
#include "ops/rope.h"

namespace ingot {
namespace {

// theta^(-2i/channels) for i < channels/2.
std::vector<double> geometric_frequencies(double theta, int64_t channels) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < channels; i += 2)
    frequencies.push_back(1 / std::pow(theta, static_cast<double>(i) / static_cast<double>(channels)));
  return frequencies;
}

double scaled(double frequency, const RotarySettings& settings) {
  if (settings.scaling == RotaryScaling::none) return frequency;
  if (settings.scaling == RotaryScaling::linear) return frequency / settings.factor;
  const double positions = static_cast<double>(settings.original_max_positions),
               wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength > positions / settings.low_freq_factor) return frequency / settings.factor;
  if (wavelength < positions / settings.high_freq_factor) return frequency;
  const double smooth =
      (positions / wavelength - settings.low_freq_factor) / (settings.high_freq_factor - settings.low_freq_factor);
  return (1 - smooth) * frequency / settings.factor + smooth * frequency;
}

}  // namespace

ValueId learned_positions(Builder& builder, ValueId table, ValueId positions) {
  return embedding(builder, table, positions);
}

// (0…, 1…) turned back by the angle p·f_i is (sin…, cos…): the same op as rotary positions, and no table.
ValueId sinusoidal_positions(Builder& builder, ValueId positions, int64_t channels) {
  const Shape tokens = builder.shape(positions);
  std::vector<double> unit(static_cast<size_t>(channels), 0.0);
  std::fill(unit.begin() + channels / 2, unit.end(), 1.0);
  const ValueId start =
      broadcast_to(builder, constant(builder, std::move(unit), {channels}), {tokens[0], tokens[1], 1, channels});
  RopeAttributes attributes;
  attributes.inv_freq = geometric_frequencies(10000, channels);
  attributes.inverse = true;
  return reshape(builder, rope(builder, start, positions, std::move(attributes)), {tokens[0], tokens[1], channels});
}

std::vector<double> rotary_frequencies(const RotarySettings& settings, int64_t head_dim) {
  std::vector<double> frequencies = geometric_frequencies(settings.theta, head_dim);
  for (double& frequency : frequencies) frequency = scaled(frequency, settings);
  return frequencies;
}

ValueId rotate(Builder& builder, ValueId x, ValueId positions, const RotarySettings& settings) {
  RopeAttributes attributes;
  attributes.inv_freq = rotary_frequencies(settings, builder.shape(x)[-1]);
  return rope(builder, x, positions, std::move(attributes));
}

}  // namespace ingot
