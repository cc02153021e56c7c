#pragma once

#include <string>
#include <vector>

#include "runtime/plan/placement_index.hpp"

namespace turnout {

/// A placement under search; internal to runtime/plan.
struct PlacementCandidate {
  std::vector<int> devices;
  double seconds = 0.0;
};

/// Takes `devices` into `best` if it is faster (or `best` is empty).
void keep_faster(const PlacementIndex& index, const std::vector<int>& devices,
                 PlacementCandidate& best);

/// The least serial sum without memory limits: exact with up to two devices; with more, expansion
/// moves from the best pair.
PlacementCandidate place_unlimited(const PlacementIndex& index, int max_rounds);

/// Expansions and exchanges in turn, until a whole round of them brings nothing or `max_rounds` is
/// reached.
void improve_placement(const PlacementIndex& index, int max_rounds, PlacementCandidate& best);

/// The same problem with all devices but the host merged into one that is each node's and each
/// copy's fastest and has the memory of all. Every placement maps to one that takes no longer, so
/// its optimum is a lower bound.
PlacementIndex merge_devices(const PlacementIndex& index);

/// Exact optimum of a problem with one or two devices, memory limits apart.
PlacementCandidate place_pair(const PlacementIndex& index);

}  // namespace turnout
