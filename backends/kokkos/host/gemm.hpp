#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backends/kokkos/host/finish.hpp"
#include "backends/kokkos/host/gemm_tile.hpp"

// y = finish(a b) on one thread: blocks of k and of columns small enough for the second cache, cut
// into tiles for the registers (gemm_tile.hpp). Threads take disjoint parts of y.
//
// For k = 600, n = 100 and panels of 48 columns the whole of b, packed, is
//   k 0..200: columns 0..48, 48..96, 96..100 | k 200..400: the same | k 400..600
// where each panel is stored k by k and the last one is filled up with zeros.
namespace turnout::kokkos {

/// Longest block of k. Sums of T = A are kept in y between blocks; a narrower T takes k whole.
template <typename A, typename T>
std::int64_t k_block(std::int64_t k) {
  constexpr std::int64_t kLongest = 320;
  if (k == 0) return 1;
  if (!std::is_same_v<A, T>) return k;
  const std::int64_t blocks = (k + kLongest - 1) / kLongest;
  return (k + blocks - 1) / blocks;
}

template <typename A>
constexpr std::int64_t padded_rows(std::int64_t m) {
  return (m + Tile<A>::kRows - 1) / Tile<A>::kRows * Tile<A>::kRows;
}
template <typename A>
constexpr std::int64_t padded_cols(std::int64_t n) {
  return (n + Tile<A>::kCols - 1) / Tile<A>::kCols * Tile<A>::kCols;
}

/// Packs `lines` x `steps` into panels of Width lines: element (line, step) is
/// from[line * line_stride + step * step_stride]. Missing lines of the last panel become 0.
template <int Width, typename A, typename T>
void pack_panels(const T* from, std::int64_t lines, std::int64_t line_stride, std::int64_t steps,
                 std::int64_t step_stride, A* to) {
  for (std::int64_t first = 0; first < lines; first += Width, to += steps * Width) {
    const T* panel = from + first * line_stride;
    const auto width = static_cast<int>(std::min<std::int64_t>(Width, lines - first));
    if (width < Width) std::fill(to, to + steps * Width, A(0));
    if (line_stride == 1) {
      for (std::int64_t s = 0; s < steps; ++s) {
        const T* line = panel + s * step_stride;
        if (width == Width) {
          for (int l = 0; l < Width; ++l) to[s * Width + l] = static_cast<A>(line[l]);
        } else {
          for (int l = 0; l < width; ++l) to[s * Width + l] = static_cast<A>(line[l]);
        }
      }
      continue;
    }
    constexpr std::int64_t kStrip = 16;  // so that what is written stays in the first cache
    for (std::int64_t s0 = 0; s0 < steps; s0 += kStrip) {
      const std::int64_t s1 = std::min(s0 + kStrip, steps);
      for (int l = 0; l < width; ++l) {
        const T* line = panel + l * line_stride;
        for (std::int64_t s = s0; s < s1; ++s) {
          to[s * Width + l] = static_cast<A>(line[s * step_stride]);
        }
      }
    }
  }
}

/// Whole matrices packed in advance; `to` has padded_rows(m) * k or padded_cols(n) * k elements.
template <typename A, typename T>
void pack_left(const T* a, std::int64_t m, std::int64_t row_stride, std::int64_t k,
               std::int64_t k_stride, A* to) {
  const std::int64_t block = k_block<A, T>(k);
  for (std::int64_t k0 = 0; k0 < k; k0 += block) {
    pack_panels<Tile<A>::kRows>(a + k0 * k_stride, m, row_stride, std::min(block, k - k0), k_stride,
                                to + k0 * padded_rows<A>(m));
  }
}
template <typename A, typename T>
void pack_right(const T* b, std::int64_t n, std::int64_t col_stride, std::int64_t k,
                std::int64_t k_stride, A* to) {
  const std::int64_t block = k_block<A, T>(k);
  for (std::int64_t k0 = 0; k0 < k; k0 += block) {
    pack_panels<Tile<A>::kCols>(b + k0 * k_stride, n, col_stride, std::min(block, k - k0), k_stride,
                                to + k0 * padded_cols<A>(n));
  }
}

/// b of a product that is packed while it runs, by `pack` for steps [k0, k1) and columns [n0, n1).
template <typename A>
struct RightSource {
  void (*pack)(const void* source, std::int64_t k0, std::int64_t k1, std::int64_t n0,
               std::int64_t n1, A* to) = nullptr;
  const void* source = nullptr;
};

/// The source that is a matrix in memory.
template <typename A, typename T>
struct StridedRight {
  const T* b;
  std::int64_t k_stride, col_stride;
  static void pack(const void* source, std::int64_t k0, std::int64_t k1, std::int64_t n0,
                   std::int64_t n1, A* to) {
    const auto& self = *static_cast<const StridedRight*>(source);
    pack_panels<Tile<A>::kCols>(self.b + k0 * self.k_stride + n0 * self.col_stride, n1 - n0,
                                self.col_stride, k1 - k0, self.k_stride, to);
  }
};

/// Elements of workspace that a thread needs for what isn't packed in advance.
struct GemmBlocks {
  std::int64_t k = 1;     ///< steps of a block
  std::int64_t rows = 0;  ///< of a packed at a time; 0: a is a panel or read in place
  std::int64_t cols = 0;  ///< of b packed at a time; 0: b is packed in advance
  std::int64_t elements() const { return k * (rows + cols); }
};

template <typename A, typename T>
GemmBlocks gemm_blocks(std::int64_t m, std::int64_t n, std::int64_t k, bool pack_a, bool pack_b) {
  constexpr std::int64_t kCacheElements = 448 * 1024 / sizeof(A);  // half of a second cache
  GemmBlocks blocks;
  blocks.k = k_block<A, T>(k);
  const auto fit = [&](std::int64_t tile, std::int64_t all) {
    const std::int64_t tiles = std::max<std::int64_t>(kCacheElements / (blocks.k * tile), 1);
    return std::min(tiles * tile, (all + tile - 1) / tile * tile);
  };
  if (pack_a) blocks.rows = fit(Tile<A>::kRows, m);
  if (pack_b) blocks.cols = fit(Tile<A>::kCols, n);
  return blocks;
}

/// One product of matrices.
template <typename A, typename T>
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  const A* a_panels = nullptr;  ///< from pack_left, or:
  const T* a = nullptr;
  std::int64_t a_row = 0, a_k = 0;
  const A* b_panels = nullptr;  ///< from pack_right, or:
  RightSource<A> b;
  GemmBlocks blocks;
  Finish<A, T> finish;

