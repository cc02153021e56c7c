// From a bound graph to a plan: options of every node on every device, the placement problem, its
// solution (placement.hpp), then steps in order (planner_steps.cpp).
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/cost/sampling.hpp"
#include "runtime/plan/lanes.hpp"
#include "runtime/plan/planner.hpp"

namespace turnout {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

NodeOption Planner::option(NodeId id, const NodeInfo& info, int device) const {
  const Node& node = graph_.node(id);
  NodeOption result;
  if (options_.costs != nullptr) {
    const auto at = options_.costs->node_seconds.find(node.name);
    if (at == options_.costs->node_seconds.end()) {
      fail(ErrorCode::invalid_argument, "the cost table has no node '{}'", node.name);
    }
    result.seconds = at->second[static_cast<std::size_t>(device)];
    result.possible = true;
    result.evidence = Evidence::fallback;
    return result;
  }
  if (node.op->view) {
    result.possible = true;
    result.evidence = Evidence::measured;
    return result;
  }
  if (device == 0 && !host_computes_) {
    result.refusals.push_back({"", "the host isn't among the devices asked for"});
    return result;
  }
  const DeviceSlot& where = slot(device);
  const auto selection = where.kernels->select(info, where.info(), where.providers);
  result.refusals = selection.refusals;
  result.kernel = selection.entry;
  if (selection.entry == nullptr) return result;
  if (options_.choose_providers && where.info().is_host) prefer_measured(info, where, result);
  const Estimate estimate = model_.node(info, result.kernel->provider, where);
  result.possible = true;
  result.seconds = estimate.seconds;
  result.evidence = estimate.evidence;
  return result;
}

// Where the first provider and another one were measured on this very node, the other one takes it
// if that gains more than the noise, with all data brought into another layout and back at the rate
// of a pass over memory counted in full.
void Planner::prefer_measured(const NodeInfo& info, const DeviceSlot& where,
                              NodeOption& option) const {
  const std::string usual = option.kernel->provider;
  const auto usual_time = model_.known(info, usual, where);
  if (!usual_time || !usual_time->exact) return;
  double bytes = 0;
  for (int i = 0; i < info.input_count(); ++i) {
    if (info.has_input(i) && info.constant(i) == nullptr) {
      bytes += static_cast<double>(info.input(i).bytes());
    }
  }
  for (const TensorSpec* output : info.outputs) bytes += static_cast<double>(output->bytes());
  const auto reorders = model_.pass_seconds(2 * bytes);  // all is read and written once
  if (!reorders) return;
  double best = usual_time->seconds;
  for (const std::string& provider : where.providers) {
    const std::string names[] = {provider};
    const auto time = model_.known(info, provider, where);
    if (provider == usual || !time || !time->exact) continue;
    const KernelEntry* kernel = where.kernels->select(info, where.info(), names).entry;
    const double seconds = time->seconds + *reorders;
    const double spread = std::max(usual_time->spread, time->spread);
    if (kernel == nullptr || seconds >= best ||
        !worth_leaving(usual_time->seconds, seconds, spread)) {
      continue;
    }
    best = seconds;
    option.kernel = kernel;
    option.why = fmt::format("{} took {:.3g} us here, {} {:.3g} us (measured)", provider,
                             time->seconds * 1e6, usual, usual_time->seconds * 1e6);
  }
}

void Planner::refuse_if_impossible(NodeId id) const {
  const NodePlan& node = plan_.nodes[id.index];
  std::string reasons;
  for (int d = 0; d < plan_.device_count(); ++d) {
    const NodeOption& option = node.options[static_cast<std::size_t>(d)];
    if (option.possible) return;
    for (const auto& refusal : option.refusals) {
      reasons += fmt::format("\n  {}{}{}: {}", slot(d).label, refusal.provider.empty() ? "" : " ",
                             refusal.provider, refusal.reason);
    }
  }
  fail(ErrorCode::unsupported, "no kernel for node '{}' ({}){}", graph_.node(id).name,
       graph_.node(id).op->name, reasons);
}

void Planner::find_options() {
  plan_.nodes.resize(graph_.nodes().size());
  for (std::uint32_t n = 0; n < graph_.nodes().size(); ++n) {
    const NodeInfo info = graph_.info(NodeId{n});
    for (int d = 0; d < plan_.device_count(); ++d) {
      plan_.nodes[n].options.push_back(option(NodeId{n}, info, d));
    }
    refuse_if_impossible(NodeId{n});
  }
}

PlacementValue Planner::placement_value(ValueId id) const {
  const Value& value = graph_.value(id);
  PlacementValue result;
  const bool is_weight = value.kind == ValueKind::constant;
  result.free = is_weight && (options_.weights.free() || options_.costs != nullptr);
  result.resident = is_weight && !streamed(id);
  const double share = is_weight ? options_.weights.share() : 1;
  result.producer = value.kind == ValueKind::computed ? static_cast<int>(value.producer.index) : -1;
  const std::int64_t bytes = graph_.bound() || is_weight ? value.spec.bytes() : 0;
  result.bytes = static_cast<double>(bytes);
  CostTable::Transfer given;
  if (options_.costs != nullptr) {
    const auto at = options_.costs->transfers.find(value.name);
    if (at != options_.costs->transfers.end()) given = at->second;
  }
  for (int d = 0; d < plan_.device_count(); ++d) {
    const bool table = options_.costs != nullptr;
    result.h2d_seconds.push_back(table ? given.h2d
                                       : share * model_.copy(bytes, slot(d), true).seconds);
    result.d2h_seconds.push_back(table ? given.d2h : model_.copy(bytes, slot(d), false).seconds);
  }
  return result;
}

void Planner::build_problem() {
  for (const DeviceSlot& device : plan_.devices) {
    PlacementDevice limits{device.label};
    const Figure& memory = device.info().memory_bytes;
    if (!device.info().is_host && memory.known()) limits.memory_limit_bytes = memory.value;
    problem_.devices.push_back(limits);
  }
  for (std::uint32_t v = 0; v < graph_.values().size(); ++v) {
    problem_.values.push_back(placement_value(ValueId{v}));
  }
  for (ValueId id : graph_.outputs()) {
    if (!is_constant(id)) problem_.values[id.index].is_graph_output = true;
  }
  for (std::uint32_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    PlacementNode result;
    result.name = node.name;
    for (const NodeOption& option : plan_.nodes[n].options) {
      result.seconds.push_back(option.possible ? option.seconds : kInfinity);
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (reads_data(node, i)) result.inputs.push_back(static_cast<int>(node.inputs[i].index));
    }
    for (ValueId id : node.outputs) result.outputs.push_back(static_cast<int>(id.index));
    problem_.nodes.push_back(std::move(result));
  }
}

int Planner::device_index(std::string_view label) const {
  for (int d = 0; d < plan_.device_count(); ++d) {
    if (slot(d).label == label) return d;
  }
  std::vector<std::string> labels;
  for (const DeviceSlot& device : plan_.devices) labels.push_back(device.label);
  fail(ErrorCode::invalid_argument, "pin on device '{}', which isn't in the plan; there are: {}",
       label, fmt::join(labels, ", "));
}

void Planner::apply_pins() {
  for (const auto& [name, label] : options_.pins) {
    const auto node = graph_.find_node(name);
    if (!node) {
      fail(ErrorCode::invalid_argument,
           "pin on node '{}', which the graph doesn't have (nodes may have been fused: see plan)",
           name);
    }
    const int device = device_index(label);
    if (std::isinf(problem_.nodes[node->index].seconds[static_cast<std::size_t>(device)])) {
      fail(ErrorCode::unsupported, "pin: device '{}' has no kernel for node '{}'", label, name);
    }
    problem_.nodes[node->index].pin = device;
  }
}

// Every node on the next device after its predecessor's that takes it.
void Planner::alternate(std::vector<int>& devices) const {
  int last = 0;
  for (std::size_t n = 0; n < devices.size(); ++n) {
    if (problem_.nodes[n].pin >= 0) {
      devices[n] = problem_.nodes[n].pin;
      continue;
    }
    const int count = plan_.device_count();
    for (int i = 1; i <= count; ++i) {
      const int candidate = (last + i) % count;
      if (std::isinf(problem_.nodes[n].seconds[static_cast<std::size_t>(candidate)])) continue;
      devices[n] = candidate;
      break;
    }
    if (!graph_.nodes()[n].op->view) last = devices[n];
  }
}

void Planner::place_nodes() {
  PlacementOptions options;
  options.check_memory = options_.check_memory && options_.costs == nullptr;
  placement_ = place(problem_, options);
  if (options_.alternate) {
    alternate(placement_.devices);
    placement_.seconds = evaluate(problem_, placement_.devices);
    placement_.peak_bytes = peak_bytes(problem_, placement_.devices);
    placement_.method = "alternating devices";
    placement_.feasible = true;
    for (int d = 0; d < plan_.device_count() && options.check_memory; ++d) {
      const auto at = static_cast<std::size_t>(d);
      placement_.feasible = placement_.feasible &&
                            placement_.peak_bytes[at] <= problem_.devices[at].memory_limit_bytes;
    }
    if (placement_.seconds > 0) {
      placement_.gap = (placement_.seconds - placement_.lower_bound) / placement_.seconds;
    }
  }
  if (!placement_.feasible) {
    std::string needs;
    for (int d = 1; d < plan_.device_count(); ++d) {
      const auto at = static_cast<std::size_t>(d);
      needs += fmt::format("{}{} has {:.0f} MiB and needs {:.0f} MiB", needs.empty() ? "" : "; ",
                           slot(d).label, problem_.devices[at].memory_limit_bytes / 1048576,
                           placement_.peak_bytes.empty() ? 0 : placement_.peak_bytes[at] / 1048576);
    }
    fail(ErrorCode::out_of_memory, "model '{}' doesn't fit: {}", graph_.name(), needs);
  }
  const std::vector<double> margin = margins(problem_, placement_.devices);
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    plan_.nodes[n].device = placement_.devices[n];
    plan_.nodes[n].margin_seconds = margin[n];
  }
}

