#include "runtime/plan/placement.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "runtime/plan/placement_index.hpp"
#include "runtime/plan/placement_memory.hpp"
#include "runtime/plan/placement_search.hpp"

namespace turnout {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kMostPlacements = 16777216.0;

PlacementIndex index_for(const PlacementProblem& problem, const std::vector<int>& assignment) {
  PlacementIndex index(problem);
  if (assignment.size() != problem.nodes.size()) {
    throw std::invalid_argument("[place] assignment of " + std::to_string(assignment.size()) +
                                " nodes for " + std::to_string(problem.nodes.size()));
  }
  for (std::size_t n = 0; n < assignment.size(); ++n) {
    if (assignment[n] >= 0 && assignment[n] < index.device_count) continue;
    throw std::invalid_argument("[place] node '" + problem.nodes[n].name +
                                "' is assigned to device " + std::to_string(assignment[n]) +
                                " of " + std::to_string(index.device_count));
  }
  return index;
}

void set_result(const PlacementIndex& index, const PlacementCandidate& found, double lower_bound,
                Placement& placement) {
  placement.devices = found.devices;
  placement.seconds = found.seconds;
  placement.lower_bound = std::min(lower_bound, found.seconds);
  const double gap = found.seconds - placement.lower_bound;
  placement.gap = gap > 0.0 ? gap / found.seconds : 0.0;
  placement.peak_bytes = index.peak_bytes(found.devices);
}

}  // namespace

double evaluate(const PlacementProblem& problem, const std::vector<int>& assignment) {
  return index_for(problem, assignment).serial_seconds(assignment);
}

std::vector<double> peak_bytes(const PlacementProblem& problem,
                               const std::vector<int>& assignment) {
  return index_for(problem, assignment).peak_bytes(assignment);
}

Placement place(const PlacementProblem& problem, const PlacementOptions& options) {
  const PlacementIndex index(problem);
  Placement placement;
  PlacementCandidate found = place_unlimited(index, options.max_rounds);
  double lower_bound = found.seconds;
  placement.method = index.device_count == 1 ? "one device" : "minimum cut";
  if (index.device_count > 2) {
    lower_bound = place_pair(merge_devices(index)).seconds;
    placement.method = "best pair, expansion moves";
  }
  if (options.check_memory && !index.fits(found.devices)) {
    lower_bound = memory_lower_bound(index, lower_bound);
    const LimitedPlacement limited = place_within_memory(index, found);
    found = limited.best;
    placement.feasible = limited.feasible;
    placement.method += ", memory multipliers";
  }
  set_result(index, found, lower_bound, placement);
  return placement;
}

std::vector<double> margins(const PlacementProblem& problem, const std::vector<int>& assignment) {
  const PlacementIndex index = index_for(problem, assignment);
  std::vector<int> devices = assignment;
  std::vector<double> result(assignment.size(), kInfinite);
  for (int n = 0; n < index.node_count; ++n) {
    const auto node = static_cast<std::size_t>(n);
    for (int d = 0; d < index.device_count; ++d) {
      if (d == assignment[node] || !index.can_run(n, d)) continue;
      result[node] = std::min(result[node], index.move_seconds(n, d, devices));
    }
  }
  return result;
}

Placement brute_force(const PlacementProblem& problem) {
  const PlacementIndex index(problem);
  double count = 1.0;
  for (int n = 0; n < index.node_count; ++n) count *= index.device_count;
  if (count > kMostPlacements) throw std::invalid_argument("[place] too many placements to try");
  const bool limited = std::any_of(index.limit_bytes.begin(), index.limit_bytes.end(),
                                   [](double limit) { return limit < kUnlimitedBytes; });
  Placement placement;
  placement.feasible = false;
  PlacementCandidate best;
  std::vector<int> devices(static_cast<std::size_t>(index.node_count), 0);
  for (double tried = 0.0; tried < count; ++tried) {
    const double seconds = index.serial_seconds(devices);
    if (seconds < kInfinite && (!placement.feasible || seconds < best.seconds) &&
        (!limited || index.fits(devices))) {
      best = {devices, seconds};
      placement.feasible = true;
    }
    for (int& device : devices) {
      device = (device + 1) % index.device_count;
      if (device != 0) break;
    }
  }
  if (!placement.feasible) best = {devices, index.serial_seconds(devices)};
  set_result(index, best, best.seconds, placement);
  placement.method = "brute force";
  return placement;
}

}  // namespace turnout
