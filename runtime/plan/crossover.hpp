#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/plan/batch_costs.hpp"
#include "runtime/plan/intervals.hpp"

namespace turnout {

/// "From which batch on does which device win on this model?", from costs alone: all functions here
/// are pure and deterministic given what `CostsAt` returns.
using CostsAt = std::function<const BatchCosts&(std::int64_t batch)>;

/// A stretch of batches in which one thing is chosen, with the times at its two ends.
struct CrossoverInterval {
  std::int64_t first = 0, last = 0;
  std::string choice;  ///< a device, or what the plan does
  double first_seconds = 0, last_seconds = 0;
  Evidence first_evidence = Evidence::unprobed, last_evidence = Evidence::unprobed;
};

/// Between interval i and i + 1. It happens at `batch`; within the errors of the times it could be
/// anywhere in [range.low, range.high].
struct Crossing {
  std::int64_t batch = 0;  ///< first batch of the later interval
  UncertainRange range;
  std::vector<std::string> moved;  ///< plans: "node: cpu -> gpu"; "new -> gpu" if it wasn't there
  double seconds_before = 0;       ///< of the earlier choice, at `batch`
  double seconds_after = 0;        ///< of the later one, at `batch`
  Evidence evidence_before = Evidence::unprobed, evidence_after = Evidence::unprobed;
  double error_seconds = 0;  ///< how far their difference may be off
};

struct CrossoverCurve {
  std::vector<CrossoverInterval> intervals;
  std::vector<Crossing> crossings;  ///< one fewer
};

/// The fastest single device at each batch. Two devices count as undecided at a batch where their
/// times differ by less than both errors together. Error unsupported if no device can run the
/// whole model at some batch.
CrossoverCurve fastest_device(const CostsAt& costs, std::int64_t first, std::int64_t last);

/// The automatic plan: cut where a node changes its device. Two plans count as undecided at a batch
/// where their sums differ by less than the errors of the parts they don't share.
CrossoverCurve automatic_plan(const CostsAt& costs, std::int64_t first, std::int64_t last);

}  // namespace turnout
