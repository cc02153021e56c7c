#include "runtime/plan/explain.hpp"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/plan/device_share.hpp"
#include "runtime/report/units.hpp"

namespace turnout {
namespace {

using Devices = std::map<std::string, std::string>;  // node name -> device label

Devices devices_of(const PlannedModel& planned) {
  Devices result;
  for (std::size_t n = 0; n < planned.plan.nodes.size(); ++n) {
    const auto device = static_cast<std::size_t>(planned.plan.nodes[n].device);
    result[planned.graph.nodes()[n].name] = planned.plan.devices[device].label;
  }
  return result;
}

// Plans at other batches and link speeds, remembered.
class Replanner {
 public:
  Replanner(System& system, const Graph& model, const CostModel& costs,
            const SessionOptions& options)
      : system_(system), model_(model), costs_(costs), options_(options) {
    const auto symbols = model.symbols();
    if (!symbols.empty()) symbol_ = symbols.front();
    base_batch_ = symbol_.empty() ? 0 : options.dims.find(symbol_)->second;
  }

  const std::string& symbol() const { return symbol_; }
  std::int64_t base_batch() const { return base_batch_; }

  const Devices& at_batch(std::int64_t batch) {
    auto [at, is_new] = by_batch_.try_emplace(batch);
    if (is_new) {
      SessionOptions options = options_;
      options.dims[symbol_] = batch;
      at->second = devices_of(plan_model(system_, model_, costs_, options));
    }
    return at->second;
  }
  const Devices& at_link(double factor) {
    auto [at, is_new] = by_link_.try_emplace(factor);
    if (is_new) {
      const CostModel changed = costs_.with({factor, 1});
      at->second = devices_of(plan_model(system_, model_, changed, options_));
    }
    return at->second;
  }

 private:
  System& system_;
  const Graph& model_;
  const CostModel& costs_;
  const SessionOptions& options_;
  std::string symbol_;
  std::int64_t base_batch_ = 0;
  std::map<std::int64_t, Devices> by_batch_;
  std::map<double, Devices> by_link_;
};

std::string device_in(const Devices& devices, const std::string& node) {
  const auto at = devices.find(node);
  return at == devices.end() ? "" : at->second;
}

// First batch above the base at which the node's device differs; bisected between powers of two.
void find_batch_flip(Replanner& plans, const std::string& node, Flip& flip) {
  constexpr std::int64_t kMaxBatch = 4096;
  if (plans.symbol().empty()) return;
  std::int64_t low = plans.base_batch();
  const std::string here = device_in(plans.at_batch(low), node);
  std::int64_t high = 1;
  while (high <= low) high *= 2;
  while (high <= kMaxBatch && device_in(plans.at_batch(high), node) == here) {
    low = high;
    high *= 2;
  }
  if (high > kMaxBatch) return;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (device_in(plans.at_batch(middle), node) == here ? low : high) = middle;
  }
  flip.batch = high;
  flip.batch_device = device_in(plans.at_batch(high), node);
}

void find_link_flip(Replanner& plans, const std::string& node, Flip& flip) {
  const std::string here = device_in(plans.at_link(1), node);
  for (const bool faster : {true, false}) {
    for (double factor = 1; factor <= 64; factor *= std::sqrt(2.0)) {
      const double scale = faster ? factor : 1 / factor;
      const std::string there = device_in(plans.at_link(scale), node);
      if (there == here) continue;
      flip.link_factor = scale;
      flip.link_device = there;
      return;
    }
  }
}

std::string flip_text(const Flip& flip) {
  std::string text;
  if (flip.batch > 0) text = fmt::format("moves to {} at batch {}", flip.batch_device, flip.batch);
  if (flip.link_factor > 0) {
    text += fmt::format("{}to {} if the link were {:.2g}x as fast", text.empty() ? "moves " : ", ",
                        flip.link_device, flip.link_factor);
  }
  return text;
}

std::string node_text(const Explanation& explanation, std::size_t n) {
  const Plan& plan = explanation.planned.plan;
  const Node& node = explanation.planned.graph.nodes()[n];
  const NodePlan& planned = plan.nodes[n];
  const NodeOption& chosen = planned.chosen();
  std::string text =
      fmt::format("  {:<32} {:<22} {:<18} {:<10} {:>9} {}\n", node.name, node.op->name,
                  plan.devices[static_cast<std::size_t>(planned.device)].label,
                  chosen.kernel == nullptr ? "view" : chosen.kernel->provider,
                  format_seconds(chosen.seconds), to_string(chosen.evidence));
  if (!chosen.why.empty()) text += "      " + chosen.why + "\n";
  for (std::size_t d = 0; d < planned.options.size(); ++d) {
    const NodeOption& option = planned.options[d];
    if (static_cast<int>(d) != planned.device && option.possible && option.kernel != nullptr) {
      text += fmt::format("      on {}: {} ({})\n", plan.devices[d].label,
                          format_seconds(option.seconds), to_string(option.evidence));
    }
    for (const auto& refusal : option.refusals) {
      text += fmt::format("      {}{}{} refuses: {}\n", plan.devices[d].label,
                          refusal.provider.empty() ? "" : " ", refusal.provider, refusal.reason);
    }
  }
  if (std::isfinite(planned.margin_seconds) && chosen.kernel != nullptr) {
    text += fmt::format("      moving it alone would cost {}\n",
                        format_seconds(planned.margin_seconds));
  }
  if (!explanation.flips.empty()) {
    const std::string flip = flip_text(explanation.flips[n]);
    if (!flip.empty()) text += "      " + flip + "\n";
  }
  return text;
}

}  // namespace

