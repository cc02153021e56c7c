// The axis is cut twice: by the fastest single device, and by the automatic plan's placement.
// A crossing is exact for the times as they are; its uncertainty comes from their evidence
// (evidence_error.hpp). Example: a CPU takes 1 us a row (calibrated, 50 %), a GPU 50 us whatever
// the batch (predicted, 30 %). They cross at 51; |b - 50| <= 0.5 b + 15 holds from 24 to 130, so
// the crossing is somewhere in 24..131.
#include "runtime/plan/crossover.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/plan/evidence_error.hpp"

namespace turnout {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

int fastest(const BatchCosts& costs) {
  int best = -1;
  std::string refusals;
  for (int d = 0; d < static_cast<int>(costs.alone.size()); ++d) {
    const BatchCosts::Alone& alone = costs.alone[at(d)];
    if (!alone.refusal.empty()) {
      refusals += fmt::format("\n  {}: {}", costs.devices[at(d)], alone.refusal);
    } else if (best < 0 || alone.seconds < costs.alone[at(best)].seconds) {
      best = d;
    }
  }
  if (best < 0) {
    fail(ErrorCode::unsupported, "no device runs the whole model at batch {}:{}", costs.batch,
         refusals);
  }
  return best;
}

int device_index(const BatchCosts& costs, const std::string& label) {
  const auto found = std::find(costs.devices.begin(), costs.devices.end(), label);
  return static_cast<int>(found - costs.devices.begin());
}

// How far the difference of two devices may be off at a batch; negative: one of them can't run.
double pair_error(const BatchCosts& costs, int a, int b) {
  const BatchCosts::Alone& x = costs.alone[at(a)];
  const BatchCosts::Alone& y = costs.alone[at(b)];
  if (!x.refusal.empty() || !y.refusal.empty()) return -1;
  return x.seconds * x.error + y.seconds * y.error;
}

// A placement by node name, so that it can be priced at another batch.
using Places = std::map<std::string, std::string>;

Places places_of(const BatchCosts& costs) {
  Places places;
  for (std::size_t n = 0; n < costs.nodes.size(); ++n) {
    places[costs.nodes[n].name] = costs.devices[at(costs.placement[n])];
  }
  return places;
}

// Nodes that `places` doesn't know (another batch may fold or fuse differently) stay where the plan
// of this batch has them.
std::vector<int> placement_at(const BatchCosts& costs, const Places& places) {
  std::vector<int> placement = costs.placement;
  for (std::size_t n = 0; n < costs.nodes.size(); ++n) {
    const auto place = places.find(costs.nodes[n].name);
    if (place != places.end()) placement[n] = device_index(costs, place->second);
  }
  return placement;
}

struct PlanDifference {
  double before = 0, after = 0;  ///< sums
  double error = 0;              ///< of before - after
  Evidence evidence_before = Evidence::unprobed, evidence_after = Evidence::unprobed;
};

// Parts that both plans have are equally wrong in both.
PlanDifference difference_at(const BatchCosts& costs, const Places& before, const Places& after) {
  const auto parts_before = cost_parts(costs, placement_at(costs, before));
  const auto parts_after = cost_parts(costs, placement_at(costs, after));
  PlanDifference result{sum_of(parts_before), sum_of(parts_after), 0, evidence_of(parts_before),
                        evidence_of(parts_after)};
  for (const auto& [name, part] : parts_before) {
    if (parts_after.count(name) == 0) result.error += part.seconds * relative_error(part.evidence);
  }
  for (const auto& [name, part] : parts_after) {
    if (parts_before.count(name) == 0) result.error += part.seconds * relative_error(part.evidence);
  }
  return result;
}

// Devices of nodes with a kernel; views follow their inputs.
std::string plan_key(const BatchCosts& costs) {
  std::string key;
  for (std::size_t n = 0; n < costs.nodes.size(); ++n) {
    if (costs.nodes[n].view) continue;
    key += costs.nodes[n].name + '\t' + costs.devices[at(costs.placement[n])] + '\n';
  }
  return key;
}

// "3 nodes on cpu, 55 on virtual:v100": what holds over a whole interval.
std::string plan_choice(const BatchCosts& costs) {
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < costs.devices.size(); ++d) {
    int count = 0;
    for (std::size_t n = 0; n < costs.nodes.size(); ++n) {
      if (!costs.nodes[n].view && at(costs.placement[n]) == d) ++count;
    }
    if (count > 0) parts.push_back(fmt::format("{} on {}", count, costs.devices[d]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> moved_nodes(const BatchCosts& before, const BatchCosts& after) {
  const Places places = places_of(before);
  std::vector<std::string> moved;
  for (std::size_t n = 0; n < after.nodes.size(); ++n) {
    if (after.nodes[n].view) continue;
    const std::string& now = after.devices[at(after.placement[n])];
    const auto was = places.find(after.nodes[n].name);
    if (was == places.end()) {
      moved.push_back(fmt::format("{}: new -> {}", after.nodes[n].name, now));
    } else if (was->second != now) {
      moved.push_back(fmt::format("{}: {} -> {}", after.nodes[n].name, was->second, now));
    }
  }
  return moved;
}

}  // namespace

CrossoverCurve fastest_device(const CostsAt& costs, std::int64_t first, std::int64_t last) {
  CrossoverCurve curve;
  const auto intervals = constant_intervals(first, last, [&](std::int64_t batch) {
    const BatchCosts& here = costs(batch);
    return here.devices[at(fastest(here))];
  });
  for (const BatchInterval& interval : intervals) {
    const int device = device_index(costs(interval.first), interval.key);
    const BatchCosts::Alone& begin = costs(interval.first).alone[at(device)];
    const BatchCosts::Alone& end = costs(interval.last).alone[at(device)];
    curve.intervals.push_back({interval.first, interval.last, interval.key, begin.seconds,
                               end.seconds, begin.evidence, end.evidence});
  }
  for (std::size_t i = 0; i + 1 < intervals.size(); ++i) {
    Crossing crossing;
    crossing.batch = intervals[i + 1].first;
    const BatchCosts& here = costs(crossing.batch);
    const int a = device_index(here, intervals[i].key);
    const int b = device_index(here, intervals[i + 1].key);
    crossing.range = uncertain_range(first, last, crossing.batch, [&](std::int64_t batch) {
      const BatchCosts& there = costs(batch);
      const double error = pair_error(there, a, b);
      return error >= 0 &&
             std::abs(there.alone[at(a)].seconds - there.alone[at(b)].seconds) <= error;
    });
    crossing.seconds_before = here.alone[at(a)].seconds;
    crossing.seconds_after = here.alone[at(b)].seconds;
    crossing.evidence_before = here.alone[at(a)].evidence;
    crossing.evidence_after = here.alone[at(b)].evidence;
    crossing.error_seconds = std::max(0.0, pair_error(here, a, b));
    curve.crossings.push_back(std::move(crossing));
  }
  return curve;
}

CrossoverCurve automatic_plan(const CostsAt& costs, std::int64_t first, std::int64_t last) {
  CrossoverCurve curve;
  const auto intervals =
      constant_intervals(first, last, [&](std::int64_t batch) { return plan_key(costs(batch)); });
  for (const BatchInterval& interval : intervals) {
    const BatchCosts& begin = costs(interval.first);
    const BatchCosts& end = costs(interval.last);
    curve.intervals.push_back({interval.first, interval.last, plan_choice(begin),
                               begin.plan_seconds, end.plan_seconds, begin.evidence, end.evidence});
  }
  for (std::size_t i = 0; i + 1 < intervals.size(); ++i) {
    Crossing crossing;
    crossing.batch = intervals[i + 1].first;
    const Places before = places_of(costs(intervals[i].last));
    const Places after = places_of(costs(crossing.batch));
    crossing.range = uncertain_range(first, last, crossing.batch, [&](std::int64_t batch) {
      const PlanDifference difference = difference_at(costs(batch), before, after);
      // No error: only nodes that come or go tell the plans apart, and the batch is exact.
      return difference.error > 0 &&
             std::abs(difference.before - difference.after) <= difference.error;
    });
    const PlanDifference here = difference_at(costs(crossing.batch), before, after);
    crossing.seconds_before = here.before;
    crossing.seconds_after = here.after;
    crossing.error_seconds = here.error;
    crossing.evidence_before = here.evidence_before;
    crossing.evidence_after = here.evidence_after;
    crossing.moved = moved_nodes(costs(intervals[i].last), costs(crossing.batch));
    curve.crossings.push_back(std::move(crossing));
  }
  return curve;
}

}  // namespace turnout
