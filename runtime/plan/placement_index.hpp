#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/plan/placement.hpp"

namespace turnout {

/// A checked PlacementProblem as flat arrays, for the search; internal to runtime/plan.
/// Pins are folded into `seconds` (infinity elsewhere). Steps are node indices.
struct PlacementIndex {
  /// Throws std::invalid_argument, naming the node, value or device that is wrong.
  explicit PlacementIndex(const PlacementProblem& problem);

  double node_seconds(int node, int device) const { return seconds[at(node, device)]; }
  double upload(int value, int device) const { return h2d[at(value, device)]; }
  double download(int value, int device) const { return d2h[at(value, device)]; }
  bool can_run(int node, int device) const;
  std::span<const int> consumers(int value) const;  ///< each once, ascending
  std::span<const int> touched(int node) const;     ///< values in and out, each once

  /// Seconds of copies of one value.
  double copy_seconds(int value, const std::vector<int>& assignment) const;
  /// evaluate(). Large finite costs add up to the largest double, not to infinity.
  double serial_seconds(const std::vector<int>& assignment) const;
  /// Change of serial_seconds() if `node` alone moved to `device`.
  double move_seconds(int node, int device, std::vector<int>& assignment) const;
  /// Constants that nodes on `device` consume.
  double resident_bytes(int device, const std::vector<int>& assignment) const;
  std::vector<double> peak_bytes(const std::vector<int>& assignment) const;
  bool fits(const std::vector<int>& assignment) const;

  std::size_t at(int row, int device) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(device_count) +
           static_cast<std::size_t>(device);
  }

  int device_count = 0;
  int node_count = 0;
  int value_count = 0;
  std::vector<double> seconds;  ///< node x device
  std::vector<double> h2d;      ///< value x device
  std::vector<double> d2h;
  std::vector<double> bytes;
  std::vector<double> limit_bytes;  ///< per device
  std::vector<int> producer;
  std::vector<char> is_graph_output;
  std::vector<char> is_free;      ///< copies cost nothing
  std::vector<char> is_resident;  ///< memory for the whole run where it is consumed

 private:
  struct Lifetimes;

  void find_lifetimes(int value, const std::vector<int>& assignment, Lifetimes& lifetimes) const;
  void add_consumers(const PlacementProblem& problem);

  std::vector<int> first_consumer_;
  std::vector<int> consumers_;
  std::vector<int> first_touched_;
  std::vector<int> touched_;
};

}  // namespace turnout
