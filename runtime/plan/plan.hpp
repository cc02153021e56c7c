#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/graph.hpp"
#include "runtime/cost/cost_model.hpp"
#include "runtime/system.hpp"

namespace turnout {

/// A node on one of the plan's devices: what it would take there, or why it can't run there.
struct NodeOption {
  const KernelEntry* kernel = nullptr;  ///< null: refused, or a view (which needs no kernel)
  bool possible = false;
  double seconds = 0;
  Evidence evidence = Evidence::unprobed;
  std::vector<KernelRegistry::Refusal> refusals;
  std::string why;  ///< reason for another provider than the first that takes it; may be empty
};

struct NodePlan {
  int device = 0;
  double margin_seconds = 0;        ///< lost if the node alone moved to its best other device
  std::vector<NodeOption> options;  ///< one per device of the plan
  const NodeOption& chosen() const { return options[static_cast<std::size_t>(device)]; }
};

struct CopyPlan {
  ValueId value;
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;
  double seconds = 0;
  Evidence evidence = Evidence::unprobed;
};

/// Order of work: a node, or an element of `copies`.
struct PlanStep {
  enum class Kind { run, copy };
  Kind kind = Kind::run;
  std::uint32_t index = 0;
  double seconds = 0;
  int lane = 0;            ///< in order within a lane; see lane_name()
  std::vector<int> after;  ///< earlier steps it needs
};

/// What a plan counts for bringing weights to a device.
struct WeightPolicy {
  bool streamed = false;     ///< copied there at every run; else once, and they stay
  double expected_runs = 0;  ///< resident: a run bears 1/expected_runs of the upload; 0: none of it
  bool free() const { return !streamed && expected_runs <= 0; }
  double share() const { return streamed ? 1 : expected_runs > 0 ? 1 / expected_runs : 0; }
};

/// Where everything runs and in which order. Made by make_plan(); refers to a graph and to slots
/// that have to outlive it.
struct Plan {
  std::vector<DeviceSlot> devices;  ///< [0] is the host, where inputs start and outputs end
  std::vector<NodePlan> nodes;      ///< by node
  std::vector<CopyPlan> copies;
  std::vector<PlanStep> steps;
  double serial_seconds = 0;     ///< all steps one after the other
  double predicted_seconds = 0;  ///< lane simulation: copies and devices overlap
  double upload_seconds = 0;     ///< in both: a run's share of uploading resident weights once
  WeightPolicy weights;
  double lower_bound_seconds = 0;  ///< no placement has a lower serial sum
  double gap = 0;
  Evidence evidence = Evidence::unprobed;  ///< of the sums
  std::string method;                      ///< how the placement was found
  std::vector<double> memory_bytes;        ///< per device: weights, activations and workspace

  int device_count() const { return static_cast<int>(devices.size()); }
  double copy_seconds() const;
  std::int64_t copy_bytes() const;
};

/// Costs given from outside instead of the model's.
struct CostTable {
  std::vector<std::string> devices;
  std::map<std::string, std::vector<double>, std::less<>> node_seconds;
  struct Transfer {
    double h2d = 0, d2h = 0;
  };
  std::map<std::string, Transfer, std::less<>> transfers;
};
/// Reads the JSON form of a cost table. `where` names it in errors.
CostTable parse_cost_table(std::string_view json, std::string_view where);

struct PlanOptions {
  std::map<std::string, std::string> pins;  ///< node name -> device label
  bool alternate = false;                   ///< every node changes device where both take it
  bool check_memory = true;
  /// On the host, take for each node the provider that measured times prefer to the first one.
  bool choose_providers = false;
  const CostTable* costs = nullptr;
  WeightPolicy weights;  ///< with `costs`, weights are free
};

/// Lanes of a plan: 0 is the host's; then compute, to device, from device for each other device.
int lane_count(int devices);
int compute_lane(int device);
int copy_lane(int from, int to);
std::string lane_name(const Plan& plan, int lane);

/// Places every node and orders the work. Pure and deterministic: no clock, no I/O, no device call.
/// `devices[0]` must be a host device; it takes nodes only if `host_computes`.
/// Error unsupported naming the node and every refusal if no device takes a node; invalid_argument
/// for pins on unknown nodes or devices; out_of_memory naming the device if nothing fits.
Plan make_plan(const Graph& graph, std::vector<DeviceSlot> devices, bool host_computes,
               const CostModel& model, const PlanOptions& options = {});

/// The finish time of the plan's steps with other durations (per step): lanes in order, steps after
/// those they need.
double simulate(const Plan& plan, const std::vector<double>& step_seconds);

}  // namespace turnout
