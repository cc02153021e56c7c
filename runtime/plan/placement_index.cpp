#include "runtime/plan/placement_index.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace turnout {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::size_t kMaxDevices = 64;

[[noreturn]] void fail(const std::string& what) { throw std::invalid_argument("[place] " + what); }

std::string node_label(const PlacementProblem& problem, std::size_t node) {
  return "node '" + problem.nodes[node].name + "' (" + std::to_string(node) + ")";
}

std::string device_label(const PlacementProblem& problem, std::size_t device) {
  return "device '" + problem.devices[device].name + "' (" + std::to_string(device) + ")";
}

void check_node_costs(const PlacementProblem& problem, std::size_t n) {
  const PlacementNode& node = problem.nodes[n];
  const std::size_t devices = problem.devices.size();
  if (node.seconds.size() != devices) {
    fail(node_label(problem, n) + " has " + std::to_string(node.seconds.size()) + " times for " +
         std::to_string(devices) + " devices");
  }
  for (double seconds : node.seconds) {
    if (!(seconds >= 0.0)) fail(node_label(problem, n) + " has a negative or undefined time");
  }
  if (node.pin < -1 || node.pin >= static_cast<int>(devices)) {
    fail(node_label(problem, n) + " is pinned to device " + std::to_string(node.pin) + " of " +
         std::to_string(devices));
  }
  if (node.pin >= 0 && node.seconds[static_cast<std::size_t>(node.pin)] == kInfinite) {
    fail(node_label(problem, n) + " is pinned to " +
         device_label(problem, static_cast<std::size_t>(node.pin)) + ", which can't run it");
  }
  if (std::all_of(node.seconds.begin(), node.seconds.end(),
                  [](double seconds) { return seconds == kInfinite; })) {
    fail(node_label(problem, n) + " can't run on any device");
  }
}

void check_node_values(const PlacementProblem& problem, std::size_t n) {
  const PlacementNode& node = problem.nodes[n];
  const int values = static_cast<int>(problem.values.size());
  for (int v : node.inputs) {
    if (v < 0 || v >= values) fail(node_label(problem, n) + " reads a value that doesn't exist");
    if (problem.values[static_cast<std::size_t>(v)].producer >= static_cast<int>(n)) {
      fail(node_label(problem, n) + " reads value " + std::to_string(v) + " before it is produced");
    }
  }
  for (int v : node.outputs) {
    if (v < 0 || v >= values) fail(node_label(problem, n) + " writes a value that doesn't exist");
    if (problem.values[static_cast<std::size_t>(v)].producer != static_cast<int>(n)) {
      fail(node_label(problem, n) + " writes value " + std::to_string(v) +
           ", whose producer is another");
    }
  }
}

void check_value(const PlacementProblem& problem, std::size_t v) {
  const PlacementValue& value = problem.values[v];
  const std::string label = "value " + std::to_string(v);
  for (const auto* costs : {&value.h2d_seconds, &value.d2h_seconds}) {
    if (!costs->empty() && costs->size() != problem.devices.size()) {
      fail(label + " has " + std::to_string(costs->size()) + " copy times for " +
           std::to_string(problem.devices.size()) + " devices");
    }
    for (std::size_t d = 1; d < costs->size(); ++d) {
      if (!((*costs)[d] >= 0.0) || (*costs)[d] == kInfinite) {
        fail(label + " has a negative or infinite copy time");
      }
    }
  }
  if (!(value.bytes >= 0.0) || value.bytes == kInfinite) fail(label + " has no valid size");
  if (value.producer < -1 || value.producer >= static_cast<int>(problem.nodes.size())) {
    fail(label + " names a producer that doesn't exist");
  }
  if ((value.free || value.resident) && value.producer >= 0) {
    fail(label + " is a constant, yet a node produces it");
  }
  if (value.producer < 0) return;
  const auto& outputs = problem.nodes[static_cast<std::size_t>(value.producer)].outputs;
  if (std::find(outputs.begin(), outputs.end(), static_cast<int>(v)) == outputs.end()) {
    fail(label + " is not among the outputs of its producer, " +
         node_label(problem, static_cast<std::size_t>(value.producer)));
  }
}

void check(const PlacementProblem& problem) {
  if (problem.devices.empty() || problem.devices.size() > kMaxDevices) {
    fail(std::to_string(problem.devices.size()) + " devices; 1 to 64 are possible");
  }
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    if (!(problem.devices[d].memory_limit_bytes >= 0.0)) {
      fail(device_label(problem, d) + " has a negative or undefined memory limit");
    }
  }
  for (std::size_t n = 0; n < problem.nodes.size(); ++n) {
    check_node_costs(problem, n);
    check_node_values(problem, n);
  }
  for (std::size_t v = 0; v < problem.values.size(); ++v) check_value(problem, v);
}