double Plan::copy_seconds() const {
  double sum = 0;
  for (const CopyPlan& copy : copies) sum += copy.seconds;
  return sum;
}

std::int64_t Plan::copy_bytes() const {
  std::int64_t sum = 0;
  for (const CopyPlan& copy : copies) sum += copy.bytes;
  return sum;
}

int lane_count(int devices) { return 1 + 3 * (devices - 1); }

int compute_lane(int device) { return device == 0 ? 0 : 3 * (device - 1) + 1; }

int copy_lane(int from, int to) { return to != 0 ? 3 * (to - 1) + 2 : 3 * (from - 1) + 3; }

std::string lane_name(const Plan& plan, int lane) {
  if (lane == 0) return plan.devices[0].label;
  constexpr std::string_view kParts[] = {"", " in", " out"};
  const auto device = static_cast<std::size_t>((lane - 1) / 3 + 1);
  return plan.devices[device].label + std::string(kParts[(lane - 1) % 3]);
}

double simulate(const Plan& plan, const std::vector<double>& step_seconds) {
  std::vector<LaneStep> steps;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    steps.push_back({plan.steps[s].lane, step_seconds[s], plan.steps[s].after});
  }
  return simulate_lanes(steps, lane_count(plan.device_count())).makespan_seconds;
}

Plan make_plan(const Graph& graph, std::vector<DeviceSlot> devices, bool host_computes,
               const CostModel& model, const PlanOptions& options) {
  if (devices.empty() || (options.costs == nullptr && !devices[0].info().is_host)) {
    fail(ErrorCode::invalid_argument, "the first device of a plan has to be a host");
  }
  return Planner(graph, std::move(devices), host_computes, model, options).run();
}

}  // namespace turnout
