#include "core/kernel.hpp"

#include <algorithm>

namespace turnout {

bool same_layout(const LayoutPtr& a, const LayoutPtr& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a == b || (a->provider() == b->provider() && a->equals(*b));
}

void KernelArgs::throw_wrong_device(const Operand& operand) const {
  const auto name = [](const Device* device) -> std::string_view {
    return device == nullptr ? "the host" : std::string_view(device->info().name);
  };
  fail(ErrorCode::internal, "a kernel of {} was given memory of {}: a copy is missing",
       name(device_), name(operand.device));
}

void KernelRegistry::add(KernelEntry entry) {
  if (std::find(providers_.begin(), providers_.end(), entry.provider) == providers_.end()) {
    providers_.push_back(entry.provider);
  }
  by_op_[entry.op].push_back(std::move(entry));
}

void KernelRegistry::add_reorder(std::string provider, MakeReorder make) {
  reorders_.insert_or_assign(std::move(provider), std::move(make));
}

std::vector<const KernelEntry*> KernelRegistry::accepting(const NodeInfo& info,
                                                          const DeviceInfo& device,
                                                          std::span<const std::string> providers,
                                                          std::vector<Refusal>* refusals) const {
  std::vector<const KernelEntry*> result;
  const auto kernels = by_op_.find(info.op->name);
  for (const std::string& provider : providers) {
    bool has_kernel = false;
    std::string reason;
    bool taken = false;
    if (kernels != by_op_.end()) {
      for (const KernelEntry& entry : kernels->second) {
        if (entry.provider != provider) continue;
        has_kernel = true;
        Acceptance answer = entry.accepts(info, device);
        if (answer.ok) {
          result.push_back(&entry);
          taken = true;
          break;
        }
        reason += (reason.empty() ? "" : "; ") + answer.reason;
      }
    }
    if (taken || refusals == nullptr) continue;
    refusals->push_back({provider, has_kernel ? reason : "no kernel for " + info.op->name});
  }
  return result;
}

KernelRegistry::Selection KernelRegistry::select(const NodeInfo& info, const DeviceInfo& device,
                                                 std::span<const std::string> providers) const {
  Selection selection;
  for (std::size_t i = 0; i < providers.size(); ++i) {
    const auto taken = accepting(info, device, providers.subspan(i, 1), &selection.refusals);
    if (taken.empty()) continue;
    selection.entry = taken.front();
    break;
  }
  return selection;
}

bool KernelRegistry::has_kernel(std::string_view op, std::string_view provider) const {
  const auto kernels = by_op_.find(op);
  return kernels != by_op_.end() &&
         std::any_of(kernels->second.begin(), kernels->second.end(),
                     [&](const KernelEntry& entry) { return entry.provider == provider; });
}

std::size_t KernelRegistry::kernel_count(std::string_view provider) const {
  std::size_t count = 0;
  for (const auto& [op, entries] : by_op_) {
    count += static_cast<std::size_t>(
        std::count_if(entries.begin(), entries.end(),
                      [&](const KernelEntry& entry) { return entry.provider == provider; }));
  }
  return count;
}

const MakeReorder* KernelRegistry::reorder(std::string_view provider) const {
  const auto at = reorders_.find(provider);
  return at == reorders_.end() ? nullptr : &at->second;
}

}  // namespace turnout
