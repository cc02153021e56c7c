#pragma once

#include "backends/kokkos/device/product_end.hpp"
#include "backends/kokkos/device/teams.hpp"

// Products of matrices by teams: a team makes a tile of y, of which every thread has a part in its
// registers. Pieces of both operands, kDepth deep, go through the team's fast memory. Where a few
// tiles would leave most of a device idle, k is split: partial sums go to the workspace, and a
// second loop adds them in order.
//
// The operands are given by a Product:
//   m, n, k, batches
//   A left(batch, row, step), and left_by_step(): are neighbouring steps neighbours in memory?
//   Column column(batch, col), A right(column, step), right_by_step()
//   y_at(batch, row, col), bias_at(batch, row, col): places in y and bias
namespace turnout::kokkos {

struct GemmTile {
  static constexpr int kRows = 64, kCols = 64, kDepth = 16;
  static constexpr int kThreadRows = 8, kThreadCols = 4;
  static constexpr int kColThreads = kCols / kThreadCols;
  static constexpr int kThreads = kRows / kThreadRows * kColThreads;
  /// Steps of a piece are so far apart in memory: a multiple of 16 bytes, but not of all banks.
  static constexpr int kStride = 68;
  static_assert(kRows == kCols && kThreads % kCols == 0);
  /// Parts of a tile that one thread has: on a host a team has fewer threads than parts.
  static constexpr int kParts = kSpaceIsHost ? kThreads : 1;
};

/// How a product is cut up.
struct GemmGrid {
  std::int64_t row_tiles = 0, col_tiles = 0, batches = 0;
  std::int64_t splits = 1, split_steps = 0;  ///< steps of k in a split, a multiple of kDepth
  std::int64_t teams() const { return row_tiles * col_tiles * batches * splits; }
};

inline GemmGrid make_grid(std::int64_t batches, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kManyTiles = 256, kFewestSteps = 128, kMostSplits = 64;
  const auto parts = [](std::int64_t size, std::int64_t part) { return (size + part - 1) / part; };
  GemmGrid grid;
  grid.row_tiles = parts(m, GemmTile::kRows);
  grid.col_tiles = parts(n, GemmTile::kCols);
  grid.batches = batches;
  const std::int64_t tiles = std::max<std::int64_t>(grid.teams(), 1);
  const std::int64_t wanted =
      std::clamp<std::int64_t>(std::min(kManyTiles / tiles, k / kFewestSteps), 1, kMostSplits);
  grid.split_steps = parts(parts(k, wanted), GemmTile::kDepth) * GemmTile::kDepth;
  grid.splits = grid.split_steps == 0 ? 1 : parts(k, grid.split_steps);
  return grid;
}

/// Item of parallel_teams(): one split of one tile.
template <typename A, typename Product>
struct GemmTiles {
  using T = GemmTile;
  Product product;
  ProductEnd<A> end;
  A* partial;  ///< [splits, batches, m, n]; null when there is one split
  GemmGrid grid;

  static std::size_t scratch_bytes() { return 2 * ScratchArray<A>::bytes(T::kDepth * T::kStride); }

  TURNOUT_HD void operator()(const Member& member, std::int64_t team) const {
    const Place at = place_of_team(team);
    const ScratchArray<A> left(member, T::kDepth * T::kStride);
    const ScratchArray<A> right(member, T::kDepth * T::kStride);
    A sums[T::kParts][T::kThreadRows][T::kThreadCols] = {};
    for (std::int64_t k0 = at.first; k0 < at.last; k0 += T::kDepth) {
      for_parts(member, [&](int, int thread) {
        load_left(at, k0, thread, left.data());
        load_right(at, k0, thread, right.data());
      });
      member.team_barrier();
      for_parts(member, [&](int part, int thread) {
        multiply(left.data() + thread / T::kColThreads * T::kThreadRows,
                 right.data() + thread % T::kColThreads * T::kThreadCols, sums[part]);
      });
      member.team_barrier();
    }
    for_parts(member, [&](int part, int thread) { put(at, thread, sums[part]); });
  }

 private:
  struct Place {
    std::int64_t split, batch, row, col;
    std::int64_t first, last;  // steps of k
  };
  TURNOUT_HD Place place_of_team(std::int64_t team) const {
    Place at;
    at.row = team % grid.row_tiles * T::kRows;
    team /= grid.row_tiles;
    at.col = team % grid.col_tiles * T::kCols;
    team /= grid.col_tiles;
    at.batch = team % grid.batches;
    at.split = team / grid.batches;
    at.first = at.split * grid.split_steps;
    const std::int64_t next = at.first + grid.split_steps;
    at.last = next < product.k ? next : product.k;
    return at;
  }

  template <typename F>
  TURNOUT_HD static void for_parts(const Member& member, const F& f) {
    for (int part = 0; part < T::kParts; ++part) {
      const int thread = member.team_rank() + part * member.team_size();
      if (T::kParts == 1 || thread < T::kThreads) f(part, thread);
    }
  }

