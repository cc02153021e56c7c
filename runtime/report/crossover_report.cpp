#include "runtime/report/crossover_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/plan/evidence_error.hpp"
#include "runtime/report/units.hpp"

namespace turnout {
namespace {

using Json = nlohmann::ordered_json;

std::string timed(double seconds, Evidence evidence) {
  return fmt::format("{} ({})", format_seconds(seconds), to_string(evidence));
}

std::string moved_text(const std::vector<std::string>& moved) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(moved.size(), kShown); ++i) {
    text += fmt::format("      {}\n", moved[i]);
  }
  if (moved.size() > kShown) {
    text += fmt::format("      and {} more (all in --json)\n", moved.size() - kShown);
  }
  return text;
}

std::string curve_text(const CrossoverCurve& curve) {
  std::string text;
  for (std::size_t i = 0; i < curve.intervals.size(); ++i) {
    const CrossoverInterval& interval = curve.intervals[i];
    text += fmt::format("  batch {:>5}..{:<5} {:<40} {} .. {}\n", interval.first, interval.last,
                        interval.choice, timed(interval.first_seconds, interval.first_evidence),
                        timed(interval.last_seconds, interval.last_evidence));
    if (i >= curve.crossings.size()) continue;
    const Crossing& crossing = curve.crossings[i];
    text += fmt::format("    crossing at {}, within the errors {}; there {} against {}, +-{}\n",
                        crossing.batch, range_text(crossing.range),
                        timed(crossing.seconds_before, crossing.evidence_before),
                        timed(crossing.seconds_after, crossing.evidence_after),
                        format_seconds(crossing.error_seconds));
    text += moved_text(crossing.moved);
  }
  return text;
}

std::string curves_text(const CrossoverReport& report) {
  std::string text = fmt::format("\ncurves\n  {:>6}", "batch");
  for (const std::string& device : report.devices) text += fmt::format("  {:<24}", device);
  text += "  automatic plan\n";
  for (const CurvePoint& point : report.curves) {
    text += fmt::format("  {:>6}", point.batch);
    for (const BatchCosts::Alone& alone : point.alone) {
      text += fmt::format("  {:<24}", alone.refusal.empty() ? timed(alone.seconds, alone.evidence)
                                                            : "can't run it");
    }
    text += "  " + timed(point.plan_seconds, point.plan_evidence) + "\n";
  }
  return text;
}

std::string flip_text(const FlipBatch& flip) {
  if (flip.batch == 0) return flip.single ? "never" : "not to the end";
  return fmt::format("{}{}", flip.batch, flip.always ? " (all)" : flip.single ? "" : " *");
}

std::string ops_text(const std::vector<OpFlip>& ops) {
  std::string text = fmt::format(
      "\neach op alone: from which batch on it is faster on the device\n"
      "  {:<36} {:<22} {:<20} {:>14} {:>14}  {}\n",
      "node", "op", "device", "kernel", "with copies", "evidence");
  bool unclear = false;
  for (const OpFlip& op : ops) {
    if (!op.refusal.empty()) {
      text += fmt::format("  {:<36} {:<22} {:<20} {}\n", op.node, op.op, op.device, op.refusal);
      continue;
    }
    unclear = unclear || (op.kernel.batch > 0 && !op.kernel.single) ||
              (op.with_transfers.batch > 0 && !op.with_transfers.single);
    text += fmt::format("  {:<36} {:<22} {:<20} {:>14} {:>14}  {} against {}\n", op.node, op.op,
                        op.device, flip_text(op.kernel), flip_text(op.with_transfers),
                        to_string(op.device_evidence), to_string(op.home_evidence));
  }
  if (unclear) text += "  * for good; it is faster at some smaller batches as well\n";
  return text;
}

