#pragma once

#include "backends/kokkos/support.hpp"

// What layer_normalization and rms_normalization ask for.
namespace turnout::kokkos {

/// First axis of a row.
int norm_axis(const NodeInfo& info);
/// Elements of `operand` if, leading ones apart, it is the end of x[axis:]; else 0.
std::int64_t norm_period(const NodeInfo& info, int operand);
Acceptance accept_norm_rows(const NodeInfo& info);

}  // namespace turnout::kokkos
