#include "runtime/cost/sampling.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace turnout {
namespace {

double median(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle),
                   values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper +
          *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) /
         2;
}

// Robust standard deviation, as a share of the middle.
double spread_about(std::span<const double> values, double middle) {
  constexpr double kNormal = 1.4826, kLeast = 1e-6;
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - middle));
  return std::max(kLeast, kNormal * median(std::move(deviations)) / middle);
}

}  // namespace

Sample summarize(std::span<const double> seconds) {
  if (seconds.empty()) return {};
  const double middle = median({seconds.begin(), seconds.end()});
  const double limit =
      std::max(Sample::kLeastOutlier, Sample::kOutlier * spread_about(seconds, middle)) * middle;
  std::vector<double> kept;
  for (const double value : seconds) {
    if (std::abs(value - middle) <= limit) kept.push_back(value);
  }
  Sample result;
  result.seconds = median(kept);
  result.best = *std::min_element(kept.begin(), kept.end());
  result.spread = spread_about(kept, result.seconds);
  result.count = static_cast<int>(kept.size());
  result.rejected = static_cast<int>(seconds.size() - kept.size());
  return result;
}

Sample sample(const std::function<double()>& measure, double budget_seconds) {
  constexpr std::size_t kLeast = 5, kMost = 101;
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const auto begin = Clock::now();
  measure();
  const bool slow = since(begin) > budget_seconds;
  std::vector<double> seconds;
  while (seconds.size() < kMost) {
    const bool enough = seconds.size() >= (slow ? 1 : kLeast);
    if (enough && since(begin) >= budget_seconds) break;
    seconds.push_back(std::max(1e-9, measure()));
  }
  return summarize(seconds);
}

bool worth_leaving(double old_seconds, double new_seconds, double spread) {
  constexpr double kLeastGain = 0.05;
  return old_seconds - new_seconds > std::max(kLeastGain, 2 * spread) * old_seconds;
}

}  // namespace turnout
