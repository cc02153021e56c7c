#pragma once

#include <string>

#include "runtime/report/compare.hpp"

namespace turnout {

/// One HTML file that needs nothing else: latency against batch, the time of each op, all rows.
/// Every name in it is escaped. The same comparison gives the same text.
std::string to_html(const Comparison& comparison);

}  // namespace turnout
