#pragma once

#include <limits>
#include <string>
#include <vector>

namespace turnout {

/// Which device runs which node, so that the serial sum is least: all node times plus all copies,
/// nothing overlapped. Device 0 is the host; the others reach each other only through it.
///
/// Copies are charged once per (value, direction or destination), however many consumers a value
/// has. A value starts on its producer's device (a graph input: on the host). It is uploaded once
/// to each other device that consumes it; it is downloaded once if it was produced on a device and
/// is wanted anywhere else. Example: a value of node 0 on device 1, consumed on the host and on
/// device 2, costs d2h[1] + h2d[2].
///
/// All functions here are pure and deterministic: no clock, no I/O, no shared state. They throw
/// std::invalid_argument (the message names the node, value or device) and std::bad_alloc only.

constexpr double kUnlimitedBytes = std::numeric_limits<double>::infinity();

struct PlacementDevice {
  std::string name;  ///< for messages only
  double memory_limit_bytes = kUnlimitedBytes;
};

struct PlacementNode {
  std::string name;             ///< for messages only
  std::vector<double> seconds;  ///< one per device, >= 0; infinity: can't run there
  std::vector<int> inputs;      ///< value indices; a repeated one counts once
  std::vector<int> outputs;     ///< value indices
  int pin = -1;                 ///< the only device allowed, -1: any
};

struct PlacementValue {
  std::vector<double> h2d_seconds;  ///< host to device, one per device, finite; [0] is not used;
  std::vector<double> d2h_seconds;  ///< device to host, likewise. Empty: copies cost nothing
  double bytes = 0.0;
  int producer = -1;             ///< node index, -1: graph input or constant
  bool is_graph_output = false;  ///< must end on the host
  bool free = false;             ///< a constant: resident where it is consumed, no copy in a run
  bool resident = false;  ///< takes memory as a constant does; unless `free`, its upload is charged
};

/// Nodes are in topological order. At least one and at most 64 devices.
struct PlacementProblem {
  std::vector<PlacementDevice> devices;
  std::vector<PlacementNode> nodes;
  std::vector<PlacementValue> values;
};

struct PlacementOptions {
  bool check_memory = true;  ///< false: memory limits are ignored
  /// Rounds of moves with more than two devices. Fewer is faster (0: the best pair alone); the
  /// result is never worse than the best pair of devices all the same.
  int max_rounds = 8;
};

struct Placement {
  std::vector<int> devices;        ///< one per node
  double seconds = 0.0;            ///< evaluate() of `devices`
  double lower_bound = 0.0;        ///< no placement within the limits takes less
  double gap = 0.0;                ///< (seconds - lower_bound) / seconds; 0: proved optimal
  std::vector<double> peak_bytes;  ///< peak_bytes() of `devices`
  bool feasible = true;            ///< false: no placement within the memory limits was found
  std::string method;              ///< "minimum cut", ...
};

/// The serial sum of a placement, the truth all search is judged by. `assignment`: device per
/// node. Infinity if a node can't run where it is put, or is pinned elsewhere.
double evaluate(const PlacementProblem& problem, const std::vector<int>& assignment);

/// Memory each device needs: all constants its nodes consume, plus the most bytes of other values
/// alive there at one step. On a device a value lives from the first to the last step on that
/// device that produces or consumes it. On the host it lives from its production (a graph input:
/// from the start) to its last consumer that is not on its producer's device (a graph output: to
/// the end), if it comes there at all. Workspace and allocator rounding are the caller's: lower the
/// limit by them.
std::vector<double> peak_bytes(const PlacementProblem& problem, const std::vector<int>& assignment);

/// Finds a placement.
/// - One or two devices without memory limits: the optimum (minimum cut), up to rounding of 1e-12.
/// - More devices: the best of the exact two-device placements, improved by expansion moves, each
///   the exact optimum among all placements that move any set of nodes to one device. Never worse
///   than the best pair or single device. The lower bound merges all devices but the host into one.
/// - Memory limits that the above breaks: Lagrange multipliers and repair. A placement is found
///   if there is one, given that the host is unlimited and that no node which can't run on the
///   host has a choice of devices; otherwise it is searched for within a fixed effort.
Placement place(const PlacementProblem& problem, const PlacementOptions& options = {});

/// Per node, the seconds lost (negative: won) if it alone moved to its best other device; infinity
/// if there is none. Memory limits are not looked at.
std::vector<double> margins(const PlacementProblem& problem, const std::vector<int>& assignment);

/// Tries every placement, memory limits included; for tests. Throws for more than 2^24 placements.
Placement brute_force(const PlacementProblem& problem);

}  // namespace turnout
