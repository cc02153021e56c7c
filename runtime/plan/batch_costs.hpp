#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/session.hpp"

namespace turnout {

/// What one model costs at one batch on the devices of a plan, without the graph: enough to price
/// any placement and to compare plans of different batches.
struct BatchCosts {
  struct NodeTime {
    bool possible = false;
    double seconds = 0;
    Evidence evidence = Evidence::unprobed;
  };
  struct NodeCost {
    std::string name, op;
    bool view = false;                 ///< no kernel: it follows its input
    double weight_bytes = 0;           ///< of constants it reads
    std::vector<NodeTime> on;          ///< per device
    std::vector<int> inputs, outputs;  ///< values; shape operands left out
  };
  struct ValueCost {
    std::string name;
    int producer = -1;  ///< -1: graph input or constant
    bool free = false;  ///< a weight whose upload isn't counted
    bool is_graph_output = false;
    double bytes = 0;
    std::vector<Estimate> to_device, to_host;  ///< per device, [0] unused
  };
  /// The whole model on one device.
  struct Alone {
    double seconds = 0;  ///< lane simulation
    double error = 0;    ///< relative, from the evidence of its parts
    Evidence evidence = Evidence::unprobed;
    std::string refusal;  ///< not empty: it can't run there, and why
  };

  std::int64_t batch = 0;
  std::vector<std::string> devices;  ///< [0] is the host
  bool host_computes = true;
  std::vector<NodeCost> nodes;
  std::vector<ValueCost> values;
  std::vector<int> placement;  ///< the plan's, by node
  double plan_seconds = 0;     ///< lane simulation of the plan
  double serial_seconds = 0;   ///< sum of its parts, what the planner makes least
  Evidence evidence = Evidence::unprobed;
  std::string summary;               ///< "3 nodes on cpu, ..."
  std::vector<Alone> alone;          ///< per device; the host refuses if it isn't among the devices
  std::vector<double> memory_bytes;  ///< per device, of the plan
};

/// One addend of a placement's sum.
struct CostPart {
  double seconds = 0;
  Evidence evidence = Evidence::unprobed;
};
/// The parts of a placement's serial sum by what they are: "node N on D", "V to D", "V from D".
/// Copies as in placement.hpp: once per value and destination. Infinity for a node that can't run
/// where it is put.
std::map<std::string, CostPart> cost_parts(const BatchCosts& costs,
                                           const std::vector<int>& placement);
double sum_of(const std::map<std::string, CostPart>& parts);
/// That of all parts that take time; `mixed` if they differ.
Evidence evidence_of(const std::map<std::string, CostPart>& parts);

/// Relative error of a sum, were each evidence's error common to all its parts.
double relative_error_of(const std::map<std::string, CostPart>& parts);

/// The time of a plan that uses one device, with its error.
BatchCosts::Alone alone_time(const Graph& graph, const Plan& plan);

/// Plans a model at one batch after another and keeps what each costs. Not thread-safe; refers to
/// its arguments.
class BatchSweep {
 public:
  /// `symbol`: the dimension that is the batch. Error invalid_argument if the model has none.
  BatchSweep(System& system, const Graph& model, const CostModel& costs, SessionOptions options,
             std::string symbol);
  const BatchCosts& at(std::int64_t batch);
  std::size_t planned() const { return by_batch_.size(); }
  const Graph& model() const { return model_; }

 private:
  System& system_;
  const Graph& model_;
  const CostModel& costs_;
  SessionOptions options_;
  std::string symbol_;
  std::map<std::int64_t, BatchCosts> by_batch_;
};

/// Of a plan that was made; `costs` is the model it was made with.
BatchCosts batch_costs(const PlannedModel& planned, const CostModel& costs, bool host_computes,
                       std::int64_t batch);

}  // namespace turnout
