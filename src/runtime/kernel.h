// NodeKernel: what runs one node of a program. A binding (bindings.h) makes it when the program is compiled, from
// shapes, dtypes and attributes alone; everything that costs time or memory to prepare is prepared then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "base/result.h"
#include "graph/op.h"
#include "graph/storage.h"

namespace ingot {

// Tables that several kernels of one program read (angles of rotary positions), made once and alive as long as one of
// them.
class SharedTables {
 public:
  // The table of this key; `make` makes it where it is not there yet.
  std::shared_ptr<const std::vector<float>> get(const std::string& key, FunctionRef<std::vector<float>()> make) {
    auto& slot = tables_[key];
    if (!slot) slot = std::make_shared<const std::vector<float>>(make());
    return slot;
  }

 private:
  std::map<std::string, std::shared_ptr<const std::vector<float>>> tables_;
};

// The node that a kernel is made for.
struct NodeView {
  const Graph& graph;
  const Node& node;
  int threads;  // of the pool that will run it: sizes per-thread caches, never how work is cut
  SharedTables& tables;
  bool widened = false;  // what is stored in 16 bits is to be seen as f32: the kernel finds it so

  Type input(size_t i) const { return seen(graph.type(node.inputs[i])); }
  Type output(size_t i) const { return seen(graph.type(node.outputs[i])); }
  size_t inputs() const { return node.inputs.size(); }
  size_t outputs() const { return node.outputs.size(); }

 private:
  Type seen(const Type& type) const { return widened ? computed(type) : type; }
};

struct RunArguments {
  const ThreadPool& pool;
  std::span<std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* temporary;  // NodeKernel::temporary_bytes, shared by the node's threads
  std::byte* scratch;    // scratch_stride bytes a thread
  int64_t scratch_stride;
  const RandomState& random;

  template <class T = float>
  const T* in(size_t i) const {
    return reinterpret_cast<const T*>(inputs[i]);
  }
  template <class T = float>
  T* out(size_t i) const {
    return reinterpret_cast<T*>(outputs[i]);
  }
  std::byte* scratch_of(int thread) const { return scratch + thread * scratch_stride; }
};

class NodeKernel {
 public:
  virtual ~NodeKernel() = default;
  // Never allocates. Cuts its work into tiles by shape alone.
  virtual void run(const RunArguments& args) const = 0;

  int64_t temporary_bytes = 0;  // 64-byte aligned memory for all threads while the node runs
  int64_t scratch_bytes = 0;    // for each thread
  std::string_view family;      // of bindings ("matmul"), for reports
};

using KernelResult = Result<std::unique_ptr<NodeKernel>>;

// A kernel from a callable that takes RunArguments.
template <class F>
std::unique_ptr<NodeKernel> make_kernel(F run, int64_t temporary_bytes = 0, int64_t scratch_bytes = 0) {
  struct Kernel final : NodeKernel {
    explicit Kernel(F f) : body(std::move(f)) {}
    void run(const RunArguments& args) const override { body(args); }
    F body;
  };
  auto kernel = std::make_unique<Kernel>(std::move(run));
  kernel->temporary_bytes = temporary_bytes;
  kernel->scratch_bytes = scratch_bytes;
  return kernel;
}

// Runs body(begin, end, thread) over [0, items) in tiles of `grain`.
template <class F>
void for_ranges(const RunArguments& args, int64_t items, int64_t grain, const F& body) {
  args.pool.run((items + grain - 1) / grain,
                [&](int64_t tile, int thread) { body(tile * grain, std::min(items, (tile + 1) * grain), thread); });
}

// An op that the plan lets run in place works on its output; where the plan did not put both in one place, the input's
// content is brought there first.
template <class T>
void bring_to_output(const RunArguments& args, const T* input, T* output, int64_t elements) {
  if (input == output) return;
  for_ranges(args, elements, 65536,
             [&](int64_t begin, int64_t end, int) { std::copy(input + begin, input + end, output + begin); });
}

// Rows a tile such that a tile holds about `elements` elements, and at least one row.
constexpr int64_t rows_a_tile(int64_t row_elements, int64_t elements = 16384) {
  return std::max<int64_t>(1, elements / std::max<int64_t>(row_elements, 1));
}

// Sums over rows: partial sums of this many rows, then of the partials, of which there are at most 64. The order of
// additions follows from the shape alone.
constexpr int64_t rows_a_partial(int64_t rows, int64_t columns) {
  return std::max<int64_t>(rows_a_tile(columns), (rows + 63) / 64);
}

}  // namespace ingot
