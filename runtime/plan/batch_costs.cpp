#include "runtime/plan/batch_costs.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "runtime/plan/evidence_error.hpp"
#include "runtime/plan/explain.hpp"

namespace turnout {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

std::map<std::string, CostPart> parts_of(const Graph& graph, const Plan& plan) {
  std::map<std::string, CostPart> parts;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const NodeOption& chosen = plan.nodes[n].chosen();
    parts[graph.nodes()[n].name] = {chosen.seconds, chosen.evidence};
  }
  parts["weights"] = {plan.upload_seconds, Evidence::predicted};
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    parts[fmt::format("copy {}", c)] = {plan.copies[c].seconds, plan.copies[c].evidence};
  }
  return parts;
}

BatchCosts::Alone alone_on(const Graph& graph, std::vector<DeviceSlot> slots, bool host_computes,
                           const CostModel& costs, const WeightPolicy& weights) {
  BatchCosts::Alone result;
  try {
    PlanOptions options;
    options.weights = weights;
    return alone_time(graph, make_plan(graph, std::move(slots), host_computes, costs, options));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::out_of_memory) throw;
    result.refusal = error.what();
  }
  return result;
}

void add_nodes(const PlannedModel& planned, BatchCosts& result) {
  for (std::size_t n = 0; n < planned.plan.nodes.size(); ++n) {
    const Node& node = planned.graph.nodes()[n];
    BatchCosts::NodeCost cost;
    cost.name = node.name;
    cost.op = node.op->name;
    cost.view = node.op->view;
    for (const NodeOption& option : planned.plan.nodes[n].options) {
      cost.on.push_back({option.possible, option.seconds, option.evidence});
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].valid() || node.op->is_shape_input(static_cast<int>(i))) continue;
      const Value& value = planned.graph.value(node.inputs[i]);
      cost.inputs.push_back(static_cast<int>(node.inputs[i].index));
      if (value.kind == ValueKind::constant) {
        cost.weight_bytes += static_cast<double>(value.spec.bytes());
      }
    }
    for (ValueId id : node.outputs) cost.outputs.push_back(static_cast<int>(id.index));
    result.nodes.push_back(std::move(cost));
    result.placement.push_back(planned.plan.nodes[n].device);
  }
}

void add_values(const PlannedModel& planned, const CostModel& costs, BatchCosts& result) {
  for (const Value& value : planned.graph.values()) {
    BatchCosts::ValueCost cost;
    cost.name = value.name;
    const bool is_weight = value.kind == ValueKind::constant;
    cost.free = is_weight && planned.plan.weights.free();
    const double share = is_weight ? planned.plan.weights.share() : 1;
    if (value.kind == ValueKind::computed) cost.producer = static_cast<int>(value.producer.index);
    cost.bytes = static_cast<double>(value.spec.bytes());
    for (const DeviceSlot& device : planned.plan.devices) {
      cost.to_device.push_back(costs.copy(value.spec.bytes(), device, true));
      cost.to_device.back().seconds *= share;
      cost.to_host.push_back(costs.copy(value.spec.bytes(), device, false));
    }
    result.values.push_back(std::move(cost));
  }
  for (ValueId id : planned.graph.outputs()) {
    BatchCosts::ValueCost& value = result.values[id.index];
    value.is_graph_output = planned.graph.value(id).kind != ValueKind::constant;
  }
}

}  // namespace

BatchCosts::Alone alone_time(const Graph& graph, const Plan& plan) {
  return {plan.predicted_seconds, relative_error_of(parts_of(graph, plan)), plan.evidence, ""};
}

