#pragma once

#include <vector>

#include "runtime/plan/placement_index.hpp"

namespace turnout {

/// The best of all placements that differ from `base` by moving any set of the `movable` nodes to
/// device `target`: exact, by one minimum cut. Of equal ones, the one with fewest copies, then with
/// fewest moves, is taken. Nodes that can't run on `target` stay. Movable nodes that can't run
/// where `base` has them move for certain. Memory limits are not looked at.
/// Internal to runtime/plan.
std::vector<int> best_expansion(const PlacementIndex& index, const std::vector<int>& base,
                                int target, const std::vector<char>& movable);

}  // namespace turnout
