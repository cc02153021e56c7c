#pragma once

#include "core/op.hpp"

namespace turnout {

/// Every op Turnout knows. Built at the first call, immutable, lives until the program ends.
const OpRegistry& all_ops();

}  // namespace turnout
