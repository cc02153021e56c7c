#pragma once

#include <cstdint>

#include "core/op.hpp"

namespace turnout {

/// `index` in [-size, size) made non-negative; otherwise an Error that names the node.
std::int64_t checked_index(const NodeInfo& info, std::int64_t index, std::int64_t size);
/// Fails unless `part` has the rank of input 0 and is no larger but for `axis`.
void require_inside(const NodeInfo& info, const Shape& part, int axis);

/// scatter_elements and scatter_nd: part of register_gather_ops.
void register_scatter_ops(OpRegistry& ops);

}  // namespace turnout
