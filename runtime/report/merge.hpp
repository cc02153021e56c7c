#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/report/compare.hpp"

namespace turnout {

/// Reads what `turnout compare --json` wrote. Hostile input: every fault is one Error
/// invalid_argument that begins with `where`.
Comparison parse_comparison(std::string_view json, const std::string& where);

/// One comparison of several machines or builds. Machines get the letters A, B, ... in order; equal
/// machines share one. Rows are keyed by (machine, device): "cpu [A]". `names` are those of the
/// files, for errors. Error invalid_argument for other models or inputs, and for a row that is
/// there twice.
Comparison merge(std::span<const Comparison> comparisons, std::span<const std::string> names);

}  // namespace turnout
