// From a placement to steps in order. A copy is issued right after its value is made, so that it
// overlaps with what follows; a graph input's copy comes first of all.
#include <algorithm>

#include "runtime/plan/planner.hpp"

namespace turnout {

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
    const bool on_host = kind == ValueKind::input || streamed(ValueId{v});
    if (kind == ValueKind::constant && !on_host) arrival_[v].assign(count, -2);
    if (on_host) arrival_[v][0] = -2;
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

// What a run bears of uploading resident weights once to each device that reads them.
double Planner::upload_share() const {
  if (options_.weights.free() || options_.weights.streamed || options_.costs != nullptr) return 0;
  double seconds = 0;
  const auto uses = graph_.uses();
  for (std::uint32_t v = 0; v < graph_.values().size(); ++v) {
    if (!is_constant(ValueId{v})) continue;
    std::vector<char> charged(plan_.devices.size(), 0);
    charged[0] = 1;
    for (const Graph::Use& use : uses[v]) {
      if (!reads_data(graph_.node(use.node), static_cast<std::size_t>(use.input))) continue;
      const auto device = static_cast<std::size_t>(plan_.nodes[use.node.index].device);
      if (charged[device]++ == 0) seconds += problem_.values[v].h2d_seconds[device];
    }
  }
  return seconds;
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
  plan_.weights = options_.weights;
  plan_.upload_seconds = upload_share();
  note(Evidence::predicted, plan_.upload_seconds);
  plan_.predicted_seconds = simulate(plan_, seconds) + plan_.upload_seconds;
  plan_.evidence = any_default      ? Evidence::fallback
                   : measured       ? Evidence::measured
                   : all_predicted  ? Evidence::predicted
                   : all_calibrated ? Evidence::calibrated
                                    : Evidence::mixed;
}

}  // namespace turnout
