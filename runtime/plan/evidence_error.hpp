#pragma once

#include <string>

#include "core/device.hpp"

namespace turnout {

/// How far a time of this evidence may be from the truth, as a share of it. The one place for it:
/// crossings, plan changes and rankings all take their uncertainty from here.
///
///   measured    0.05  the noise below which no plan is changed
///   calibrated  0.50  whole models on the CPU against their times: 0.29 to 0.73, mean 0.54 in 8
///   cases,
///                     on a busy machine (4 models, batch 1 to 64); a quiet one was not tried yet
///   predicted   0.30  spec sheet alone: products on V100, P100 and MI25 (DeepBench) are off by
///   0.19
///                     to 0.30 in the mean by a plain roofline
///   default     1.00  nobody measured it: a factor of two
///
/// `mixed` and `spec` count as predicted, `unprobed` as default. Sums take it per part.
double relative_error(Evidence evidence);

/// "measured 5 %, calibrated 50 %, predicted 30 %, default 100 %".
std::string relative_errors_text();

}  // namespace turnout
