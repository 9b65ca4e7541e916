// Where a token stands: learned vectors, sinusoids, rotations of queries and keys.
#pragma once

#include <vector>

#include "graph/builder.h"

namespace ingot {

// Row positions[b,t] of the table [P,C] -> [B,T,C].
ValueId learned_positions(Builder& builder, ValueId table, ValueId positions);

// [B,T,C] with C even: sin(p·f_i) in channel i, cos(p·f_i) in channel C/2 + i, f_i = 10000^(-2i/C) (Vaswani et al.,
// arXiv:1706.03762, in the order of tensor2tensor and fairseq).
ValueId sinusoidal_positions(Builder& builder, ValueId positions, int64_t channels);

enum class RotaryScaling { none, linear, llama3 };

struct RotarySettings {
  double theta = 10000;
  RotaryScaling scaling = RotaryScaling::none;
  // linear divides all frequencies by `factor`. llama3 divides those whose wavelength exceeds
  // original_max_positions / low_freq_factor, keeps those below original_max_positions / high_freq_factor, and goes
  // from one to the other between them.
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;
  int64_t original_max_positions = 8192;

  bool operator==(const RotarySettings&) const = default;
};

// head_dim / 2 frequencies, radians a position.
std::vector<double> rotary_frequencies(const RotarySettings& settings, int64_t head_dim);

// x [B,T,H,D] rotated by position (ops/rope.h).
ValueId rotate(Builder& builder, ValueId x, ValueId positions, const RotarySettings& settings);

}  // namespace ingot