std::string break_even_text(const BreakEven& even, const std::vector<double>& weights) {
  std::string text;
  if (even.cpu_flops_per_s.known() && even.link_bytes_per_s.known()) {
    text += fmt::format(
        "  weights copied to {} at every run: it wins a product from about B* = s Fc / (2 Bw) rows:"
        " f32 {:.0f}, f16 {:.0f}, i8 {:.0f}, i4 {:.0f}\n"
        "    Fc {:.3g} GFLOP/s of the CPU ({}, {}), Bw {:.3g} GB/s of the link ({})\n",
        even.device, even.rows(4), even.rows(2), even.rows(1), even.rows(0.5),
        even.cpu_flops_per_s.value / 1e9, to_string(even.cpu_flops_per_s.evidence),
        even.cpu_flops_per_s.source, even.link_bytes_per_s.value / 1e9,
        to_string(even.link_bytes_per_s.evidence));
  }
  if (!even.cpu_bytes_per_s.known()) return text;
  const auto below = std::count_if(weights.begin(), weights.end(),
                                   [&](double bytes) { return bytes < even.weight_bytes(); });
  text += fmt::format(
      "  batch 1 against {}: the CPU wins an op with less than {} of weights ({} of {} ops here)\n"
      "    weight bytes / {:.3g} GB/s of the CPU ({}) < launch {} ({}) + 2 latencies of {} ({}) + "
      "synchronization {} ({})\n",
      even.device, format_bytes(even.weight_bytes()), below, weights.size(),
      even.cpu_bytes_per_s.value / 1e9, to_string(even.cpu_bytes_per_s.evidence),
      format_seconds(even.launch_seconds.value), to_string(even.launch_seconds.evidence),
      format_seconds(even.latency_seconds.value), to_string(even.latency_seconds.evidence),
      format_seconds(even.synchronize_seconds.value), to_string(even.synchronize_seconds.evidence));
  return text;
}

Json to_json(const CrossoverCurve& curve) {
  Json json = {{"intervals", Json::array()}, {"crossings", Json::array()}};
  for (const CrossoverInterval& interval : curve.intervals) {
    json["intervals"].push_back({{"first", interval.first},
                                 {"last", interval.last},
                                 {"choice", interval.choice},
                                 {"first_s", interval.first_seconds},
                                 {"first_evidence", to_string(interval.first_evidence)},
                                 {"last_s", interval.last_seconds},
                                 {"last_evidence", to_string(interval.last_evidence)}});
  }
  for (const Crossing& crossing : curve.crossings) {
    json["crossings"].push_back({{"batch", crossing.batch},
                                 {"low", crossing.range.low},
                                 {"high", crossing.range.high},
                                 {"open_low", crossing.range.open_low},
                                 {"open_high", crossing.range.open_high},
                                 {"before_s", crossing.seconds_before},
                                 {"before_evidence", to_string(crossing.evidence_before)},
                                 {"after_s", crossing.seconds_after},
                                 {"after_evidence", to_string(crossing.evidence_after)},
                                 {"error_s", crossing.error_seconds},
                                 {"moved", crossing.moved}});
  }
  return json;
}

Json to_json(const CurvePoint& point, const std::vector<std::string>& devices) {
  Json json = {{"batch", point.batch},
               {"plan_s", point.plan_seconds},
               {"plan_evidence", to_string(point.plan_evidence)}};
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const BatchCosts::Alone& alone = point.alone[d];
    if (!alone.refusal.empty()) {
      json["alone"].push_back({{"device", devices[d]}, {"refusal", alone.refusal}});
      continue;
    }
    json["alone"].push_back({{"device", devices[d]},
                             {"seconds", alone.seconds},
                             {"relative_error", alone.error},
                             {"evidence", to_string(alone.evidence)}});
  }
  return json;
}

Json to_json(const FlipBatch& flip) {
  return {{"batch", flip.batch > 0 ? Json(flip.batch) : Json()},
          {"always", flip.always},
          {"single", flip.single}};
}

Json to_json(const Figure& figure) {
  return {
      {"value", figure.value}, {"evidence", to_string(figure.evidence)}, {"source", figure.source}};
}

Json to_json(const BreakEven& even) {
  Json json = {{"device", even.device},
               {"cpu_flops_per_s", to_json(even.cpu_flops_per_s)},
               {"cpu_bytes_per_s", to_json(even.cpu_bytes_per_s)},
               {"link_bytes_per_s", to_json(even.link_bytes_per_s)},
               {"launch_s", to_json(even.launch_seconds)},
               {"latency_s", to_json(even.latency_seconds)},
               {"synchronize_s", to_json(even.synchronize_seconds)}};
  if (even.link_bytes_per_s.value > 0) {
    json["rows"] = {
        {"f32", even.rows(4)}, {"f16", even.rows(2)}, {"i8", even.rows(1)}, {"i4", even.rows(0.5)}};
  }
  json["cpu_wins_below_weight_bytes"] = even.weight_bytes();
  return json;
}

