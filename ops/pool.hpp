#pragma once

#include "ops/window.hpp"

namespace turnout {

/// Window of max_pool, average_pool or lp_pool from its attributes. Errors name the node.
Window pool_window(const NodeInfo& info);

}  // namespace turnout