  TURNOUT_HD void load_left(const Place& at, std::int64_t k0, int thread, A* to) const {
    const bool by_step = product.left_by_step();
    for (int e = thread; e < T::kRows * T::kDepth; e += T::kThreads) {
      const int step = by_step ? e % T::kDepth : e / T::kRows;
      const int row = by_step ? e / T::kDepth : e % T::kRows;
      const bool inside = at.row + row < product.m && k0 + step < at.last;
      to[step * T::kStride + row] = inside ? product.left(at.batch, at.row + row, k0 + step) : A(0);
    }
  }

  TURNOUT_HD void load_right(const Place& at, std::int64_t k0, int thread, A* to) const {
    if (product.right_by_step()) {
      for (int e = thread; e < T::kCols * T::kDepth; e += T::kThreads) {
        const int step = e % T::kDepth, col = e / T::kDepth;
        const bool inside = at.col + col < product.n && k0 + step < at.last;
        to[step * T::kStride + col] =
            inside ? product.right(product.column(at.batch, at.col + col), k0 + step) : A(0);
      }
      return;
    }
    const int col = thread % T::kCols;  // one column a thread
    const bool inside = at.col + col < product.n;
    const auto column = product.column(at.batch, inside ? at.col + col : 0);
    for (int step = thread / T::kCols; step < T::kDepth; step += T::kThreads / T::kCols) {
      to[step * T::kStride + col] =
          inside && k0 + step < at.last ? product.right(column, k0 + step) : A(0);
    }
  }

  /// 16 bytes at a time.
  template <int N>
  TURNOUT_HD static void load_vector(const A* from, A (&to)[N]) {
    constexpr int kLanes = 16 / sizeof(A);
    struct alignas(16) Vector {
      A lanes[kLanes];
    };
    for (int i = 0; i < N / kLanes; ++i) {
      const Vector v = reinterpret_cast<const Vector*>(from)[i];
      for (int lane = 0; lane < kLanes; ++lane) to[i * kLanes + lane] = v.lanes[lane];
    }
  }

  TURNOUT_HD static void multiply(const A* left, const A* right,
                                  A (&sums)[T::kThreadRows][T::kThreadCols]) {
    for (int step = 0; step < T::kDepth; ++step) {
      A a[T::kThreadRows], b[T::kThreadCols];
      load_vector(left + step * T::kStride, a);
      load_vector(right + step * T::kStride, b);
      for (int i = 0; i < T::kThreadRows; ++i) {
        for (int j = 0; j < T::kThreadCols; ++j) sums[i][j] += a[i] * b[j];
      }
    }
  }

  TURNOUT_HD void put(const Place& at, int thread,
                      const A (&sums)[T::kThreadRows][T::kThreadCols]) const {
    const std::int64_t row0 = at.row + thread / T::kColThreads * T::kThreadRows;
    const std::int64_t col0 = at.col + thread % T::kColThreads * T::kThreadCols;
    for (int i = 0; i < T::kThreadRows; ++i) {
      for (int j = 0; j < T::kThreadCols; ++j) {
        const std::int64_t row = row0 + i, col = col0 + j;
        if (row >= product.m || col >= product.n) continue;
        if (partial != nullptr) {
          const std::int64_t matrix = at.split * grid.batches + at.batch;
          partial[(matrix * product.m + row) * product.n + col] = sums[i][j];
        } else {
          end.put(product.y_at(at.batch, row, col), product.bias_at(at.batch, row, col),
                  sums[i][j]);
        }
      }
    }
  }
};

/// Second loop of a split product. Item: one element of y.
template <typename A, typename Product>
struct GemmSplits {
  Product product;
  ProductEnd<A> end;
  const A* partial;
  std::int64_t splits, elements;
  TURNOUT_HD void operator()(std::int64_t item) const {
    A sum = partial[item];
    for (std::int64_t split = 1; split < splits; ++split) sum += partial[split * elements + item];
    const std::int64_t col = item % product.n, row = item / product.n % product.m;
    const std::int64_t batch = item / product.n / product.m;
    end.put(product.y_at(batch, row, col), product.bias_at(batch, row, col), sum);
  }
};

template <typename A>
std::size_t gemm_workspace_bytes(const GemmGrid& grid, std::int64_t elements) {
  return grid.splits > 1 ? static_cast<std::size_t>(grid.splits * elements) * sizeof(A) : 0;
}

/// `elements`: of y.
template <typename A, typename Product>
void run_gemm(const Launch& launch, const GemmGrid& grid, std::int64_t elements,
              const Product& product, const ProductEnd<A>& end) {
  if (elements == 0) return;
  using Tiles = GemmTiles<A, Product>;
  A* partial = grid.splits > 1 ? static_cast<A*>(launch.workspace()) : nullptr;
  parallel_teams(launch, grid.teams(), GemmTile::kThreads, Tiles::scratch_bytes(),
                 Tiles{product, end, partial, grid});
  if (partial == nullptr) return;
  parallel_for(launch, elements, 0,
               GemmSplits<A, Product>{product, end, partial, grid.splits, elements});
}

}  // namespace turnout::kokkos
