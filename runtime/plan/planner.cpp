// From a bound graph to a plan: options of every node on every device, the placement problem, its
// solution (placement.hpp), then steps in order. A copy is issued right after its value is made, so
// that it overlaps with what follows; a graph input's copy comes first of all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/plan/lanes.hpp"
#include "runtime/plan/placement.hpp"
#include "runtime/plan/plan.hpp"

namespace turnout {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Planner {
 public:
  Planner(const Graph& graph, std::vector<DeviceSlot> devices, bool host_computes,
          const CostModel& model, const PlanOptions& options)
      : graph_(graph), host_computes_(host_computes), model_(model), options_(options) {
    plan_.devices = std::move(devices);
  }

  Plan run() {
    find_options();
    build_problem();
    apply_pins();
    place_nodes();
    order_steps();
    summarize();
    return std::move(plan_);
  }

 private:
  void find_options();
  NodeOption option(NodeId id, const NodeInfo& info, int device) const;
  void refuse_if_impossible(NodeId id) const;
  void build_problem();
  PlacementValue placement_value(ValueId id) const;
  void apply_pins();
  int device_index(std::string_view label) const;
  void place_nodes();
  void alternate(std::vector<int>& devices) const;
  void order_steps();
  int add_copy(ValueId value, int from, int to);
  int add_step(PlanStep step);
  int available(ValueId value, int device);
  void summarize();

  const DeviceSlot& slot(int device) const {
    return plan_.devices[static_cast<std::size_t>(device)];
  }
  // Shape operands are known to the kernel; with costs from outside every input counts.
  bool reads_data(const Node& node, std::size_t i) const {
    return node.inputs[i].valid() &&
           (options_.costs != nullptr || !node.op->is_shape_input(static_cast<int>(i)));
  }
  bool is_constant(ValueId id) const { return graph_.value(id).kind == ValueKind::constant; }

