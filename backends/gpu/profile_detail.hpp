#pragma once

#include <string>
#include <string_view>

namespace turnout::profile_detail {

/// Text from outside, fit for a message: control and non-ASCII bytes escaped, long text cut.
std::string printable(std::string_view text);

/// Throws invalid_model: `[profile] WHERE: PROBLEM`.
[[noreturn]] void refuse_profile(std::string_view where, std::string_view problem);

}  // namespace turnout::profile_detail
