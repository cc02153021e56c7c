#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "backends/kokkos/mode.hpp"
#include "core/portable.hpp"
#include "core/shape.hpp"

// Nested loops over a shape with one stride per operand and dimension, made as few and as long as
// possible, and cut into items of work for parallel_for().
//
// Adding f32[8,64,56,56] and f32[64,1,1] has strides {200704,3136,56,1} and {0,1,0,0}. Dimensions
// 2 and 3 go together, so the loops are [8,64,3136] with {200704,3136,1} and {0,1,0}: 512 rows of
// 3136 elements, in each of which the second operand is one number.
namespace turnout::kokkos {

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

/// Elements of one item of work. On hosts enough to hide the cost of finding where a row starts,
/// few enough for the first cache. On devices one: neighbouring threads have neighbouring elements.
inline constexpr std::int64_t kItemElements = kDevice ? 1 : 4096;

template <int N>
struct Loops {
  int rank = 1;  ///< at least 1; the last dimension is the row
  std::int64_t dims[Shape::kMaxRank] = {};
  std::int64_t strides[N][Shape::kMaxRank] = {};

  std::int64_t rows = 0;
  std::int64_t items = 0;  ///< what parallel_for() counts
  /// Long rows: each is cut into `pieces`. Short rows: `rows_per_item` make up an item.
  std::int64_t pieces = 1;
  std::int64_t rows_per_item = 1;

  TURNOUT_HD std::int64_t length() const { return dims[rank - 1]; }
  TURNOUT_HD std::int64_t row_stride(int operand) const { return strides[operand][rank - 1]; }
};

/// Strides of a dense tensor.
inline Strides dense_strides(const Shape& shape) { return shape.strides(); }

/// Strides with which `operand` is read when broadcast to `shape`; 0 where it repeats.
inline Strides broadcast_strides(const Shape& operand, const Shape& shape) {
  const Strides dense = operand.strides();
  Strides result{};
  const int shift = shape.rank() - operand.rank();
  for (int axis = 0; axis < operand.rank(); ++axis) {
    const auto from = static_cast<std::size_t>(axis);
    const auto to = static_cast<std::size_t>(axis + shift);
    result[to] = operand[axis] == 1 ? 0 : dense[from];
  }
  return result;
}

/// Cuts loops into items.
template <int N>
void set_items(Loops<N>& loops, std::int64_t item_elements = kItemElements) {
  const std::int64_t length = loops.length();
  loops.rows = 1;
  for (int axis = 0; axis + 1 < loops.rank; ++axis) loops.rows *= loops.dims[axis];
  loops.pieces = 1;
  loops.rows_per_item = 1;
  if (length == 0 || loops.rows == 0) {
    loops.items = 0;
    return;
  }
  if (length > item_elements) {
    loops.pieces = (length + item_elements - 1) / item_elements;
  } else {
    loops.rows_per_item = item_elements / length;
  }
  loops.items = loops.pieces > 1 ? loops.rows * loops.pieces
                                 : (loops.rows + loops.rows_per_item - 1) / loops.rows_per_item;
}

/// Loops over `shape`: dimensions of size 1 dropped, neighbours merged where every operand allows.
template <int N>
Loops<N> make_loops(const Shape& shape, const std::array<Strides, N>& strides) {
  Loops<N> loops;
  int rank = 0;
  const auto mergeable = [&](int axis) {
    for (int operand = 0; operand < N; ++operand) {
      const std::int64_t inner =
          strides[static_cast<std::size_t>(operand)][static_cast<std::size_t>(axis)];
      if (loops.strides[operand][rank - 1] != inner * shape[axis]) return false;
    }
    return true;
  };
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    const bool merged = rank > 0 && mergeable(axis);
    if (!merged) loops.dims[rank++] = 1;
    loops.dims[rank - 1] *= shape[axis];
    for (int operand = 0; operand < N; ++operand) {
      loops.strides[operand][rank - 1] =
          strides[static_cast<std::size_t>(operand)][static_cast<std::size_t>(axis)];
    }
  }
  if (rank == 0) loops.dims[rank++] = 1;
  loops.rank = rank;
  set_items(loops);
  return loops;
}

/// Where a row, or a piece of one, lies.
template <int N>
struct RowPlace {
  std::int64_t offsets[N];  ///< of the first element, per operand
  std::int64_t dense;       ///< the same in a dense tensor of the loops' shape
  std::int64_t length;
};

/// Where element `index` (in order of the loops) lies, as a row of length 1.
template <int N>
TURNOUT_HD RowPlace<N> place_of(const Loops<N>& loops, std::int64_t index) {
  RowPlace<N> place;
  place.dense = index;
  place.length = 1;
  for (int operand = 0; operand < N; ++operand) place.offsets[operand] = 0;
  for (int axis = loops.rank - 1; axis > 0; --axis) {
    const std::int64_t rest = index / loops.dims[axis];
    const std::int64_t at = index - rest * loops.dims[axis];
    index = rest;
    for (int operand = 0; operand < N; ++operand) {
      place.offsets[operand] += at * loops.strides[operand][axis];
    }
  }
  for (int operand = 0; operand < N; ++operand) {
    place.offsets[operand] += index * loops.strides[operand][0];
  }
  return place;
}

/// Calls row(place) for every row, or for the piece of a row, of one item.
template <int N, typename Row>
TURNOUT_HD void for_rows(const Loops<N>& loops, std::int64_t item, const Row& row) {
  if constexpr (kDevice) {
    row(place_of(loops, item));
    return;
  }
  const int outer = loops.rank - 1;
  const std::int64_t length = loops.dims[outer];
  const std::int64_t first = loops.pieces > 1 ? item / loops.pieces : item * loops.rows_per_item;
  const std::int64_t end = first + loops.rows_per_item;
  const std::int64_t last = end < loops.rows ? end : loops.rows;

  RowPlace<N> place;
  place.dense = first * length;
  place.length = length;
  for (int operand = 0; operand < N; ++operand) place.offsets[operand] = 0;
  std::int64_t index[Shape::kMaxRank];
  std::int64_t rest = first;
  for (int axis = outer - 1; axis >= 0; --axis) {
    index[axis] = rest % loops.dims[axis];
    rest /= loops.dims[axis];
    for (int operand = 0; operand < N; ++operand) {
      place.offsets[operand] += index[axis] * loops.strides[operand][axis];
    }
  }
  if (loops.pieces > 1) {  // even pieces, so that the last one isn't a stub
    const std::int64_t piece = item % loops.pieces;
    const std::int64_t begin = length * piece / loops.pieces;
    place.length = length * (piece + 1) / loops.pieces - begin;
    place.dense += begin;
    for (int operand = 0; operand < N; ++operand) {
      place.offsets[operand] += begin * loops.strides[operand][outer];
    }
    row(place);
    return;
  }
  for (std::int64_t at = first; at < last; ++at) {
    row(place);
    place.dense += length;
    for (int axis = outer - 1; axis >= 0; --axis) {
      for (int operand = 0; operand < N; ++operand) {
        place.offsets[operand] += loops.strides[operand][axis];
      }
      if (++index[axis] < loops.dims[axis]) break;
      for (int operand = 0; operand < N; ++operand) {
        place.offsets[operand] -= loops.dims[axis] * loops.strides[operand][axis];
      }
      index[axis] = 0;
    }
  }
}

}  // namespace turnout::kokkos
