#pragma once

#include <vector>

#include "core/op.hpp"

namespace turnout {

/// Axes that a reduce_* node reduces, non-negative, each once. None: it copies.
std::vector<int> reduced_axes(const NodeInfo& info);

/// arg_max, arg_min, cum_sum and cum_prod: part of register_reduce_ops.
void register_scan_ops(OpRegistry& ops);

}  // namespace turnout
