#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/report/compare.hpp"
#include "runtime/report/units.hpp"

namespace turnout {
namespace {

std::string row_text(const CompareRow& row, bool wins) {
  if (!row.skipped.empty()) {
    return fmt::format("  {:>6}  {:<20} skipped: {}\n", row.batch, row.device, row.skipped);
  }
  const double share =
      row.latency_seconds > 0 ? 100 * std::min(1.0, row.transfer_seconds / row.latency_seconds) : 0;
  std::string check = row.executed ? "" : "not executed";
  if (row.difference >= 0) check = fmt::format("{:.1e}", row.difference);
  return fmt::format("  {:>6}  {:<20} {:>10} {:>10} {:>8.1f} % {:>11}  {:<10} {:<13} {}{}\n",
                     row.batch, row.device, format_seconds(row.latency_seconds),
                     format_count(static_cast<double>(row.batch) / row.latency_seconds), share,
                     format_bytes(static_cast<double>(row.memory_bytes)), to_string(row.evidence),
                     check, row.nodes, wins ? "  <- fastest" : "");
}

std::string crossover_text(const Crossover& crossover) {
  if (crossover.low == crossover.high) {
    return fmt::format("  {} from batch {} (the smallest tried; against {})\n", crossover.to,
                       crossover.batch, crossover.from);
  }
  return fmt::format("  {} from batch {} (between {} and {}; against {})\n", crossover.to,
                     crossover.batch, crossover.low, crossover.high, crossover.from);
}

}  // namespace

std::vector<PredictionError> prediction_errors(const Comparison& comparison) {
  std::vector<PredictionError> errors;
  for (const CompareRow& row : comparison.rows) {
    const bool both = row.evidence == Evidence::measured && row.predicted_seconds > 0 &&
                      row.latency_seconds > 0 && row.predicted_evidence != Evidence::measured;
    if (!both) continue;
    auto at = std::find_if(errors.begin(), errors.end(), [&](const PredictionError& e) {
      return e.device == row.device && e.evidence == row.predicted_evidence;
    });
    if (at == errors.end()) {
      errors.push_back({row.device, row.predicted_evidence});
      at = std::prev(errors.end());
    }
    const double error = std::abs(row.predicted_seconds / row.latency_seconds - 1);
    at->mean = (at->mean * at->rows + error) / (at->rows + 1);
    at->worst = std::max(at->worst, error);
    ++at->rows;
  }
  return errors;
}

std::string to_text(const Comparison& comparison) {
  std::string text =
      fmt::format("{}\n  {:>6}  {:<20} {:>10} {:>10} {:>10} {:>11}  {:<10} {:<13} {}\n",
                  comparison.model, "batch", "device", "latency", "per s", "transfer", "memory",
                  "evidence", "difference", "nodes");
  std::int64_t last = -1;
  std::set<std::string> devices;
  for (const CompareRow& row : comparison.rows) {
    if (last >= 0 && row.batch != last) text += "\n";
    last = row.batch;
    text += row_text(row, comparison.winner(row.batch) == &row);
    const std::string_view base = base_device(row.device);
    if (base != "auto" && !base.starts_with("cpu")) devices.insert(row.device);
  }
  text += "\ncrossover\n";
  for (const Crossover& crossover : comparison.crossovers) {
    text += crossover_text(crossover);
    devices.erase(crossover.to);
  }
  for (const std::string& device : devices) {
    text += fmt::format("  {}: never in the batches tried\n", device);
  }
  const std::vector<PredictionError> errors = prediction_errors(comparison);
  if (!errors.empty()) text += "\npredicted before it was measured\n";
  for (const PredictionError& e : errors) {
    text += fmt::format("  {} ({}): off by {:.0f} % on average, {:.0f} % at most, over {} rows\n",
                        e.device, to_string(e.evidence), e.mean * 100, e.worst * 100, e.rows);
  }
  if (comparison.machines.size() > 1) text += "\nmachines\n";
  for (std::size_t m = 0; m < comparison.machines.size() && comparison.machines.size() > 1; ++m) {
    text += fmt::format("  {}: {}\n", static_cast<char>('A' + m), describe(comparison.machines[m]));
  }
  for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
  text +=
      comparison.outputs_agree ? "outputs of all executed devices agree\n" : "OUTPUTS DISAGREE\n";
  return text;
}

std::string to_json(const Comparison& comparison) {
  using Json = nlohmann::ordered_json;
  Json json;
  const auto machine = [](const Machine& m) {
    return Json{{"cpu", m.cpu},         {"cores", m.cores}, {"system", m.system},
                {"version", m.version}, {"build", m.build}, {"providers", m.providers}};
  };
  json["format"] = kCompareFormat;
  json["model"] = comparison.model;
  json["model_digest"] = comparison.model_digest;
  json["input_digest"] = comparison.input_digest;
  if (comparison.machines.size() == 1) json["machine"] = machine(comparison.machines[0]);
  for (std::size_t m = 0; m < comparison.machines.size() && comparison.machines.size() > 1; ++m) {
    Json entry = {{"host", std::string(1, static_cast<char>('A' + m))}};
    entry.update(machine(comparison.machines[m]));
    json["machines"].push_back(std::move(entry));
  }
  json["rows"] = Json::array();
  for (const CompareRow& row : comparison.rows) {
    Json entry = {{"device", row.device}, {"batch", row.batch}};
    if (!row.host.empty()) {
      entry["host"] = row.host;
      entry["host_device"] = base_device(row.device);
    }
    if (!row.skipped.empty()) {
      entry["skipped"] = row.skipped;
      json["rows"].push_back(entry);
      continue;
    }
    entry["latency_s"] = row.latency_seconds;
    entry["throughput_per_s"] = static_cast<double>(row.batch) / row.latency_seconds;
    entry["transfer_s"] = row.transfer_seconds;
    entry["memory_bytes"] = row.memory_bytes;
    entry["evidence"] = to_string(row.evidence);
    if (row.predicted_seconds > 0) {
      entry["predicted_s"] = row.predicted_seconds;
      entry["predicted_evidence"] = to_string(row.predicted_evidence);
    }
    entry["executed"] = row.executed;
    entry["runs"] = row.runs;
    entry["spread"] = row.spread;
    if (row.difference >= 0) {
      entry["difference"] = std::isfinite(row.difference) ? Json(row.difference) : Json();
    }
    entry["nodes"] = row.nodes;
    for (const CompareRow::NodeTime& node : row.node_times) {
      entry["node_times"].push_back({{"name", node.name},
                                     {"op", node.op},
                                     {"device", node.device},
                                     {"provider", node.provider},
                                     {"seconds", node.seconds},
                                     {"evidence", to_string(node.evidence)}});
    }
    json["rows"].push_back(std::move(entry));
  }
  json["crossovers"] = Json::array();
  for (const Crossover& crossover : comparison.crossovers) {
    json["crossovers"].push_back({{"from", crossover.from},
                                  {"to", crossover.to},
                                  {"batch", crossover.batch},
                                  {"low", crossover.low},
                                  {"high", crossover.high}});
  }
  for (const PredictionError& e : prediction_errors(comparison)) {
    json["prediction_errors"].push_back({{"device", e.device},
                                         {"evidence", to_string(e.evidence)},
                                         {"mean", e.mean},
                                         {"worst", e.worst},
                                         {"rows", e.rows}});
  }
  json["outputs_agree"] = comparison.outputs_agree;
  json["notes"] = comparison.notes;
  // Names of a hostile model needn't be UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace turnout
