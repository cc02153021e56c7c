#pragma once

#include <cstddef>

#include "backends/kokkos/loops.hpp"
#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {

/// A copy of a box of elements between two strided places, by element size rather than by type.
/// Transposing, slicing, concatenating, tiling and broadcasting are such copies.
struct CopyPlan {
  Loops<2> loops;                               ///< operand 0: source, operand 1: destination
  std::int64_t from_offset = 0, to_offset = 0;  ///< of the first element, in elements
  int element_bytes = 4;
  /// Dimension along which the source is dense when the row isn't: the copy goes by square blocks
  /// over it and the row. -1: by rows.
  int block_axis = -1;
};

/// `from` and `to`: strides in elements, one per dimension of `shape`; those of `from` may be 0 or
/// negative. Elements of `to` must not overlap.
CopyPlan plan_copy(const Shape& shape, const Strides& from, std::int64_t from_offset,
                   const Strides& to, std::int64_t to_offset, DType dtype);
/// Into a dense tensor.
CopyPlan plan_gather_copy(const Shape& shape, const Strides& from, std::int64_t from_offset,
                          DType dtype);

void run_copy(const Launch& launch, const CopyPlan& plan, const void* from, void* to);

/// Calls `f(std::type_identity<T>{})` with an unsigned integer of so many bytes: 1, 2, 4 or 8.
template <typename F>
decltype(auto) dispatch_bytes(int element_bytes, F&& f) {
  switch (element_bytes) {
    case 1:
      return f(std::type_identity<std::uint8_t>{});
    case 2:
      return f(std::type_identity<std::uint16_t>{});
    case 4:
      return f(std::type_identity<std::uint32_t>{});
    default:
      return f(std::type_identity<std::uint64_t>{});
  }
}

/// Copies `count` neighbouring elements.
template <typename T>
TURNOUT_HD void copy_dense(const T* from, T* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

}  // namespace turnout::kokkos
