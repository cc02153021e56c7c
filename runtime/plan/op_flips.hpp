#pragma once

#include <string>
#include <vector>

#include "runtime/plan/crossover.hpp"

namespace turnout {

/// From which batch on one op alone is faster on another device than on `home`.
struct OpFlip {
  std::string node, op, home, device;
  FlipBatch kernel;          ///< kernel times alone
  FlipBatch with_transfers;  ///< its inputs copied there and its outputs back
  Evidence home_evidence = Evidence::unprobed, device_evidence = Evidence::unprobed;
  std::string refusal;  ///< not empty: one of the two can't run it
};
/// Every node with a kernel at `first`, on every other device than the first that computes.
std::vector<OpFlip> op_flips(const CostsAt& costs, std::int64_t first, std::int64_t last);

}  // namespace turnout
