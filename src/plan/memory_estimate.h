// Memory that a training run takes, known before it starts: what `ingot plan` prints and what a run is refused by.
#pragma once

#include <cstdint>

namespace ingot {

// Bytes by what they are for.
struct MemoryEstimate {
  int64_t weights = 0, gradients = 0, optimizer = 0;
  int64_t activations = 0;  // the arena's workspace: everything that lives within a step
  int64_t kept = 0;         // of the activations: what the forward pass leaves for the backward pass
  int64_t lower_bound = 0;  // of the activations: the largest sum of what is needed at one time
  int64_t workspace = 0;    // the threads' scratch
  int64_t staging = 0;      // the copy that checkpoints are written from while the run goes on
  int64_t process = 0;      // the program itself, its libraries and buffers

  int64_t total() const { return weights + gradients + optimizer + activations + workspace + staging + process; }
  // What stays however small the batch is.
  int64_t fixed() const { return total() - activations - workspace; }
};

}  // namespace ingot
