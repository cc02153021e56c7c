#include "backends/kokkos/indices.hpp"

#include "core/error.hpp"

namespace turnout::kokkos {

void fail_if_faulty(int op) {
  if (op == 0) return;
  constexpr std::string_view kNames[] = {"gather",           "gather_elements", "gather_nd",
                                         "scatter_elements", "scatter_nd",      "reverse_sequence"};
  fail(ErrorCode::invalid_argument, "[{}] an index is out of range", kNames[op - 1]);
}

Acceptance accept_indices(const NodeInfo& info, int i) {
  const DType dtype = info.input(i).dtype;
  if (dtype == DType::i64 || dtype == DType::i32) return Acceptance::yes();
  return Acceptance::no("indices of type " + std::string(to_string(dtype)));
}

}  // namespace turnout::kokkos
