#pragma once

#include <string>
#include <vector>

#include "runtime/plan/plan.hpp"

namespace turnout {

/// What a plan gives one device to do.
struct DeviceShare {
  std::string device;
  int nodes = 0;  ///< with a kernel
  double seconds = 0;
  Evidence evidence = Evidence::unprobed;
  int copies = 0;  ///< to it and from it; for the host, none (each is counted at the other end)
  std::int64_t copy_bytes = 0;
  double copy_seconds = 0;
};
/// One per device of the plan, in its order.
std::vector<DeviceShare> device_shares(const Plan& plan);

/// Why a node is not on `device`: every refusal there, or that it takes longer there.
std::string reason_not_on(const Plan& plan, std::size_t node, int device);

/// Error unsupported, listing nodes and reasons, if a node with a kernel isn't on `device`;
/// invalid_argument if the plan has no such device.
void require_device(const Graph& graph, const Plan& plan, std::string_view device);

}  // namespace turnout
