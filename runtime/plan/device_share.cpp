#include "runtime/plan/device_share.hpp"

#include "runtime/report/units.hpp"

namespace turnout {

std::vector<DeviceShare> device_shares(const Plan& plan) {
  std::vector<DeviceShare> shares;
  for (const DeviceSlot& device : plan.devices) shares.push_back({device.label});
  for (const NodePlan& node : plan.nodes) {
    if (node.chosen().kernel == nullptr) continue;
    DeviceShare& share = shares[static_cast<std::size_t>(node.device)];
    const Evidence evidence = node.chosen().evidence;
    const bool same = share.nodes == 0 || share.evidence == evidence;
    share.evidence = same ? evidence : Evidence::mixed;
    ++share.nodes;
    share.seconds += node.chosen().seconds;
  }
  for (const CopyPlan& copy : plan.copies) {
    DeviceShare& share = shares[static_cast<std::size_t>(copy.to != 0 ? copy.to : copy.from)];
    ++share.copies;
    share.copy_bytes += copy.bytes;
    share.copy_seconds += copy.seconds;
  }
  return shares;
}

std::string reason_not_on(const Plan& plan, std::size_t node, int device) {
  const NodePlan& planned = plan.nodes[node];
  const NodeOption& option = planned.options[static_cast<std::size_t>(device)];
  if (option.possible) {
    return fmt::format("{} ({}) there, {} ({}) on {}", format_seconds(option.seconds),
                       to_string(option.evidence), format_seconds(planned.chosen().seconds),
                       to_string(planned.chosen().evidence),
                       plan.devices[static_cast<std::size_t>(planned.device)].label);
  }
  std::string reasons;
  for (const auto& refusal : option.refusals) {
    reasons += fmt::format("{}{}{}{}", reasons.empty() ? "" : "; ", refusal.provider,
                           refusal.provider.empty() ? "" : ": ", refusal.reason);
  }
  return reasons.empty() ? "no kernel" : reasons;
}

void require_device(const Graph& graph, const Plan& plan, std::string_view label) {
  int device = -1;
  for (int d = 0; d < plan.device_count(); ++d) {
    if (plan.devices[static_cast<std::size_t>(d)].label == label) device = d;
  }
  if (device < 0) {
    fail(ErrorCode::invalid_argument, "required device '{}' isn't among the plan's devices", label);
  }
  std::string nodes;
  int count = 0;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    if (plan.nodes[n].device == device || plan.nodes[n].chosen().kernel == nullptr) continue;
    ++count;
    nodes += fmt::format("\n  {} ({}): {}", graph.nodes()[n].name, graph.nodes()[n].op->name,
                         reason_not_on(plan, n, device));
  }
  if (count == 0) return;
  fail(ErrorCode::unsupported, "{} {} of '{}' not on the required device '{}':{}", count,
       count == 1 ? "node is" : "nodes are", graph.name(), label, nodes);
}

}  // namespace turnout