std::uint64_t bit(int device) { return std::uint64_t{1} << device; }

}  // namespace

PlacementIndex::PlacementIndex(const PlacementProblem& problem) {
  check(problem);
  device_count = static_cast<int>(problem.devices.size());
  node_count = static_cast<int>(problem.nodes.size());
  value_count = static_cast<int>(problem.values.size());
  for (const PlacementDevice& device : problem.devices) {
    limit_bytes.push_back(device.memory_limit_bytes);
  }
  for (const PlacementNode& node : problem.nodes) {
    for (int d = 0; d < device_count; ++d) {
      const bool allowed = node.pin < 0 || node.pin == d;
      seconds.push_back(allowed ? node.seconds[static_cast<std::size_t>(d)] : kInfinite);
    }
  }
  const std::vector<double> no_cost(problem.devices.size(), 0.0);
  for (const PlacementValue& value : problem.values) {
    const auto& up = value.h2d_seconds.empty() ? no_cost : value.h2d_seconds;
    const auto& down = value.d2h_seconds.empty() ? no_cost : value.d2h_seconds;
    h2d.insert(h2d.end(), up.begin(), up.end());
    d2h.insert(d2h.end(), down.begin(), down.end());
    bytes.push_back(value.bytes);
    producer.push_back(value.producer);
    is_graph_output.push_back(value.is_graph_output ? 1 : 0);
    is_free.push_back(value.free ? 1 : 0);
    is_resident.push_back(value.free || value.resident ? 1 : 0);
  }
  add_consumers(problem);
}

void PlacementIndex::add_consumers(const PlacementProblem& problem) {
  std::vector<std::vector<int>> consumers(static_cast<std::size_t>(value_count));
  first_touched_.push_back(0);
  for (int n = 0; n < node_count; ++n) {
    const PlacementNode& node = problem.nodes[static_cast<std::size_t>(n)];
    for (int v : node.inputs) {
      auto& list = consumers[static_cast<std::size_t>(v)];
      if (!list.empty() && list.back() == n) continue;
      list.push_back(n);
      touched_.push_back(v);
    }
    std::vector<int> outputs = node.outputs;
    std::sort(outputs.begin(), outputs.end());
    outputs.erase(std::unique(outputs.begin(), outputs.end()), outputs.end());
    touched_.insert(touched_.end(), outputs.begin(), outputs.end());
    first_touched_.push_back(static_cast<int>(touched_.size()));
  }
  first_consumer_.push_back(0);
  for (const auto& list : consumers) {
    consumers_.insert(consumers_.end(), list.begin(), list.end());
    first_consumer_.push_back(static_cast<int>(consumers_.size()));
  }
}

bool PlacementIndex::can_run(int node, int device) const {
  return node_seconds(node, device) < kInfinite;
}

std::span<const int> PlacementIndex::consumers(int value) const {
  const auto v = static_cast<std::size_t>(value);
  const auto first = static_cast<std::size_t>(first_consumer_[v]);
  return std::span(consumers_)
      .subspan(first, static_cast<std::size_t>(first_consumer_[v + 1]) - first);
}

std::span<const int> PlacementIndex::touched(int node) const {
  const auto n = static_cast<std::size_t>(node);
  const auto first = static_cast<std::size_t>(first_touched_[n]);
  return std::span(touched_).subspan(first,
                                     static_cast<std::size_t>(first_touched_[n + 1]) - first);
}

double PlacementIndex::copy_seconds(int value, const std::vector<int>& assignment) const {
  const auto v = static_cast<std::size_t>(value);
  if (is_free[v] != 0) return 0.0;
  const int from = producer[v] < 0 ? 0 : assignment[static_cast<std::size_t>(producer[v])];
  std::uint64_t wanted = is_graph_output[v] != 0 ? bit(0) : 0;
  for (int consumer : consumers(value)) {
    wanted |= bit(assignment[static_cast<std::size_t>(consumer)]);
  }
  wanted &= ~bit(from);
  double sum = wanted != 0 && from != 0 ? download(value, from) : 0.0;
  for (int d = 1; d < device_count; ++d) {
    if ((wanted & bit(d)) != 0) sum += upload(value, d);
  }
  return sum;
}