BatchCosts batch_costs(const PlannedModel& planned, const CostModel& costs, bool host_computes,
                       std::int64_t batch) {
  const Plan& plan = planned.plan;
  BatchCosts result;
  result.batch = batch;
  result.host_computes = host_computes;
  for (const DeviceSlot& device : plan.devices) result.devices.push_back(device.label);
  add_nodes(planned, result);
  add_values(planned, costs, result);
  result.plan_seconds = plan.predicted_seconds;
  result.serial_seconds = plan.serial_seconds;
  result.evidence = plan.evidence;
  result.summary = summary(plan);
  result.memory_bytes = plan.memory_bytes;
  for (int d = 0; d < plan.device_count(); ++d) {
    if (d == 0 && !host_computes) {
      result.alone.emplace_back().refusal = "the host isn't among the devices asked for";
      continue;
    }
    std::vector<DeviceSlot> slots = {plan.devices[0]};
    if (d > 0) slots.push_back(plan.devices[at(d)]);
    result.alone.push_back(alone_on(planned.graph, std::move(slots), d == 0, costs, plan.weights));
  }
  return result;
}

std::map<std::string, CostPart> cost_parts(const BatchCosts& costs,
                                           const std::vector<int>& placement) {
  std::map<std::string, CostPart> parts;
  std::vector<std::set<int>> wanted(costs.values.size());
  for (std::size_t n = 0; n < costs.nodes.size(); ++n) {
    const BatchCosts::NodeCost& node = costs.nodes[n];
    const BatchCosts::NodeTime& time = node.on[at(placement[n])];
    const double seconds = time.possible ? time.seconds : std::numeric_limits<double>::infinity();
    parts[fmt::format("node {} on {}", node.name, costs.devices[at(placement[n])])] = {
        seconds, time.evidence};
    for (int value : node.inputs) wanted[at(value)].insert(placement[n]);
  }
  for (std::size_t v = 0; v < costs.values.size(); ++v) {
    const BatchCosts::ValueCost& value = costs.values[v];
    if (value.free) continue;
    if (value.is_graph_output) wanted[v].insert(0);
    const int home = value.producer < 0 ? 0 : placement[at(value.producer)];
    wanted[v].erase(home);
    if (wanted[v].empty()) continue;
    if (home != 0) {
      const Estimate& copy = value.to_host[at(home)];
      parts[fmt::format("{} from {}", value.name, costs.devices[at(home)])] = {copy.seconds,
                                                                               copy.evidence};
    }
    for (int device : wanted[v]) {
      if (device == 0) continue;
      const Estimate& copy = value.to_device[at(device)];
      parts[fmt::format("{} to {}", value.name, costs.devices[at(device)])] = {copy.seconds,
                                                                               copy.evidence};
    }
  }
  return parts;
}

double sum_of(const std::map<std::string, CostPart>& parts) {
  double sum = 0;
  for (const auto& [name, part] : parts) sum += part.seconds;
  return sum;
}

Evidence evidence_of(const std::map<std::string, CostPart>& parts) {
  Evidence evidence = Evidence::unprobed;
  bool any = false;
  for (const auto& [name, part] : parts) {
    if (part.seconds <= 0) continue;
    if (any && part.evidence != evidence) return Evidence::mixed;
    evidence = part.evidence;
    any = true;
  }
  return evidence;
}

double relative_error_of(const std::map<std::string, CostPart>& parts) {
  double error = 0;
  double sum = 0;
  for (const auto& [name, part] : parts) {
    sum += part.seconds;
    error += part.seconds * relative_error(part.evidence);
  }
  return sum > 0 ? error / sum : 0;
}

BatchSweep::BatchSweep(System& system, const Graph& model, const CostModel& costs,
                       SessionOptions options, std::string symbol)
    : system_(system),
      model_(model),
      costs_(costs),
      options_(std::move(options)),
      symbol_(std::move(symbol)) {
  if (symbol_.empty()) {
    fail(ErrorCode::invalid_argument, "model '{}' has no symbolic batch dimension", model.name());
  }
}

const BatchCosts& BatchSweep::at(std::int64_t batch) {
  const auto known = by_batch_.find(batch);
  if (known != by_batch_.end()) return known->second;
  options_.dims[symbol_] = batch;
  const PlannedModel planned = plan_model(system_, model_, costs_, options_);
  const bool host_computes =
      std::any_of(options_.devices.begin(), options_.devices.end(),
                  [&](const std::string& label) { return label == planned.plan.devices[0].label; });
  return by_batch_[batch] = batch_costs(planned, costs_, host_computes, batch);
}

}  // namespace turnout
