#pragma once

#include <span>

#include "backends/kokkos/loops.hpp"

namespace turnout::kokkos {

/// Loops over the axes of a dense tensor that are kept, then over those that are reduced: an index
/// of each kind gives an offset. f32[8,64,56,56] with axes 0, 2 and 3 reduced is kept {64}, reduced
/// {8,3136}.
struct SplitLoops {
  int kept = 0, all = 0;  ///< dims[0, kept) are kept, dims[kept, all) reduced
  std::int64_t dims[Shape::kMaxRank] = {};
  std::int64_t strides[Shape::kMaxRank] = {};

  TURNOUT_HD std::int64_t kept_offset(std::int64_t index) const { return offset(0, kept, index); }
  TURNOUT_HD std::int64_t reduced_offset(std::int64_t index) const {
    return offset(kept, all, index);
  }
  /// How far apart neighbours along the innermost reduced axis are; 1 if nothing is reduced.
  std::int64_t reduced_stride() const { return all > kept ? strides[all - 1] : 1; }
  std::int64_t kept_elements() const { return elements(0, kept); }
  std::int64_t reduced_elements() const { return elements(kept, all); }

 private:
  TURNOUT_HD std::int64_t offset(int first, int last, std::int64_t index) const {
    std::int64_t result = 0;
    for (int axis = last - 1; axis > first; --axis) {
      const std::int64_t rest = index / dims[axis];
      result += (index - rest * dims[axis]) * strides[axis];
      index = rest;
    }
    return first < last ? result + index * strides[first] : result;
  }
  std::int64_t elements(int first, int last) const {
    std::int64_t result = 1;
    for (int axis = first; axis < last; ++axis) result *= dims[axis];
    return result;
  }
};

/// `axes`: those to reduce, each once. Dimensions of size 1 are dropped, neighbours merged.
inline SplitLoops make_split_loops(const Shape& shape, std::span<const int> axes) {
  Shape kept = shape, reduced = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) reduced.set(axis, 1);
  for (const int axis : axes) {
    reduced.set(axis, shape[axis]);
    kept.set(axis, 1);
  }
  SplitLoops result;
  for (const bool of_kept : {true, false}) {
    const Loops<1> loops = make_loops<1>(of_kept ? kept : reduced, {shape.strides()});
    for (int axis = 0; axis < loops.rank; ++axis) {
      if (loops.dims[axis] == 1) continue;
      result.dims[result.all] = loops.dims[axis];
      result.strides[result.all++] = loops.strides[0][axis];
    }
    if (of_kept) result.kept = result.all;
  }
  return result;
}

}  // namespace turnout::kokkos
