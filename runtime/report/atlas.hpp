#pragma once

#include <string>
#include <vector>

#include "runtime/cost/cost_model.hpp"
#include "runtime/plan/crossover.hpp"

namespace turnout {

/// Where a device starts to win, over more than the batch: link speed, threads of the CPU, and
/// weights that stay or are streamed.
struct AtlasAxes {
  std::int64_t first = 1, last = 256;
  std::vector<double> link_factors = {0.5, 1, 2, 4};  ///< of the device's link
  std::vector<int> threads;                           ///< of the CPU
  std::vector<bool> streamed = {false, true};         ///< weights
};

/// One device against the CPU under one setting.
struct AtlasCell {
  std::string device;
  int threads = 1;
  bool streamed = false;
  double link_factor = 1;
  double link_bytes_per_s = 0;  ///< to the device
  FlipBatch device_alone;       ///< from when on the device alone is faster than the CPU alone
  UncertainRange range;         ///< of that; only if it is not always or never
  FlipBatch plan;               ///< from when on the automatic plan uses the device at all
  Evidence cpu_evidence = Evidence::unprobed, device_evidence = Evidence::unprobed;
  std::string refusal;  ///< not empty: the device or the CPU can't run the model
};

struct Atlas {
  std::string model;
  AtlasAxes axes;
  std::string dtypes;  ///< of the model's weighted nodes
  std::vector<AtlasCell> cells;
};

/// Plans one device after another against the CPU at every setting. `costs_for(threads)` is the
/// cost model of that many threads.
Atlas make_atlas(System& system, const Graph& model, SessionOptions options,
                 const std::string& symbol, const std::vector<std::string>& devices,
                 const AtlasAxes& axes, const std::function<CostModel(int)>& costs_for);

/// The table, and which axes can't be varied and why.
std::string to_text(const Atlas& atlas);
std::string to_json(const Atlas& atlas);

}  // namespace turnout
