#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/graph.hpp"
#include "runtime/cost/cost_model.hpp"
#include "runtime/exec/context.hpp"
#include "runtime/plan/plan.hpp"
#include "runtime/system.hpp"

namespace turnout {

struct SessionOptions {
  Bindings dims;                               ///< sizes of the graph's symbolic dimensions
  std::vector<std::string> devices = {"cpu"};  ///< the plan chooses among these
  std::vector<std::string> providers;          ///< if not empty: the only ones allowed on the CPU
  int threads = 0;                             ///< of the host; 0: every core
  int contexts = 1;                            ///< runs that may be under way at once
  std::map<std::string, std::string> pins;     ///< node name -> device
  WeightPolicy weights;    ///< counted in the plan; streamed weights can't be run yet
  bool alternate = false;  ///< for tests: every node changes device
  bool fold = true;
  bool fuse = true;
  bool choose_layouts = true;  ///< false: plain layouts only
};

/// A model made ready for one set of sizes on one set of devices: optimized, planned, kernels
/// prepared. Immutable; run() may be called from several threads (up to `contexts` at once, others
/// wait). Keeps its System alive.
class Session {
 public:
  /// Errors: unbound dimensions, nodes nobody takes, devices that don't exist or are too small.
  Session(std::shared_ptr<System> system, const Graph& model, const CostModel& costs,
          const SessionOptions& options);

  struct Io {
    std::string name;
    TensorSpec spec;
  };
  std::span<const Io> inputs() const { return inputs_; }
  std::span<const Io> outputs() const { return outputs_; }

  /// Runs on host tensors in the order of inputs(); returns new host tensors. Blocks.
  /// Error invalid_argument naming input, expected and given spec.
  std::vector<Tensor> run(std::span<const Tensor> inputs) const;
  /// Into given tensors: allocates nothing.
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) const;

  /// On addresses of host memory, each of as many bytes as its spec says; allocates nothing.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs) const;

  /// One run with the time of each program step; see Context::run_timed.
  struct Timing {
    std::vector<double> step_seconds;  ///< by program().steps
    double latency_seconds = 0;        ///< lane simulation of them; without other devices their sum
    /// A thread of this process lost its core for a share of the time that matters: what a machine
    /// with other work shows says little of one without.
    bool disturbed = false;
  };
  Timing run_timed(std::span<const Tensor> inputs, std::span<Tensor> outputs) const;
  /// Adds the measured steps of a timing, those of devices that aren't virtual, to a history;
  /// those of a disturbed one not to be kept.
  void record(const Timing& timing, CostHistory& history) const;
  /// Predicted latency of this program: lane simulation of the plan's predicted times.
  double predicted_seconds() const { return plan_.predicted_seconds; }

  const Graph& graph() const { return graph_; }  ///< optimized and bound
  const Plan& plan() const { return plan_; }
  const Program& program() const { return program_; }
  /// Bytes on a device: weights and packed copies, arenas of all contexts.
  std::size_t memory_bytes(int device) const;

 private:
  class Lease;
  void check(std::span<const Tensor> tensors, std::span<const Io> wanted, const char* what) const;
  void bind(Context& context, std::span<const Tensor> inputs, std::span<Tensor> outputs) const;

  std::shared_ptr<System> system_;
  Graph graph_;
  Plan plan_;
  Program program_;
  std::vector<Io> inputs_;
  std::vector<Io> outputs_;
  std::vector<std::unique_ptr<Context>> contexts_;
  mutable std::atomic<std::uint64_t> free_contexts_{0};  // one bit each
};

/// The plan of a model without preparing it: no kernel is made, nothing runs.
struct PlannedModel {
  Graph graph;
  Plan plan;
};
PlannedModel plan_model(System& system, const Graph& model, const CostModel& costs,
                        const SessionOptions& options);

}  // namespace turnout