  const Graph& graph_;
  bool host_computes_;
  const CostModel& model_;
  const PlanOptions& options_;
  Plan plan_;
  PlacementProblem problem_;
  Placement placement_;
  /// Per value and device: the step after which it is there; -1: not there; -2: there from the
  /// start.
  std::vector<std::vector<int>> arrival_;
};

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
  const Estimate estimate = model_.node(info, selection.entry->provider, where);
  result.possible = true;
  result.seconds = estimate.seconds;
  result.evidence = estimate.evidence;
  return result;
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
  result.free = value.kind == ValueKind::constant;
  result.producer = value.kind == ValueKind::computed ? static_cast<int>(value.producer.index) : -1;
  const std::int64_t bytes = graph_.bound() || result.free ? value.spec.bytes() : 0;
  result.bytes = static_cast<double>(bytes);
  CostTable::Transfer given;
  if (options_.costs != nullptr) {
    const auto at = options_.costs->transfers.find(value.name);
    if (at != options_.costs->transfers.end()) given = at->second;
  }
  for (int d = 0; d < plan_.device_count(); ++d) {
    const bool table = options_.costs != nullptr;
    result.h2d_seconds.push_back(table ? given.h2d : model_.copy(bytes, slot(d), true).seconds);
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

int Planner::add_step(PlanStep step) {
  std::sort(step.after.begin(), step.after.end());
  step.after.erase(std::unique(step.after.begin(), step.after.end()), step.after.end());
  plan_.steps.push_back(std::move(step));
  return static_cast<int>(plan_.steps.size()) - 1;
}

int Planner::add_copy(ValueId value, int from, int to) {
  const bool to_device = to != 0;
  const DeviceSlot& device = slot(to_device ? to : from);
  const std::int64_t bytes = graph_.bound() ? graph_.value(value).spec.bytes() : 0;
  Estimate estimate = model_.copy(bytes, device, to_device);
  if (options_.costs != nullptr) {
    const PlacementValue& costs = problem_.values[value.index];
    estimate = {to_device ? costs.h2d_seconds[static_cast<std::size_t>(to)]
                          : costs.d2h_seconds[static_cast<std::size_t>(from)],
                Evidence::fallback};
  }
  PlanStep step;
  step.kind = PlanStep::Kind::copy;
  step.index = static_cast<std::uint32_t>(plan_.copies.size());
  step.seconds = estimate.seconds;
  step.lane = copy_lane(from, to);
  const int source = arrival_[value.index][static_cast<std::size_t>(from)];
  if (source >= 0) step.after.push_back(source);
  plan_.copies.push_back({value, from, to, bytes, estimate.seconds, estimate.evidence});
  const int index = add_step(std::move(step));
  arrival_[value.index][static_cast<std::size_t>(to)] = index;
  return index;
}

// The step after which the value is on the device, copying it there if need be.
int Planner::available(ValueId value, int device) {
  auto& arrival = arrival_[value.index];
  if (arrival[static_cast<std::size_t>(device)] != -1) {
    return arrival[static_cast<std::size_t>(device)];
  }
  if (device != 0 && arrival[0] == -1) available(value, 0);  // devices meet on the host
  int from = 0;
  while (from < plan_.device_count() && arrival[static_cast<std::size_t>(from)] == -1) ++from;
  return add_copy(value, from, device);
}

void Planner::order_steps() {
  const auto count = static_cast<std::size_t>(plan_.device_count());
  arrival_.assign(graph_.values().size(), std::vector<int>(count, -1));
  for (std::uint32_t v = 0; v < graph_.values().size(); ++v) {
    const ValueKind kind = graph_.values()[v].kind;
    if (kind == ValueKind::constant) arrival_[v].assign(count, -2);
    if (kind == ValueKind::input) arrival_[v][0] = -2;
  }
  const auto uses = graph_.uses();
  // Devices that want a value, the host first (other devices get it from there).
  const auto wanted_on = [&](ValueId id) {
    std::vector<int> devices;
    if (problem_.values[id.index].is_graph_output) devices.push_back(0);
    for (const Graph::Use& use : uses[id.index]) {
      if (!reads_data(graph_.node(use.node), static_cast<std::size_t>(use.input))) continue;
      devices.push_back(plan_.nodes[use.node.index].device);
    }
    std::sort(devices.begin(), devices.end());
    return devices;
  };
  for (ValueId id : graph_.inputs()) {
    for (int device : wanted_on(id)) available(id, device);
  }
  for (std::uint32_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    const int device = plan_.nodes[n].device;
    PlanStep step;
    step.index = n;
    step.seconds = plan_.nodes[n].chosen().seconds;
    step.lane = compute_lane(device);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!reads_data(node, i)) continue;
      const int source = available(node.inputs[i], device);
      if (source >= 0) step.after.push_back(source);
    }
    const int index = add_step(std::move(step));
    for (ValueId id : node.outputs) {
      arrival_[id.index][static_cast<std::size_t>(device)] = index;
    }
    for (ValueId id : node.outputs) {
      for (int wanted : wanted_on(id)) available(id, wanted);
    }
  }
}

void Planner::summarize() {
  std::vector<double> seconds;
  bool measured = true;
  bool predicted = false;
  bool any_default = false;
  const auto note = [&](Evidence evidence, double s) {
    if (s <= 0) return;
    measured = measured && evidence == Evidence::measured;
    predicted = predicted || evidence == Evidence::predicted;
    any_default = any_default || evidence == Evidence::fallback || evidence == Evidence::unprobed;
  };
  bool all_predicted = true;
  bool all_calibrated = true;
  for (const PlanStep& step : plan_.steps) {
    seconds.push_back(step.seconds);
    const Evidence evidence = step.kind == PlanStep::Kind::run
                                  ? plan_.nodes[step.index].chosen().evidence
                                  : plan_.copies[step.index].evidence;
    note(evidence, step.seconds);
    if (step.seconds > 0) {
      all_predicted = all_predicted && evidence == Evidence::predicted;
      all_calibrated = all_calibrated && evidence == Evidence::calibrated;
    }
  }
  plan_.serial_seconds = placement_.seconds;
  plan_.lower_bound_seconds = placement_.lower_bound;
  plan_.gap = placement_.gap;
  plan_.method = placement_.method;
  plan_.memory_bytes = placement_.peak_bytes;
  plan_.predicted_seconds = simulate(plan_, seconds);
  plan_.evidence = any_default      ? Evidence::fallback
                   : measured       ? Evidence::measured
                   : all_predicted  ? Evidence::predicted
                   : all_calibrated ? Evidence::calibrated
                                    : Evidence::mixed;
}

}  // namespace

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