  /// True if rows of a are read where they are.
  bool a_in_place() const {
    return std::is_same_v<A, T> && a_panels == nullptr && blocks.rows == 0;
  }

  /// Rows [m0, m1), a multiple of kRows but for the end, and columns [n0, n1) of y. Columns have to
  /// start at a panel where b is packed in advance.
  void run(std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1, A* workspace) const {
    A* const b_block = blocks.cols > 0 ? workspace + blocks.k * blocks.rows : nullptr;
    const std::int64_t col_step = blocks.cols > 0 ? blocks.cols : n1 - n0;
    const std::int64_t row_step = blocks.rows > 0 ? blocks.rows : std::int64_t{192};
    for (std::int64_t k0 = 0; k0 == 0 || k0 < k; k0 += blocks.k) {
      const std::int64_t k1 = std::min(k0 + blocks.k, k);
      for (std::int64_t j = n0; j < n1; j += col_step) {
        const std::int64_t j1 = std::min(j + col_step, n1);
        const A* right = b_block;
        if (b_panels != nullptr) {
          right = b_panels + k0 * padded_cols<A>(n) + j * (k1 - k0);
        } else {
          b.pack(b.source, k0, k1, j, j1, b_block);
        }
        for (std::int64_t i = m0; i < m1; i += row_step) {
          block(k0, k1, i, std::min(i + row_step, m1), j, j1, right, workspace);
        }
      }
    }
  }

 private:
  void block(std::int64_t k0, std::int64_t k1, std::int64_t i0, std::int64_t i1, std::int64_t j0,
             std::int64_t j1, const A* right, A* a_block) const {
    const std::int64_t steps = k1 - k0;
    const A* left = a_block;
    if (a_panels != nullptr) left = a_panels + k0 * padded_rows<A>(m) + i0 * steps;
    if (blocks.rows > 0) {
      pack_panels<Tile<A>::kRows>(a + i0 * a_row + k0 * a_k, i1 - i0, a_row, steps, a_k, a_block);
    }
    // The operand that comes from far away is in the outer loop, so that it is fetched once.
    if (b_panels == nullptr) {
      for (std::int64_t i = i0; i < i1; i += Tile<A>::kRows) {
        for (std::int64_t j = j0; j < j1; j += Tile<A>::kCols) {
          tile(k0, steps, i, i1, j, j1, panel(left, i - i0, steps), right + (j - j0) * steps);
        }
      }
    } else {
      for (std::int64_t j = j0; j < j1; j += Tile<A>::kCols) {
        for (std::int64_t i = i0; i < i1; i += Tile<A>::kRows) {
          tile(k0, steps, i, i1, j, j1, panel(left, i - i0, steps), right + (j - j0) * steps);
        }
      }
    }
  }

  const A* panel(const A* left, std::int64_t row, std::int64_t steps) const {
    return a_in_place() ? nullptr : left + row * steps;
  }

  void tile(std::int64_t k0, std::int64_t steps, std::int64_t i, std::int64_t i1, std::int64_t j,
            std::int64_t j1, const A* left, const A* right) const {
    alignas(64) A sums[Tile<A>::kRows * Tile<A>::kCols];
    const auto rows = static_cast<int>(std::min<std::int64_t>(Tile<A>::kRows, i1 - i));
    const auto cols = static_cast<int>(std::min<std::int64_t>(Tile<A>::kCols, j1 - j));
    if constexpr (std::is_same_v<A, T>) {
      if (a_in_place()) {
        multiply<A, false>(rows, cols, steps, a + i * a_row + k0 * a_k, a_row, a_k, right, sums);
      } else {
        multiply<A, true>(rows, cols, steps, left, 0, 0, right, sums);
      }
    } else {
      multiply<A, true>(rows, cols, steps, left, 0, 0, right, sums);
    }
    finish(sums, i, j, rows, cols, k0 == 0, k0 + steps >= k);
  }
};

}  // namespace turnout::kokkos
