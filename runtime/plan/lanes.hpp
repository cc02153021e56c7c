#pragma once

#include <span>
#include <vector>

namespace turnout {

/// Simulated time of a plan whose copies and kernels overlap.
///
/// A lane is an in-order queue that does one step at a time: the CPU, and per device its compute,
/// its uploads (h2d) and its downloads (d2h). A step starts when the step issued before it in its
/// lane and all steps it waits for have finished:
///   start(i)  = max(finish(previous step in lane(i)), max of finish(j) for j in after(i))
///   finish(i) = start(i) + seconds(i)
///   makespan  = max finish
/// Example: lanes 0 = CPU, 1 = upload, 2 = GPU. Steps: CPU 2 s; upload 3 s after it; CPU 4 s; GPU 1
/// s after the upload. Finish: 2, 5, 6, 6. Makespan 6 s, while the serial sum is 10 s.
///
/// Two bounds no order of issue gets below, on the same steps and lanes:
///   busiest lane   max over lanes of the sum of its seconds (here CPU: 6)
///   critical path  longest chain of waits, lanes left out   (here 2 + 3 + 1 = 6)
struct LaneStep {
  int lane = 0;
  double seconds = 0.0;    ///< finite, >= 0
  std::vector<int> after;  ///< indices of earlier steps
};

struct LaneSchedule {
  std::vector<double> start_seconds;   ///< per step
  std::vector<double> finish_seconds;  ///< per step
  /// Per step, the step whose finish its start waited for longest; -1: it started at 0. Followed
  /// back from `last_step` they explain the makespan.
  std::vector<int> held_by;
  std::vector<double> busy_seconds;  ///< per lane
  int last_step = -1;                ///< the first step to finish at the makespan; -1: no steps
  double makespan_seconds = 0.0;
  double critical_path_seconds = 0.0;
  double lower_bound_seconds = 0.0;  ///< the larger of the two bounds, never above the makespan
};

/// Simulates steps in issue order. `lane_count`: at least that many lanes in `busy_seconds`. Pure;
/// O(steps + waits). Throws std::invalid_argument, naming the step, for a negative lane, a lane
/// above 65535, a bad time, or a wait for a step that isn't earlier.
LaneSchedule simulate_lanes(std::span<const LaneStep> steps, int lane_count = 0);

}  // namespace turnout
