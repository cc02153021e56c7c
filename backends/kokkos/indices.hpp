#pragma once

#include <cstdint>
#include <string_view>

#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {

/// Ops that take indices from data; what a fault is noted as.
enum class IndexedOp : int {
  gather = 1,
  gather_elements,
  gather_nd,
  scatter_elements,
  scatter_nd,
  reverse_sequence,
};

/// Index operands are i32 or i64. Indices from data can be anything: a kernel reads them through
/// get(), which makes negative ones count from the end and, out of range, notes the fault and
/// returns 0, so that nothing outside the tensor is touched.
struct Indices {
  const void* data = nullptr;
  bool wide = true;  ///< i64
  IndexedOp op = IndexedOp::gather;
  int* fault = nullptr;

  TURNOUT_HD std::int64_t raw(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i]
                : static_cast<std::int64_t>(static_cast<const std::int32_t*>(data)[i]);
  }
  TURNOUT_HD std::int64_t get(std::int64_t i, std::int64_t dim) const {
    const std::int64_t index = raw(i);
    const std::int64_t wrapped = index < 0 ? index + dim : index;
    return wrapped >= 0 && wrapped < dim ? wrapped : note_fault();
  }
  /// Gives 0.
  TURNOUT_HD std::int64_t note_fault() const {
    store_relaxed(fault, static_cast<int>(op));
    return 0;
  }
};

/// Indices of input `i`.
inline Indices indices_of(const Launch& launch, int i, DType dtype, IndexedOp op) {
  return {launch.input<std::byte>(i), dtype == DType::i64, op, launch.fault()};
}

/// Throws the error that `op` (an IndexedOp; 0: none) was given an index out of range.
void fail_if_faulty(int op);
inline void fail_if(bool faulty, IndexedOp op) {
  if (faulty) fail_if_faulty(static_cast<int>(op));
}
/// Ends a launch that used indices_of(). In device mode nothing is known yet: see throw_faults().
inline void check_indices(const Launch& launch) {
  if constexpr (!kDevice) fail_if_faulty(*launch.fault());
}

Acceptance accept_indices(const NodeInfo& info, int i);

}  // namespace turnout::kokkos
