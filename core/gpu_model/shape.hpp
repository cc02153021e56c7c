#pragma once

#include <cstdint>

namespace turnout::gpu_model {

enum class Pass { forward, backward_data, backward_filter };

/// What is timed: a product C[m,n] = A[m,k] B[k,n] (column-major, as BLAS has it), or one pass of a
/// two-dimensional convolution. Element size 2 (half) or 4 bytes. Sizes are positive and at most
/// kMaxSize, so that no count of operations leaves the range of a double.
struct OpShape {
  static constexpr std::int64_t kMaxSize = std::int64_t{1} << 31;

  bool is_conv = false;
  bool half = false;
  Pass pass = Pass::forward;
  // product
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t products = 1;  ///< independent ones of that size
  bool transpose_a = false, transpose_b = false;
  // convolution
  std::int64_t batch = 0, in_channels = 0, height = 0, width = 0, out_channels = 0;
  std::int64_t filter_h = 0, filter_w = 0, pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1;
  std::int64_t groups = 1;

  std::int64_t out_height() const { return (height + 2 * pad_h - filter_h) / stride_h + 1; }
  std::int64_t out_width() const { return (width + 2 * pad_w - filter_w) / stride_w + 1; }
};

/// Multiply-adds count two. The three passes of a convolution do the same work.
double flops(const OpShape& shape);

}  // namespace turnout::gpu_model
