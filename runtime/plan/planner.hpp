#pragma once

#include "runtime/plan/placement.hpp"
#include "runtime/plan/plan.hpp"

namespace turnout {

/// What make_plan() does, in steps; internal to runtime/plan. planner.cpp places the nodes,
/// planner_steps.cpp puts the work in order.
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
  void prefer_measured(const NodeInfo& info, const DeviceSlot& where, NodeOption& option) const;
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
  bool streamed(ValueId id) const {
    return is_constant(id) && options_.weights.streamed && options_.costs == nullptr;
  }
  double upload_share() const;

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

}  // namespace turnout