Explanation explain(System& system, const Graph& model, const CostModel& costs,
                    const SessionOptions& options, bool flips) {
  Explanation result{plan_model(system, model, costs, options), {}, "", options.dims};
  const auto symbols = model.symbols();
  if (!symbols.empty()) result.batch_symbol = symbols.front();
  if (!flips || result.planned.plan.device_count() < 2) return result;
  Replanner plans(system, model, costs, options);
  for (const Node& node : result.planned.graph.nodes()) {
    Flip flip;
    if (!node.op->view) {
      find_batch_flip(plans, node.name, flip);
      find_link_flip(plans, node.name, flip);
    }
    result.flips.push_back(flip);
  }
  return result;
}

std::string summary(const Plan& plan) {
  std::vector<int> nodes(plan.devices.size(), 0);
  for (const NodePlan& node : plan.nodes) {
    if (node.chosen().kernel != nullptr) ++nodes[static_cast<std::size_t>(node.device)];
  }
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < nodes.size(); ++d) {
    if (nodes[d] > 0)
      parts.push_back(fmt::format("{} {} on {}", nodes[d], nodes[d] == 1 ? "node" : "nodes",
                                  plan.devices[d].label));
  }
  if (plan.copies.empty()) return fmt::format("{}; no copies", fmt::join(parts, ", "));
  return fmt::format("{}; {} {} ({}, {})", fmt::join(parts, ", "), plan.copies.size(),
                     plan.copies.size() == 1 ? "copy" : "copies",
                     format_bytes(static_cast<double>(plan.copy_bytes())),
                     format_seconds(plan.copy_seconds()));
}

std::string to_text(const Explanation& explanation, bool details) {
  const Plan& plan = explanation.planned.plan;
  std::string text =
      fmt::format("plan of '{}': {}\n", explanation.planned.graph.name(), summary(plan));
  text += fmt::format("  time {} ({}), serial sum {}, lower bound {} (gap {:.1f} %), by {}\n",
                      format_seconds(plan.predicted_seconds), to_string(plan.evidence),
                      format_seconds(plan.serial_seconds), format_seconds(plan.lower_bound_seconds),
                      100 * plan.gap, plan.method);
  if (plan.weights.streamed) text += "  weights are copied at every run\n";
  if (plan.upload_seconds > 0) {
    text += fmt::format("  weights are copied once in {:g} runs: {} of each run (predicted)\n",
                        plan.weights.expected_runs, format_seconds(plan.upload_seconds));
  }
  for (const DeviceShare& share : device_shares(plan)) {
    if (share.nodes == 0) continue;
    text += fmt::format("  on {}: {} {}, {} ({})", share.device, share.nodes,
                        share.nodes == 1 ? "node" : "nodes", format_seconds(share.seconds),
                        to_string(share.evidence));
    if (share.copies > 0) {
      text +=
          fmt::format("; {} {}, {} (predicted)", share.copies,
                      share.copies == 1 ? "copy" : "copies", format_seconds(share.copy_seconds));
    }
    text += "\n";
  }
  for (std::size_t d = 0; d < plan.devices.size(); ++d) {
    text += fmt::format("  memory on {}: {}\n", plan.devices[d].label,
                        format_bytes(plan.memory_bytes[d]));
  }
  if (details) {
    text += "\nnodes\n";
    for (std::size_t n = 0; n < plan.nodes.size(); ++n) text += node_text(explanation, n);
  }
  if (!plan.copies.empty()) text += "\ncopies\n";
  for (const CopyPlan& copy : plan.copies) {
    text += fmt::format("  {:<32} {} -> {}  {}  {} ({})\n",
                        explanation.planned.graph.value(copy.value).name,
                        plan.devices[static_cast<std::size_t>(copy.from)].label,
                        plan.devices[static_cast<std::size_t>(copy.to)].label,
                        format_bytes(static_cast<double>(copy.bytes)), format_seconds(copy.seconds),
                        to_string(copy.evidence));
  }
  return text;
}

