#include "backends/kokkos/norm_rows.hpp"

namespace turnout::kokkos {

int norm_axis(const NodeInfo& info) {
  return normalize_axis(info.attrs->integer("axis"), info.input(0).shape.rank(), info.op->name);
}

std::int64_t norm_period(const NodeInfo& info, int operand) {
  const Shape& x = info.input(0).shape;
  const Shape& shape = info.input(operand).shape;
  int first = 0;
  while (first < shape.rank() && shape[first] == 1) ++first;
  const int rank = shape.rank() - first;
  if (rank > x.rank() - norm_axis(info)) return 0;
  for (int i = 1; i <= rank; ++i) {
    if (shape.dim(-i) != x.dim(-i)) return 0;
  }
  return std::max<std::int64_t>(shape.elements(), 1);
}

Acceptance accept_norm_rows(const NodeInfo& info) {
  for (int i = 1; i < info.input_count(); ++i) {
    if (info.has_input(i) && norm_period(info, i) == 0) {
      return Acceptance::no(fmt::format("input {} of shape {} is broadcast over the row", i,
                                        to_string(info.input(i).shape)));
    }
  }
  return accept_floating(info);
}

}  // namespace turnout::kokkos
