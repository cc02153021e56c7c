#pragma once

#include <string>

namespace turnout {

std::string format_seconds(double seconds);   ///< "8.31 ms"
std::string format_bytes(double bytes);       ///< "12.4 MiB"
std::string format_count(double per_second);  ///< "1,234"

}  // namespace turnout
