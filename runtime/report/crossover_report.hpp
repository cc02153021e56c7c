#pragma once

#include <string>
#include <vector>

#include "runtime/plan/break_even.hpp"
#include "runtime/plan/crossover.hpp"
#include "runtime/plan/op_flips.hpp"

namespace turnout {

/// The times behind the crossings at one batch.
struct CurvePoint {
  std::int64_t batch = 0;
  std::vector<BatchCosts::Alone> alone;  ///< per device of the report
  double plan_seconds = 0;
  Evidence plan_evidence = Evidence::unprobed;
};

/// What `turnout crossover` found, ready for text or JSON.
struct CrossoverReport {
  std::string model;
  std::int64_t first = 0, last = 0;
  std::vector<std::string> devices;
  CrossoverCurve single;           ///< one device for the whole model
  CrossoverCurve plan;             ///< the automatic plan
  std::vector<CurvePoint> curves;  ///< at the powers of two and both ends
  std::vector<OpFlip> ops;
  std::vector<BreakEven> break_evens;  ///< one a device that isn't the host
  std::vector<double> weight_bytes;    ///< of each node that has weights
  std::size_t planned = 0;             ///< batches that were planned
};

/// Both curves, with `per_op` also the ops, and the break-evens. The CPU's figures are taken from
/// `costs`; devices are opened through `system`.
CrossoverReport find_crossover(System& system, BatchSweep& sweep, const CostModel& costs,
                               std::int64_t first, std::int64_t last, bool per_op);

std::string to_text(const CrossoverReport& report);
std::string to_json(const CrossoverReport& report);

/// "20..77", with "up to" or "on" where it goes on beyond the axis.
std::string range_text(const UncertainRange& range);

}  // namespace turnout
