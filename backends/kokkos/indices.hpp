#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "core/kernel.hpp"
#include "core/portable.hpp"

namespace turnout::kokkos {

/// Index operands are i32 or i64. Indices from data can be anything: a kernel reads them through
/// get(), which makes negative ones count from the end and, out of range, notes the fault and
/// returns 0, so that nothing outside the tensor is touched.
struct Indices {
  const void* data = nullptr;
  bool wide = true;  ///< i64
  int* fault = nullptr;

  TURNOUT_HD std::int64_t raw(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i]
                : static_cast<std::int64_t>(static_cast<const std::int32_t*>(data)[i]);
  }
  TURNOUT_HD std::int64_t get(std::int64_t i, std::int64_t dim) const {
    const std::int64_t index = raw(i);
    const std::int64_t wrapped = index < 0 ? index + dim : index;
    if (wrapped >= 0 && wrapped < dim) return wrapped;
    std::atomic_ref<int>(*fault).store(1, std::memory_order_relaxed);
    return 0;
  }
};

/// Indices of input `i`; faults are noted in `fault`, which has to be 0.
inline Indices indices_of(const KernelArgs& args, int i, DType dtype, int& fault) {
  return {args.input<std::byte>(i), dtype == DType::i64, &fault};
}

/// Throws if an index was out of range.
inline void check_fault(int fault, const std::string& op) {
  if (fault != 0) fail(ErrorCode::invalid_argument, "[{}] an index is out of range", op);
}

inline Acceptance accept_indices(const NodeInfo& info, int i) {
  const DType dtype = info.input(i).dtype;
  if (dtype == DType::i64 || dtype == DType::i32) return Acceptance::yes();
  return Acceptance::no("indices of type " + std::string(to_string(dtype)));
}

}  // namespace turnout::kokkos
