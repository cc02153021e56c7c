#pragma once

#include "runtime/plan/placement_search.hpp"

namespace turnout {

/// The result of a search within memory limits; internal to runtime/plan.
struct LimitedPlacement {
  PlacementCandidate best;
  bool feasible = false;
};

/// A fast placement within the memory limits. `unlimited` is the placement without them.
LimitedPlacement place_within_memory(const PlacementIndex& index,
                                     const PlacementCandidate& unlimited);

/// A lower bound on the serial sum within the memory limits, at least `unlimited_bound`, which
/// must be one without them.
double memory_lower_bound(const PlacementIndex& index, double unlimited_bound);

}  // namespace turnout
