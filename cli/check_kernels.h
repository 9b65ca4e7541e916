// A small training step on each instruction set that this CPU can run, against the reference evaluation in double.
#pragma once

#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/result.h"

namespace ingot::cli {

struct KernelCheck {
  std::string isa, model;
  double error = 0;   // the largest, as a part of its tensor's largest entry
  std::string where;  // the tensor
  bool ok() const;    // within 1e-4
};

// Leaves the instruction set as it was. Not to be called while kernels run.
Result<std::vector<KernelCheck>> check_kernel_paths(const ThreadPool& pool);

}  // namespace ingot::cli
