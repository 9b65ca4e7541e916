// Arena: the memory of a run. One persistent segment (variables, at the offsets of a VariableLayout), one workspace
// that all programs overlay, and a slice of scratch for each thread. Reserved and touched once, in huge pages where the
// system gives them; nothing is allocated while steps run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "base/result.h"
#include "base/tensor.h"
#include "memory/variables.h"

namespace ingot {

// Zeroed memory of the process, given back on destruction. Touched by the pool's threads when it is made.
class Block {
 public:
  Block() = default;
  static Result<Block> create(int64_t bytes, const ThreadPool& pool);
  Block(Block&& other) noexcept : data_(std::exchange(other.data_, {})) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~Block();
  std::byte* data() const { return data_.data(); }
  int64_t bytes() const { return static_cast<int64_t>(data_.size()); }

 private:
  std::span<std::byte> data_;
};

class Arena {
 public:
  // All variables start as zeros. Error (usage): the machine does not give so much memory.
  static Result<Arena> create(VariableLayout variables, const ThreadPool& pool);

  // Makes workspace and scratch at least this large. The workspace's content is lost where it grows.
  Status reserve(int64_t workspace_bytes, int64_t scratch_bytes_a_thread, const ThreadPool& pool);

  const VariableLayout& variables() const { return variables_; }
  // BugError where there is no such variable.
  TensorView variable(std::string_view name) const;
  std::byte* persistent() const { return persistent_.data(); }
  std::byte* workspace() const { return workspace_.data(); }
  std::byte* scratch() const { return scratch_.data(); }
  int64_t scratch_stride() const { return scratch_stride_; }
  int64_t bytes() const { return persistent_.bytes() + workspace_.bytes() + scratch_.bytes(); }

 private:
  VariableLayout variables_;
  Block persistent_, workspace_, scratch_;
  int64_t scratch_stride_ = 0;
};

}  // namespace ingot
