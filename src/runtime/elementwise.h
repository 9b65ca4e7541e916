// Elementwise programs of the graph on the elementwise kernels: translation of instructions, and of broadcasts to
// strides.
#pragma once

#include <array>
#include <vector>

#include "kernels/elementwise/elementwise.h"
#include "ops/program.h"
#include "runtime/kernel.h"

namespace ingot {

// A tensor seen as a matrix [rows, columns], and how each input lies in it.
struct MatrixView {
  struct Strides {
    int64_t row = 0, column = 1;
  };
  int64_t rows = 1, columns = 1;
  std::vector<Strides> inputs;
};

// An elementwise op over any broadcast: the output row by row (its last axis), each input with a stride along the row
// and its own place for each row.
struct RowWalk {
  int64_t rows = 1, columns = 1;
  Shape outer;                          // the output's axes but the last
  std::vector<Shape> strides;           // of each input, along the outer axes
  std::vector<int64_t> column_strides;  // of each input, 0 or 1
  int64_t offset(size_t input, int64_t row) const;
};
RowWalk walk_rows(const Shape& shape, std::span<const Shape> inputs);

// The cut of `shape` into leading axes (rows) and trailing ones (columns) under which every input is a matrix, a row
// that repeats, a column that repeats, or a scalar. `fixed_columns` > 0: columns must be that many. Error: there is no
// such cut.
Result<MatrixView> view_as_matrix(const Shape& shape, std::span<const Shape> inputs, int64_t fixed_columns = 0);

// How the values that a node reads and writes are stored.
struct ValueDtypes {
  std::vector<DType> inputs, outputs;
};
ValueDtypes dtypes_of(const NodeView& node);

// A program ready to run. Registers: as many inputs as were given, then instructions.
class ElementwiseRunner {
 public:
  // outputs: registers to write, and the dtypes that they are written in.
  static Result<ElementwiseRunner> create(const Program& program, size_t inputs, std::vector<int64_t> outputs,
                                          std::span<const DType> dtypes);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  bool empty() const { return instructions_.empty(); }

  struct Call {
    std::span<const kernels::EwInput> inputs;
    std::span<const kernels::EwOutput> outputs;  // reg is set by the runner
    const RandomState& random;
    int64_t rows, columns;  // of the whole matrix
  };
  // Runs one tile. Serial; allocates nothing.
  void run(const Call& call, const kernels::EwTile& tile, std::byte* scratch) const;

 private:
  struct Stream {
    std::string path;
  };
  std::vector<kernels::EwInstruction> instructions_;
  std::vector<Stream> streams_;
  std::vector<int64_t> outputs_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace ingot
