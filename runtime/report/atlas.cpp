#include "runtime/report/atlas.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/plan/evidence_error.hpp"
#include "runtime/report/crossover_report.hpp"

namespace turnout {
namespace {

// Nodes keep the types that the model gives them, so this axis has one point.
constexpr const char* kDtypeNote =
    "dtype is not varied: there is no pass that changes a model's types yet; this one computes in ";

void fill_flips(BatchSweep& sweep, const AtlasAxes& axes, AtlasCell& cell) {
  const BatchCosts& start = sweep.at(axes.first);
  for (std::size_t d = 0; d < start.alone.size(); ++d) {
    if (start.alone[d].refusal.empty()) continue;
    cell.refusal = start.devices[d] + ": " + start.alone[d].refusal;
    return;
  }
  cell.cpu_evidence = start.alone[0].evidence;
  cell.device_evidence = start.alone[1].evidence;
  const auto wins = [&](std::int64_t batch) {
    const BatchCosts& costs = sweep.at(batch);
    if (!costs.alone[1].refusal.empty()) return false;
    return costs.alone[1].seconds < costs.alone[0].seconds;
  };
  cell.device_alone = flip_of(axes.first, axes.last, wins);
  if (cell.device_alone.batch > 0 && !cell.device_alone.always) {
    cell.range =
        uncertain_range(axes.first, axes.last, cell.device_alone.batch, [&](std::int64_t batch) {
          const auto& alone = sweep.at(batch).alone;
          if (!alone[1].refusal.empty()) return false;
          const double error =
              alone[0].seconds * alone[0].error + alone[1].seconds * alone[1].error;
          return std::abs(alone[0].seconds - alone[1].seconds) <= error;
        });
  }
  cell.plan = flip_of(axes.first, axes.last, [&](std::int64_t batch) {
    const BatchCosts& costs = sweep.at(batch);
    for (std::size_t n = 0; n < costs.nodes.size(); ++n) {
      if (!costs.nodes[n].view && costs.placement[n] == 1) return true;
    }
    return false;
  });
}

std::string dtypes_of(const Graph& model) {
  std::set<std::string> names;
  for (const Value& value : model.values()) {
    if (value.kind != ValueKind::input && value.kind != ValueKind::constant) continue;
    const bool counts = value.spec.dtype != DType::i64 && value.spec.dtype != DType::boolean;
    if (counts) names.insert(std::string(to_string(value.spec.dtype)));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string flip_text(const FlipBatch& flip, const AtlasAxes& axes) {
  if (flip.batch == 0) return fmt::format("not to {}", axes.last);
  return fmt::format("{}{}", flip.batch, flip.single ? "" : "*");
}

}  // namespace

Atlas make_atlas(System& system, const Graph& model, SessionOptions options,
                 const std::string& symbol, const std::vector<std::string>& devices,
                 const AtlasAxes& axes, const std::function<CostModel(int)>& costs_for) {
  Atlas atlas{model.name(), axes, dtypes_of(model), {}};
  for (const int threads : axes.threads) {
    const CostModel base = costs_for(threads);
    options.threads = threads;
    for (const std::string& device : devices) {
      const DeviceSlot slot = system.open(device);
      for (const bool streamed : axes.streamed) {
        for (const double factor : axes.link_factors) {
          AtlasCell cell{device, threads, streamed, factor, 0, {}, {}, {}, {}, {}, ""};
          cell.link_bytes_per_s = factor * slot.info().link.h2d_bytes_per_s.value;
          const CostModel costs = base.with({factor, 1});
          options.devices = {"cpu", device};
          options.weights = {streamed, 0};
          BatchSweep sweep(system, model, costs, options, symbol);
          fill_flips(sweep, axes, cell);
          atlas.cells.push_back(std::move(cell));
        }
      }
    }
  }
  return atlas;
}

std::string to_text(const Atlas& atlas) {
  std::string text = fmt::format(
      "atlas of '{}', batch {} to {}: from which batch on a device beats the CPU\n"
      "  errors assumed: {}\n\n  {:<22} {:>7} {:<9} {:>5} {:>10} {:>10} {:>22} {:>10}  {}\n",
      atlas.model, atlas.axes.first, atlas.axes.last, relative_errors_text(), "device", "threads",
      "weights", "link", "GB/s", "alone", "within the errors", "in a plan", "evidence");
  for (const AtlasCell& cell : atlas.cells) {
    text += fmt::format("  {:<22} {:>7} {:<9} {:>4.3g}x {:>10.3g} ", cell.device, cell.threads,
                        cell.streamed ? "streamed" : "resident", cell.link_factor,
                        cell.link_bytes_per_s / 1e9);
    if (!cell.refusal.empty()) {
      text += cell.refusal + "\n";
      continue;
    }
    const bool crosses = cell.device_alone.batch > 0 && !cell.device_alone.always;
    text += fmt::format("{:>10} {:>22} {:>10}  {} against {}\n",
                        flip_text(cell.device_alone, atlas.axes),
                        crosses ? range_text(cell.range) : "-", flip_text(cell.plan, atlas.axes),
                        to_string(cell.device_evidence), to_string(cell.cpu_evidence));
  }
  return text + "\n* for good; it wins at some smaller batches as well\n" + kDtypeNote +
         atlas.dtypes + "\n";
}

std::string to_json(const Atlas& atlas) {
  using Json = nlohmann::ordered_json;
  Json json = {{"model", atlas.model},
               {"first", atlas.axes.first},
               {"last", atlas.axes.last},
               {"not_varied", {{"dtype", kDtypeNote + atlas.dtypes}}},
               {"cells", Json::array()}};
  const auto flip_json = [](const FlipBatch& flip) {
    return Json{{"batch", flip.batch > 0 ? Json(flip.batch) : Json()},
                {"always", flip.always},
                {"single", flip.single}};
  };
  for (const AtlasCell& cell : atlas.cells) {
    Json entry = {{"device", cell.device},
                  {"threads", cell.threads},
                  {"weights", cell.streamed ? "streamed" : "resident"},
                  {"link_factor", cell.link_factor},
                  {"link_bytes_per_s", cell.link_bytes_per_s}};
    if (!cell.refusal.empty()) {
      entry["refusal"] = cell.refusal;
    } else {
      entry["alone"] = flip_json(cell.device_alone);
      if (cell.device_alone.batch > 0 && !cell.device_alone.always) {
        entry["low"] = cell.range.low;
        entry["high"] = cell.range.high;
        entry["open_low"] = cell.range.open_low;
        entry["open_high"] = cell.range.open_high;
      }
      entry["plan"] = flip_json(cell.plan);
      entry["cpu_evidence"] = to_string(cell.cpu_evidence);
      entry["device_evidence"] = to_string(cell.device_evidence);
    }
    json["cells"].push_back(std::move(entry));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace turnout
