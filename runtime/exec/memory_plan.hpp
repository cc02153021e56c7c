#pragma once

#include <cstddef>
#include <vector>

namespace turnout {

/// A block that is needed from step `first` to step `last`, both included.
struct Block {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< one per block, multiples of kAlignment
  std::size_t bytes = 0;             ///< of the whole arena

  static constexpr std::size_t kAlignment = 256;
};

/// Offsets in one arena such that blocks alive at the same step don't overlap: largest first, each
/// at the lowest free place. Pure, deterministic, O(blocks^2).
/// Source: "greedy by size" of Pisarchyk and Lee, 2020.
MemoryPlan plan_memory(const std::vector<Block>& blocks);

}  // namespace turnout
