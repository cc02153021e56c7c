#include "runtime/exec/memory_plan.hpp"

#include <algorithm>
#include <numeric>

namespace turnout {

MemoryPlan plan_memory(const std::vector<Block>& blocks) {
  const auto rounded = [](std::size_t bytes) {
    return (bytes + MemoryPlan::kAlignment - 1) / MemoryPlan::kAlignment * MemoryPlan::kAlignment;
  };
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  MemoryPlan plan;
  plan.offsets.assign(blocks.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t block : order) {
    const std::size_t bytes = rounded(blocks[block].bytes);
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      const bool together =
          blocks[other].first <= blocks[block].last && blocks[block].first <= blocks[other].last;
      if (!together) continue;
      if (plan.offsets[other] >= offset + bytes) break;
      offset = std::max(offset, plan.offsets[other] + rounded(blocks[other].bytes));
    }
    plan.offsets[block] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](std::size_t o, std::size_t b) { return o < plan.offsets[b]; });
    placed.insert(at, block);
  }
  return plan;
}

}  // namespace turnout
