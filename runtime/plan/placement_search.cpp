// More than two devices.
//
// Pairs first: for each two devices the exact optimum among placements on them (nodes that neither
// can run go to their fastest device). Then, from the best pair, moves that are exact cuts:
//   expansion of d       any set of nodes moves to d
//   exchange of (a, b)   the nodes on a and b are divided anew between the two
// until none helps. A move is taken only if the serial sum falls, so this ends, and never above
// the best pair.
#include "runtime/plan/placement_search.hpp"

#include <algorithm>
#include <limits>

#include "runtime/plan/placement_cut.hpp"

namespace turnout {
namespace {

int fastest_device(const PlacementIndex& index, int node) {
  int best = 0;
  for (int d = 1; d < index.device_count; ++d) {
    if (index.node_seconds(node, d) < index.node_seconds(node, best)) best = d;
  }
  return best;
}

// Divides the nodes that `may_move` marks between devices `a` and `b`.
std::vector<int> divide(const PlacementIndex& index, std::vector<int> devices, int a, int b,
                        const std::vector<char>& may_move) {
  for (int n = 0; n < index.node_count; ++n) {
    const auto node = static_cast<std::size_t>(n);
    if (may_move[node] != 0) devices[node] = index.can_run(n, a) ? a : b;
  }
  return best_expansion(index, devices, b, may_move);
}

std::vector<int> place_on_pair(const PlacementIndex& index, int a, int b) {
  std::vector<int> devices(static_cast<std::size_t>(index.node_count));
  std::vector<char> may_move(devices.size());
  for (int n = 0; n < index.node_count; ++n) {
    const auto node = static_cast<std::size_t>(n);
    devices[node] = fastest_device(index, n);
    may_move[node] = index.can_run(n, a) || index.can_run(n, b) ? 1 : 0;
  }
  return divide(index, std::move(devices), a, b, may_move);
}

std::vector<int> exchange(const PlacementIndex& index, const std::vector<int>& devices, int a,
                          int b) {
  std::vector<char> may_move(devices.size());
  std::transform(devices.begin(), devices.end(), may_move.begin(),
                 [&](int d) { return static_cast<char>(d == a || d == b); });
  return divide(index, devices, a, b, may_move);
}

}  // namespace

void keep_faster(const PlacementIndex& index, const std::vector<int>& devices,
                 PlacementCandidate& best) {
  const double seconds = index.serial_seconds(devices);
  if (best.devices.size() == devices.size() && seconds >= best.seconds) return;
  best = {devices, seconds};
}

PlacementCandidate place_pair(const PlacementIndex& index) {
  PlacementCandidate best;
  best.devices.assign(static_cast<std::size_t>(index.node_count), 0);
  if (index.device_count == 2) best.devices = place_on_pair(index, 0, 1);
  best.seconds = index.serial_seconds(best.devices);
  return best;
}

void improve_placement(const PlacementIndex& index, int max_rounds, PlacementCandidate& best) {
  const std::vector<char> all(best.devices.size(), 1);
  int since_gain = 0;
  const int count = index.device_count;
  const int moves = count + count * (count - 1) / 2;
  const auto judge = [&](const std::vector<int>& devices) {
    const double before = best.seconds;
    keep_faster(index, devices, best);
    since_gain = best.seconds < before ? 0 : since_gain + 1;
    return since_gain < moves;
  };
  for (int round = 0; round < max_rounds; ++round) {
    for (int d = 0; d < count; ++d) {
      if (!judge(best_expansion(index, best.devices, d, all))) return;
    }
    for (int a = 0; a < count; ++a) {
      for (int b = a + 1; b < count; ++b) {
        if (!judge(exchange(index, best.devices, a, b))) return;
      }
    }
  }
}

PlacementCandidate place_unlimited(const PlacementIndex& index, int max_rounds) {
  if (index.device_count <= 2) return place_pair(index);
  PlacementCandidate best;
  best.seconds = std::numeric_limits<double>::infinity();
  for (int a = 0; a < index.device_count; ++a) {
    for (int b = a + 1; b < index.device_count; ++b) {
      keep_faster(index, place_on_pair(index, a, b), best);
    }
  }
  improve_placement(index, max_rounds, best);
  PlacementCandidate other;
  std::vector<int> fastest(best.devices.size());
  for (int n = 0; n < index.node_count; ++n) {
    fastest[static_cast<std::size_t>(n)] = fastest_device(index, n);
  }
  keep_faster(index, fastest, other);
  improve_placement(index, max_rounds, other);
  keep_faster(index, other.devices, best);
  return best;
}

PlacementIndex merge_devices(const PlacementIndex& index) {
  if (index.device_count <= 2) return index;
  PlacementIndex merged = index;
  const auto merge = [&](const std::vector<double>& from, std::vector<double>& to) {
    to.clear();
    const auto count = static_cast<std::size_t>(index.device_count);
    for (std::size_t row = 0; row < from.size(); row += count) {
      const auto first = from.begin() + static_cast<std::ptrdiff_t>(row);
      to.push_back(*first);
      to.push_back(*std::min_element(first + 1, first + index.device_count));
    }
  };
  merge(index.seconds, merged.seconds);
  merge(index.h2d, merged.h2d);
  merge(index.d2h, merged.d2h);
  merged.limit_bytes = {index.limit_bytes[0], 0.0};
  for (std::size_t d = 1; d < index.limit_bytes.size(); ++d) {
    merged.limit_bytes[1] += index.limit_bytes[d];
  }
  merged.device_count = 2;
  return merged;
}

}  // namespace turnout
