#pragma once

#include <functional>
#include <span>

namespace turnout {

/// What repeated measurements of one time say.
struct Sample {
  double seconds = 0;  ///< median of those kept
  double best = 0;     ///< least of those kept
  double spread = 0;   ///< robust standard deviation of those kept, as a share of the median
  int count = 0;       ///< kept
  int rejected = 0;    ///< further from the median of all than both limits
  static constexpr double kOutlier = 4;          ///< spreads
  static constexpr double kLeastOutlier = 0.05;  ///< of the median
  /// Spreads above this are said: the machine had other work, or clocks moved.
  static constexpr double kNoisy = 0.2;
  bool noisy() const { return spread > kNoisy; }
};

/// Median and spread (1.4826 median absolute deviation, never below a millionth) of times > 0, with
/// outliers put aside. Zero counts for none.
Sample summarize(std::span<const double> seconds);

/// Repeats `measure` (one warm-up apart) until `budget_seconds` of wall time are used, at least 5
/// and at most 101 times; fewer only when one alone takes longer than the budget.
Sample sample(const std::function<double()>& measure, double budget_seconds);

/// Whether a gain is above the noise: more than max(5 %, two spreads) of the old time. `spread`:
/// relative.
bool worth_leaving(double old_seconds, double new_seconds, double spread);

}  // namespace turnout
