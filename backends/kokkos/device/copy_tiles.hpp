#pragma once

#include "backends/kokkos/copy.hpp"
#include "backends/kokkos/device/teams.hpp"

// Copies whose source is dense along one axis and whose destination is dense along another, by
// square tiles that go through a team's memory: reading and writing, neighbouring threads have
// neighbouring elements.
namespace turnout::kokkos {

/// A copy as tiles over the axis where the source is dense (`height`) and the one where the
/// destination is (`width`), at every place of the others.
struct TilePlan {
  static constexpr int kOthers = Shape::kMaxRank - 2;
  std::int64_t height = 0, width = 0;
  std::int64_t from_width = 0;  ///< stride of the source along the width
  std::int64_t to_height = 0;   ///< stride of the destination along the height
  std::int64_t places = 1;
  int others = 0;
  std::int64_t dims[kOthers] = {}, from[kOthers] = {}, to[kOthers] = {};
};

/// Of a plan with a block axis.
inline TilePlan plan_tiles(const CopyPlan& plan) {
  const Loops<2>& loops = plan.loops;
  const int row = loops.rank - 1;
  TilePlan tiles;
  tiles.height = loops.dims[plan.block_axis];
  tiles.width = loops.dims[row];
  tiles.from_width = loops.strides[0][row];
  tiles.to_height = loops.strides[1][plan.block_axis];
  for (int axis = 0; axis < row; ++axis) {
    if (axis == plan.block_axis) continue;
    tiles.dims[tiles.others] = loops.dims[axis];
    tiles.from[tiles.others] = loops.strides[0][axis];
    tiles.to[tiles.others++] = loops.strides[1][axis];
    tiles.places *= loops.dims[axis];
  }
  return tiles;
}

/// Team: one tile.
template <typename T>
struct CopyTile {
  static constexpr int kSide = 32, kStride = kSide + 1, kThreads = 256;
  const T* from;
  T* to;
  TilePlan plan;

  static std::size_t scratch_bytes() { return ScratchArray<T>::bytes(kSide * kStride); }
  static std::int64_t tiles(std::int64_t size) { return (size + kSide - 1) / kSide; }

  TURNOUT_HD void operator()(const Member& member, std::int64_t team) const {
    const std::int64_t columns = (plan.width + kSide - 1) / kSide;
    const std::int64_t rows = (plan.height + kSide - 1) / kSide;
    const std::int64_t left = team % columns * kSide;
    const std::int64_t top = team / columns % rows * kSide;
    const T* x = from + top + left * plan.from_width;
    T* y = to + top * plan.to_height + left;
    std::int64_t place = team / columns / rows;
    for (int axis = plan.others - 1; axis >= 0; --axis) {
      const std::int64_t at = place % plan.dims[axis];
      place /= plan.dims[axis];
      x += at * plan.from[axis];
      y += at * plan.to[axis];
    }
    const ScratchArray<T> tile(member, kSide * kStride);
    const int rank = member.team_rank(), size = member.team_size();
    for (int e = rank; e < kSide * kSide; e += size) {
      const int i = e % kSide, j = e / kSide;
      if (top + i < plan.height && left + j < plan.width) {
        tile[static_cast<std::size_t>(j * kStride + i)] = x[i + j * plan.from_width];
      }
    }
    member.team_barrier();
    for (int e = rank; e < kSide * kSide; e += size) {
      const int i = e / kSide, j = e % kSide;
      if (top + i < plan.height && left + j < plan.width) {
        y[i * plan.to_height + j] = tile[static_cast<std::size_t>(j * kStride + i)];
      }
    }
    member.team_barrier();
  }
};

template <typename T>
void copy_tiles(const Launch& launch, const CopyPlan& plan, const T* from, T* to) {
  using Tile = CopyTile<T>;
  const TilePlan tiles = plan_tiles(plan);
  parallel_teams(launch, Tile::tiles(tiles.height) * Tile::tiles(tiles.width) * tiles.places,
                 Tile::kThreads, Tile::scratch_bytes(), Tile{from, to, tiles});
}

}  // namespace turnout::kokkos
