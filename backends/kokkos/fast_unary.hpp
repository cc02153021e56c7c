#pragma once

namespace turnout::kokkos {

/// The functor to run for Op on elements of W.
template <typename Op, typename W>
struct Fast {
  using type = Op;
};
template <typename Op, typename W>
using FastOp = typename Fast<Op, W>::type;

}  // namespace turnout::kokkos
