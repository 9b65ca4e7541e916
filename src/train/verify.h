// The proof of a migration: every tensor of a reference run against ours, in order of execution, from the same weights
// and the same batch. Hidden states and logits come from the training program with these as outputs; loss, gradients
// and optimizer steps from the very program that trains.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "passes/pass.h"
#include "train/verify_reference.h"

namespace ingot {

struct VerifyOptions {
  bool fuse = true;         // false: mode eager, where the first op that makes a NaN or an infinity is named too
  double tolerance = 1e-4;  // of logits and hidden states × max(1, largest entry), of gradients × their largest entry,
                            // of norms × max(1, largest), absolute for losses and for parameters after the steps
  MixedPrecision precision = {};
  std::optional<int64_t> layer = {};  // this block (from 0) alone, starting from the reference's hidden state
  // For losses over many steps, which rounding parts: each may differ by so much of itself, and neither norms nor the
  // parameters after the steps are compared.
  std::optional<double> curve_tolerance = {};
  bool explain = true;  // try what may be the cause of a difference
};

// VerifyOptions::tolerance where nothing is said: in 16 bits values are rounded again and again on their way through a
// model, to 8 (bf16) or 11 (f16) bits, and gradients that nearly cancel show it most.
double usual_tolerance(DType dtype);

struct TensorComparison {
  std::string name;
  // The largest difference, and that over the largest entry of the reference; NaN where either side holds a NaN or an
  // infinity that the other has not.
  double max_abs = 0, max_rel = 0;
  double limit = 0;  // what max_abs may be
  bool ok = true;
  Shape shape;
  int64_t worst = 0;               // the element with the largest difference
  double expected = 0, found = 0;  // there
  // Entries of a parameter after the steps that were not held to the limit: their gradients are rounding errors of sums
  // that cancel, and AdamW, which divides by their size, moves such entries anywhere within the learning rate.
  int64_t undetermined = 0;
  // Of [B,T,…]: the least position within its document at which an element is beyond the limit; kNone: none.
  int64_t first_position = kNone;
};

struct Verification {
  bool ok = true;
  double tolerance = 0;
  std::string first_failure;              // empty: none
  std::vector<TensorComparison> tensors;  // up to and with the first that differs
  std::vector<std::string> causes;        // likely ones, those that were tried first
  std::vector<std::string> not_compared;  // what the options left aside
};

// `weights`: a Hugging Face directory or a checkpoint. Errors: input where the reference does not fit the model or
// either is malformed, usage where there is no such layer or the machine has no memory for it.
Result<Verification> verify_model(const Model& model, const fs::path& weights, const fs::path& reference,
                                  const VerifyOptions& options, const ThreadPool& pool);

// For people: a row a tensor, then the first difference with its likely causes.
std::string describe(const Verification& verification);

}  // namespace ingot
