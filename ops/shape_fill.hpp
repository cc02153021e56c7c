#pragma once

#include "core/op.hpp"

namespace turnout {

/// expand, constant_of_shape, range and eye_like: part of register_shape_ops.
void register_fill_ops(OpRegistry& ops);

}  // namespace turnout
