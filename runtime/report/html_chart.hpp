#pragma once

#include <string>

#include "runtime/report/html_parts.hpp"

namespace turnout {

/// <svg> of latency against batch, both logarithmic; "" if no row has a latency.
std::string latency_chart(const Comparison& comparison, const DeviceStyles& styles);

}  // namespace turnout
