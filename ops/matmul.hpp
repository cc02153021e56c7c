#pragma once

#include <array>
#include <cstdint>

#include "core/op.hpp"

namespace turnout {

/// A matmul node as `batch` products y[m,n] = a[m,k] b[k,n], operands dense with row-major
/// matrices (stored transposed where trans_a or trans_b says so).
struct MatmulDims {
  using Strides = std::array<std::int64_t, Shape::kMaxRank>;

  std::int64_t m = 1, n = 1, k = 0;
  bool trans_a = false, trans_b = false;
  Shape batch;  ///< broadcast batch dimensions, outermost first
  /// Elements from one matrix to the next per batch dimension; 0 where the operand is broadcast.
  Strides a_strides{}, b_strides{}, bias_strides{};
  /// Steps of bias (input 2) along m and n: 0 where it is broadcast.
  std::int64_t bias_row_stride = 0, bias_col_stride = 0;
  Shape output;

  std::int64_t batches() const { return batch.elements(); }
  /// Offset of matrix `index` (row-major over `batch`) in an operand with these strides.
  std::int64_t offset(std::int64_t index, const Strides& strides) const;
};

/// Checks the operands' shapes too; errors name the node.
/// Batch dimensions are folded into m where all of them share one b and a isn't transposed.
MatmulDims matmul_dims(const NodeInfo& info);

}  // namespace turnout
