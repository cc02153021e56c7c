#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/report/machine.hpp"
#include "runtime/session.hpp"

namespace turnout {

/// "format" of the JSON that compare writes and report reads.
inline constexpr std::string_view kCompareFormat = "turnout-compare-1";

struct CompareOptions {
  std::vector<std::int64_t> batches;
  std::vector<std::string> devices;  ///< labels; "auto" plans over all the others
  std::vector<std::string> providers;
  std::map<std::string, Tensor, std::less<>> inputs;  ///< rows are repeated to fill a batch
  Bindings dims;                                      ///< of other symbols than the batch
  std::string batch_symbol;                           ///< empty: the first input's leading symbol
  int threads = 0;
  double budget_seconds = 1;  ///< per cell; at least one run
  double tolerance = 1e-4;    ///< of outputs, relative to their range
  /// Node times that plans may use and that measured rows are added to; null: those of this
  /// comparison alone.
  std::shared_ptr<CostHistory> history;
  /// Called before each cell: done, total, what.
  std::function<void(int, int, const std::string&)> progress;
};

/// One device at one batch.
struct CompareRow {
  std::string device;
  std::string host;  ///< letter of its machine in a report of several; empty otherwise
  std::int64_t batch = 0;
  double latency_seconds = 0;  ///< median of the runs, or predicted
  double spread = 0;           ///< (upper - lower quartile) / median; 0 for predictions
  int runs = 0;
  double transfer_seconds = 0;
  std::size_t memory_bytes = 0;
  Evidence evidence = Evidence::unprobed;
  double predicted_seconds = 0;  ///< what the plan said before a measured row ran; 0: not known
  Evidence predicted_evidence = Evidence::unprobed;
  bool executed = false;  ///< false: only the clock was advanced
  std::string skipped;    ///< reason; the row has no figures then
  double difference =
      -1;             ///< of outputs to the first row's, relative to their range; < 0: not compared
  std::string nodes;  ///< "onednn 56, kokkos 2" or the plan's summary
  /// Seconds and op of each node, where known (plan order).
  struct NodeTime {
    std::string name, op, device, provider;
    double seconds;
    Evidence evidence;
  };
  std::vector<NodeTime> node_times;
};

/// Batch from which on one device is faster than another. `low` and `high` are the tried batches
/// around it (equal: the smallest tried batch already).
struct Crossover {
  std::string from, to;
  std::int64_t batch = 0, low = 0, high = 0;
};

struct Comparison {
  std::string model;
  std::string model_digest;  ///< of the imported graph: the same for the same model
  std::string input_digest;
  std::vector<Machine> machines;  ///< one; in a merged report several: A, B, ...
  std::vector<CompareRow> rows;
  std::vector<Crossover> crossovers;
  std::vector<std::string>
      notes;  ///< what a reader has to know: random inputs, unequal outputs ...
  bool outputs_agree = true;
  /// The fastest row at a batch, among measured, predicted and mixed ones alike; null if none.
  const CompareRow* winner(std::int64_t batch) const;
};

/// Runs the same inputs on every device and batch. CPU rows are measured and feed the plans of
/// "auto". Virtual devices execute at the smallest and one middle batch to check their outputs;
/// elsewhere only their clock advances.
Comparison compare(const std::shared_ptr<System>& system, const Graph& model,
                   const CompareOptions& options);

/// "cpu" of "cpu [A]": the device without the letter that a report of several machines adds.
std::string_view base_device(std::string_view label);

/// How far the plans' predictions were from what was then measured, by device and evidence: mean
/// and largest |predicted / measured - 1| over the rows that have both.
struct PredictionError {
  std::string device;
  Evidence evidence = Evidence::unprobed;
  double mean = 0, worst = 0;
  int rows = 0;
};
std::vector<PredictionError> prediction_errors(const Comparison& comparison);

std::string to_text(const Comparison& comparison);
std::string to_json(const Comparison& comparison);

/// Largest |a - b| over all outputs, each relative to the range of b; infinity for shapes that
/// differ or NaN on one side only.
double output_difference(std::span<const Tensor> a, std::span<const Tensor> b);

/// Random tensors, or a tensor's rows repeated until `spec` is filled. Error naming the input if
/// the given tensor doesn't fit.
Tensor make_input(const std::string& name, const TensorSpec& spec, const Tensor* given,
                  bool batched);

/// The symbol `--batch` stands for: the leading one of the first input that has one; "" if none.
std::string batch_symbol_of(const Graph& model);

}  // namespace turnout
