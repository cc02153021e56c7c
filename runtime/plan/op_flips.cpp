#include "runtime/plan/op_flips.hpp"

#include <algorithm>

namespace turnout {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Copies of what the node reads, weights as the plan counts them, and of what it makes.
double transfer_seconds(const BatchCosts& costs, const BatchCosts::NodeCost& node, int device) {
  std::vector<int> inputs = node.inputs;
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  double seconds = 0;
  for (int v : inputs) {
    const BatchCosts::ValueCost& value = costs.values[at(v)];
    if (!value.free) seconds += value.to_device[at(device)].seconds;
  }
  for (int v : node.outputs) seconds += costs.values[at(v)].to_host[at(device)].seconds;
  return seconds;
}

// By name, first at `guess`: at another batch a node may have another index, or be gone.
const BatchCosts::NodeCost* find_node(const BatchCosts& costs, const std::string& name,
                                      std::size_t guess) {
  if (guess < costs.nodes.size() && costs.nodes[guess].name == name) return &costs.nodes[guess];
  const auto found = std::find_if(costs.nodes.begin(), costs.nodes.end(),
                                  [&](const auto& node) { return node.name == name; });
  return found == costs.nodes.end() ? nullptr : &*found;
}

bool wins(const BatchCosts& costs, const BatchCosts::NodeCost* node, int home, int device,
          bool with_transfers) {
  if (node == nullptr || !node->on[at(device)].possible) return false;
  if (!node->on[at(home)].possible) return true;
  const double there =
      node->on[at(device)].seconds + (with_transfers ? transfer_seconds(costs, *node, device) : 0);
  return there < node->on[at(home)].seconds;
}

}  // namespace

std::vector<OpFlip> op_flips(const CostsAt& costs, std::int64_t first, std::int64_t last) {
  std::vector<OpFlip> flips;
  const BatchCosts& start = costs(first);
  const int home = start.host_computes ? 0 : 1;
  for (std::size_t n = 0; n < start.nodes.size(); ++n) {
    const BatchCosts::NodeCost& node = start.nodes[n];
    if (node.view) continue;
    for (int d = home + 1; d < static_cast<int>(start.devices.size()); ++d) {
      OpFlip flip;
      flip.node = node.name;
      flip.op = node.op;
      flip.home = start.devices[at(home)];
      flip.device = start.devices[at(d)];
      flip.home_evidence = node.on[at(home)].evidence;
      flip.device_evidence = node.on[at(d)].evidence;
      for (int needed : {home, d}) {
        if (node.on[at(needed)].possible) continue;
        flip.refusal = fmt::format("{} has no kernel for it", start.devices[at(needed)]);
      }
      const auto flip_for = [&](bool with_transfers) {
        return flip_of(first, last, [&](std::int64_t batch) {
          const BatchCosts& there = costs(batch);
          return wins(there, find_node(there, node.name, n), home, d, with_transfers);
        });
      };
      if (flip.refusal.empty()) {
        flip.kernel = flip_for(false);
        flip.with_transfers = flip_for(true);
      }
      flips.push_back(std::move(flip));
    }
  }
  return flips;
}

}  // namespace turnout
