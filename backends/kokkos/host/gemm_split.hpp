#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/kokkos/host/gemm.hpp"

// How products are shared out between threads.
namespace turnout::kokkos {

/// `batches` products, each cut into row_parts x col_parts tasks, in contiguous runs of tasks to
/// `slots` threads.
struct GemmSplit {
  std::int64_t batches = 1;
  std::int64_t m = 0, n = 0;
  std::int64_t row_unit = 1, col_unit = 1;
  std::int64_t row_parts = 1, col_parts = 1;
  std::int64_t slots = 1;

  struct Task {
    std::int64_t batch, m0, m1, n0, n1;
  };
  std::int64_t tasks() const { return batches * row_parts * col_parts; }
  std::int64_t first_task(std::int64_t slot) const { return tasks() * slot / slots; }
  Task task(std::int64_t index) const {
    const std::int64_t col = index % col_parts;
    const std::int64_t row = index / col_parts % row_parts;
    return {index / (col_parts * row_parts), edge(m, row_unit, row, row_parts),
            edge(m, row_unit, row + 1, row_parts), edge(n, col_unit, col, col_parts),
            edge(n, col_unit, col + 1, col_parts)};
  }
  /// Largest of `parts` parts.
  static std::int64_t share(std::int64_t size, std::int64_t unit, std::int64_t parts) {
    return std::min(((size + unit - 1) / unit + parts - 1) / parts * unit, size);
  }

 private:
  static std::int64_t edge(std::int64_t size, std::int64_t unit, std::int64_t part,
                           std::int64_t parts) {
    const std::int64_t units = (size + unit - 1) / unit;
    return std::min((units * part + parts - 1) / parts * unit, size);
  }
};

/// Splits so that the longest task is short. `pack_cost`: of getting one element of b into its
/// panel, in multiply-adds of registers per step of k (0 where b is packed in advance).
template <typename A>
GemmSplit split_gemm(std::int64_t batches, std::int64_t m, std::int64_t n, int threads,
                     double pack_cost) {
  GemmSplit best;
  best.batches = batches;
  best.m = m;
  best.n = n;
  best.row_unit = Tile<A>::kRows;
  best.col_unit = pack_cost > 0 ? Tile<A>::kLanes : Tile<A>::kCols;
  // Whole products go round evenly, or nearly.
  const bool even = batches % threads == 0 || batches >= 4 * threads;
  const int most = even ? 1 : threads;
  double least = -1;
  for (int rows = 1; rows <= most; ++rows) {
    for (int cols = 1; rows * cols <= most; ++cols) {
      const auto height = static_cast<double>(best.share(m, best.row_unit, rows));
      const auto width = static_cast<double>(best.share(n, best.col_unit, cols));
      const double registers = std::max(width / Tile<A>::kLanes, 1.0);
      const double cost = height * registers + pack_cost * width;
      if (least >= 0 && cost >= least) continue;
      least = cost;
      best.row_parts = rows;
      best.col_parts = cols;
    }
  }
  best.slots = std::max<std::int64_t>(std::min<std::int64_t>(threads, best.tasks()), 1);
  return best;
}

}  // namespace turnout::kokkos