std::string to_json(const Explanation& explanation) {
  using Json = nlohmann::ordered_json;
  const Plan& plan = explanation.planned.plan;
  const Graph& graph = explanation.planned.graph;
  Json json;
  json["format"] = kPlanFormat;
  json["model"] = graph.name();
  json["dims"] = Json::object();
  for (const auto& [name, size] : explanation.dims) json["dims"][name] = size;
  json["predicted_s"] = plan.serial_seconds;
  json["lanes_s"] = plan.predicted_seconds;
  json["lower_bound_s"] = plan.lower_bound_seconds;
  json["gap"] = plan.gap;
  json["evidence"] = to_string(plan.evidence);
  json["method"] = plan.method;
  json["weights"] = {{"streamed", plan.weights.streamed},
                     {"expected_runs", plan.weights.expected_runs},
                     {"upload_s", plan.upload_seconds}};
  json["shares"] = Json::array();
  for (const DeviceShare& share : device_shares(plan)) {
    json["shares"].push_back({{"device", share.device},
                              {"nodes", share.nodes},
                              {"seconds", share.seconds},
                              {"evidence", to_string(share.evidence)},
                              {"copies", share.copies},
                              {"copy_bytes", share.copy_bytes},
                              {"copy_s", share.copy_seconds}});
  }
  json["placement"] = Json::object();
  json["nodes"] = Json::array();
  const auto label = [&](int device) {
    return plan.devices[static_cast<std::size_t>(device)].label;
  };
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const NodePlan& node = plan.nodes[n];
    json["placement"][graph.nodes()[n].name] = label(node.device);
    Json entry = {{"name", graph.nodes()[n].name},
                  {"op", graph.nodes()[n].op->name},
                  {"device", label(node.device)},
                  {"provider", node.chosen().kernel ? node.chosen().kernel->provider : ""},
                  {"seconds", node.chosen().seconds},
                  {"evidence", to_string(node.chosen().evidence)}};
    if (!node.chosen().why.empty()) entry["provider_why"] = node.chosen().why;
    entry["margin_s"] = std::isfinite(node.margin_seconds) ? Json(node.margin_seconds) : Json();
    for (std::size_t d = 0; d < node.options.size(); ++d) {
      const NodeOption& option = node.options[d];
      Json other = {{"device", plan.devices[d].label}, {"possible", option.possible}};
      if (option.possible) {
        other["seconds"] = option.seconds;
        other["evidence"] = to_string(option.evidence);
      }
      for (const auto& refusal : option.refusals) {
        other["refusals"].push_back({{"provider", refusal.provider}, {"reason", refusal.reason}});
      }
      entry["options"].push_back(other);
    }
    if (!explanation.flips.empty() && explanation.flips[n].batch > 0) {
      entry["flip_batch"] = explanation.flips[n].batch;
      entry["flip_device"] = explanation.flips[n].batch_device;
    }
    if (!explanation.flips.empty() && explanation.flips[n].link_factor > 0) {
      entry["flip_link_factor"] = explanation.flips[n].link_factor;
      entry["flip_link_device"] = explanation.flips[n].link_device;
    }
    json["nodes"].push_back(std::move(entry));
  }
  json["copies"] = Json::array();
  for (const CopyPlan& copy : plan.copies) {
    json["copies"].push_back({{"value", graph.value(copy.value).name},
                              {"from", label(copy.from)},
                              {"to", label(copy.to)},
                              {"bytes", copy.bytes},
                              {"seconds", copy.seconds},
                              {"evidence", to_string(copy.evidence)}});
  }
  // Names of a hostile model needn't be UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::int64_t flip_batch(System& system, const Graph& model, const CostModel& costs,
                        SessionOptions options, const std::string& device, std::int64_t limit) {
  const auto symbols = model.symbols();
  if (symbols.empty()) {
    fail(ErrorCode::invalid_argument, "model '{}' has no batch dimension", model.name());
  }
  const auto uses_device = [&](std::int64_t batch) {
    options.dims[symbols.front()] = batch;
    const PlannedModel planned = plan_model(system, model, costs, options);
    for (const NodePlan& node : planned.plan.nodes) {
      const auto at = static_cast<std::size_t>(node.device);
      if (planned.plan.devices[at].label == device && node.chosen().kernel != nullptr) return true;
    }
    return false;
  };
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::int64_t batch = 1; batch <= limit; batch *= 2) {
    if (!uses_device(batch)) {
      low = batch;
      high = 0;
    } else if (high == 0) {
      high = batch;
    }
  }
  if (high == 0) return 0;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (uses_device(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace turnout
