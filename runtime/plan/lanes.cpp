#include "runtime/plan/lanes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace turnout {
namespace {

constexpr int kMaxLane = 65535;

void check(const LaneStep& step, std::size_t i) {
  const std::string label = "[lanes] step " + std::to_string(i);
  if (step.lane < 0 || step.lane > kMaxLane) {
    throw std::invalid_argument(label + " is in lane " + std::to_string(step.lane));
  }
  if (!(step.seconds >= 0.0) || std::isinf(step.seconds)) {
    throw std::invalid_argument(label + " has a negative or undefined time");
  }
  for (int j : step.after) {
    if (j >= 0 && static_cast<std::size_t>(j) < i) continue;
    throw std::invalid_argument(label + " waits for step " + std::to_string(j) +
                                ", which is not earlier");
  }
}

int lanes_needed(std::span<const LaneStep> steps, int at_least) {
  int lanes = std::max(at_least, 0);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    check(steps[i], i);
    lanes = std::max(lanes, steps[i].lane + 1);
  }
  return lanes;
}

}  // namespace

LaneSchedule simulate_lanes(std::span<const LaneStep> steps, int lane_count) {
  const auto lanes = static_cast<std::size_t>(lanes_needed(steps, lane_count));
  LaneSchedule schedule;
  schedule.busy_seconds.assign(lanes, 0.0);
  std::vector<int> last_in_lane(lanes, -1);
  std::vector<double> path(steps.size(), 0.0);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const LaneStep& step = steps[i];
    const auto lane = static_cast<std::size_t>(step.lane);
    double start = 0.0;
    int held_by = -1;
    const auto wait_for = [&](int j) {
      if (j < 0 || schedule.finish_seconds[static_cast<std::size_t>(j)] <= start) return;
      start = schedule.finish_seconds[static_cast<std::size_t>(j)];
      held_by = j;
    };
    wait_for(last_in_lane[lane]);
    for (int j : step.after) {
      wait_for(j);
      path[i] = std::max(path[i], path[static_cast<std::size_t>(j)]);
    }
    path[i] += step.seconds;
    schedule.start_seconds.push_back(start);
    schedule.finish_seconds.push_back(start + step.seconds);
    schedule.held_by.push_back(held_by);
    schedule.busy_seconds[lane] += step.seconds;
    last_in_lane[lane] = static_cast<int>(i);
    if (schedule.last_step < 0 || start + step.seconds > schedule.makespan_seconds) {
      schedule.makespan_seconds = start + step.seconds;
      schedule.last_step = static_cast<int>(i);
    }
    schedule.critical_path_seconds = std::max(schedule.critical_path_seconds, path[i]);
  }
  double bound = schedule.critical_path_seconds;
  for (double busy : schedule.busy_seconds) bound = std::max(bound, busy);
  schedule.lower_bound_seconds = std::min(bound, schedule.makespan_seconds);
  return schedule;
}

}  // namespace turnout