CurvePoint point_of(const BatchCosts& costs) {
  CurvePoint point{costs.batch, costs.alone, costs.plan_seconds, costs.evidence};
  if (!costs.host_computes) point.alone.erase(point.alone.begin());
  return point;
}

}  // namespace

std::string range_text(const UncertainRange& range) {
  return fmt::format("{}{}..{}{}", range.open_low ? "<= " : "", range.low, range.high,
                     range.open_high ? " or beyond" : "");
}

CrossoverReport find_crossover(System& system, BatchSweep& sweep, const CostModel& costs,
                               std::int64_t first, std::int64_t last, bool per_op) {
  const CostsAt costs_at = [&](std::int64_t batch) -> const BatchCosts& { return sweep.at(batch); };
  CrossoverReport report;
  report.model = sweep.model().name();
  report.first = first;
  report.last = last;
  report.single = fastest_device(costs_at, first, last);
  report.plan = automatic_plan(costs_at, first, last);
  std::int64_t power = 1;
  for (std::int64_t batch = first; batch < last; batch = power) {
    report.curves.push_back(point_of(costs_at(batch)));
    while (power <= batch) power *= 2;
  }
  report.curves.push_back(point_of(costs_at(last)));
  if (per_op) report.ops = op_flips(costs_at, first, last);
  const BatchCosts& start = sweep.at(first);
  for (std::size_t d = 0; d < start.devices.size(); ++d) {
    if (d == 0 && !start.host_computes) continue;
    report.devices.push_back(start.devices[d]);
    if (d == 0) continue;
    const DeviceSlot slot = system.open(start.devices[d]);
    report.break_evens.push_back(break_even(costs.cpu(), slot.info(), slot.label));
  }
  for (const BatchCosts::NodeCost& node : start.nodes) {
    if (!node.view && node.weight_bytes > 0) report.weight_bytes.push_back(node.weight_bytes);
  }
  report.planned = sweep.planned();
  return report;
}

std::string to_text(const CrossoverReport& report) {
  std::string text = fmt::format(
      "crossover of '{}', batch {} to {}, on {}\n  {} batches planned; errors assumed: {}\n",
      report.model, report.first, report.last, fmt::join(report.devices, ", "), report.planned,
      relative_errors_text());
  text += "\nfastest single device\n" + curve_text(report.single);
  text += "\nautomatic plan (nodes with a kernel)\n" + curve_text(report.plan);
  text += curves_text(report);
  if (!report.ops.empty()) text += ops_text(report.ops);
  if (!report.break_evens.empty()) text += "\nbreak-evens\n";
  for (const BreakEven& even : report.break_evens) {
    text += break_even_text(even, report.weight_bytes);
  }
  return text;
}

std::string to_json(const CrossoverReport& report) {
  Json json = {{"model", report.model},
               {"first", report.first},
               {"last", report.last},
               {"devices", report.devices},
               {"planned", report.planned}};
  for (const Evidence evidence :
       {Evidence::measured, Evidence::calibrated, Evidence::predicted, Evidence::fallback}) {
    json["relative_errors"][std::string(to_string(evidence))] = relative_error(evidence);
  }
  json["single"] = to_json(report.single);
  json["plan"] = to_json(report.plan);
  json["curves"] = Json::array();
  for (const CurvePoint& point : report.curves) {
    json["curves"].push_back(to_json(point, report.devices));
  }
  json["ops"] = Json::array();
  for (const OpFlip& op : report.ops) {
    Json entry = {{"node", op.node}, {"op", op.op}, {"home", op.home}, {"device", op.device}};
    if (!op.refusal.empty()) {
      entry["refusal"] = op.refusal;
    } else {
      entry["kernel"] = to_json(op.kernel);
      entry["with_transfers"] = to_json(op.with_transfers);
      entry["home_evidence"] = to_string(op.home_evidence);
      entry["device_evidence"] = to_string(op.device_evidence);
    }
    json["ops"].push_back(std::move(entry));
  }
  json["break_evens"] = Json::array();
  for (const BreakEven& even : report.break_evens) json["break_evens"].push_back(to_json(even));
  // Names of a hostile model needn't be UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace turnout