double PlacementIndex::serial_seconds(const std::vector<int>& assignment) const {
  double sum = 0.0;
  for (int n = 0; n < node_count; ++n) {
    const double node = node_seconds(n, assignment[static_cast<std::size_t>(n)]);
    if (node == kInfinite) return kInfinite;
    sum += node;
  }
  for (int v = 0; v < value_count; ++v) sum += copy_seconds(v, assignment);
  return std::min(sum, std::numeric_limits<double>::max());
}

double PlacementIndex::move_seconds(int node, int device, std::vector<int>& assignment) const {
  int& place = assignment[static_cast<std::size_t>(node)];
  const int old = place;
  double before = node_seconds(node, old);
  double after = node_seconds(node, device);
  for (int v : touched(node)) before += copy_seconds(v, assignment);
  place = device;
  for (int v : touched(node)) after += copy_seconds(v, assignment);
  place = old;
  // Sums too large for a double tell nothing of their difference.
  if (before == kInfinite && after == kInfinite) return 0.0;
  return after - before;
}

// First and last step at which each device holds a value that is no constant.
struct PlacementIndex::Lifetimes {
  std::vector<int> first;
  std::vector<int> last;

  void clear(int devices, int steps) {
    first.assign(static_cast<std::size_t>(devices), steps);
    last.assign(static_cast<std::size_t>(devices), -1);
  }
  void touch(int device, int step) {
    const auto d = static_cast<std::size_t>(device);
    first[d] = std::min(first[d], step);
    last[d] = std::max(last[d], step);
  }
};

void PlacementIndex::find_lifetimes(int value, const std::vector<int>& assignment,
                                    Lifetimes& lifetimes) const {
  const auto v = static_cast<std::size_t>(value);
  const int steps = std::max(node_count, 1);
  lifetimes.clear(device_count, steps);
  const int made = std::max(producer[v], 0);
  const int from = producer[v] < 0 ? 0 : assignment[static_cast<std::size_t>(made)];
  lifetimes.touch(from, made);
  if (is_graph_output[v] != 0) {
    lifetimes.touch(0, made);
    lifetimes.touch(0, steps - 1);
  }
  for (int consumer : consumers(value)) {
    const int device = assignment[static_cast<std::size_t>(consumer)];
    lifetimes.touch(device, consumer);
    if (device == from) continue;
    lifetimes.touch(0, made);
    lifetimes.touch(0, consumer);
  }
}

double PlacementIndex::resident_bytes(int device, const std::vector<int>& assignment) const {
  double sum = 0.0;
  for (int v = 0; v < value_count; ++v) {
    if (is_resident[static_cast<std::size_t>(v)] == 0) continue;
    const auto users = consumers(v);
    const bool here = (device == 0 && is_graph_output[static_cast<std::size_t>(v)] != 0) ||
                      std::any_of(users.begin(), users.end(), [&](int n) {
                        return assignment[static_cast<std::size_t>(n)] == device;
                      });
    if (here) sum += bytes[static_cast<std::size_t>(v)];
  }
  return sum;
}

std::vector<double> PlacementIndex::peak_bytes(const std::vector<int>& assignment) const {
  const auto devices = static_cast<std::size_t>(device_count);
  std::vector<double> starts(devices * static_cast<std::size_t>(std::max(node_count, 1)), 0.0);
  std::vector<double> ends(starts.size(), 0.0);
  Lifetimes lifetimes;
  for (int v = 0; v < value_count; ++v) {
    if (is_resident[static_cast<std::size_t>(v)] != 0) continue;
    find_lifetimes(v, assignment, lifetimes);
    for (std::size_t d = 0; d < devices; ++d) {
      if (lifetimes.last[d] < 0) continue;
      starts[at(lifetimes.first[d], static_cast<int>(d))] += bytes[static_cast<std::size_t>(v)];
      ends[at(lifetimes.last[d], static_cast<int>(d))] += bytes[static_cast<std::size_t>(v)];
    }
  }
  std::vector<double> peak(devices, 0.0);
  std::vector<double> live(devices, 0.0);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t d = i % devices;
    live[d] += starts[i];
    peak[d] = std::max(peak[d], live[d]);
    live[d] -= ends[i];
  }
  for (std::size_t d = 0; d < devices; ++d) {
    peak[d] += resident_bytes(static_cast<int>(d), assignment);
  }
  return peak;
}

bool PlacementIndex::fits(const std::vector<int>& assignment) const {
  const std::vector<double> peak = peak_bytes(assignment);
  for (std::size_t d = 0; d < peak.size(); ++d) {
    if (peak[d] > limit_bytes[d]) return false;
  }
  return true;
}

}  // namespace turnout
