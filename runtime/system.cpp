#include "runtime/system.hpp"

#include <sched.h>

#include <algorithm>

namespace turnout {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool contains(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_provider(const KernelRegistry& kernels, const std::string& name) {
  if (contains(kernels.providers(), name)) return;
  fail(ErrorCode::not_found, "there is no provider '{}' in this build; there are: {}", name,
       fmt::join(kernels.providers(), ", "));
}

// "cpu:onednn": that one first, then the defaults.
std::vector<std::string> preferring(const std::vector<std::string>& first,
                                    const std::vector<std::string>& rest) {
  std::vector<std::string> result = first;
  for (const std::string& name : rest) {
    if (!contains(result, name)) result.push_back(name);
  }
  return result;
}

}  // namespace

int core_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

System::System() : System(make_backends()) {}

System::System(std::vector<std::unique_ptr<Backend>> backends)
    : backends_(std::move(backends)), kernels_(std::make_unique<Kernels[]>(backends_.size())) {}

const KernelRegistry& System::kernels(const Backend& backend) const {
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    if (backends_[i].get() != &backend) continue;
    Kernels& kernels = kernels_[i];
    std::call_once(kernels.filled, [&] { backend.register_kernels(kernels.registry); });
    return kernels.registry;
  }
  fail(ErrorCode::internal, "backend '{}' is of another system", backend.name());
}

void System::use_info(std::string_view device_name, DeviceInfo info) {
  const std::scoped_lock lock(mutex_);
  Figures& figures = figures_[std::string(device_name)];
  figures.times = std::make_shared<const DeviceTimes>(info);
  figures.info = std::make_shared<const DeviceInfo>(std::move(info));
}

DeviceSlot System::open(std::string_view label, std::span<const std::string> providers,
                        int threads) {
  const std::string_view family = label.substr(0, label.find(':'));
  std::vector<std::string> known;
  for (const auto& backend : backends_) {
    if (backend->name() != family) {
      known.emplace_back(backend->name());
      continue;
    }
    DeviceSlot slot;
    slot.label = label;
    slot.device = &backend->open(family == "cpu" ? family : label);
    slot.kernels = &kernels(*backend);
    slot.providers = backend->default_providers();
    if (family != "cpu") {
      const std::scoped_lock lock(mutex_);
      const DeviceInfo& info = slot.device->info();
      Figures& figures = figures_[info.name];
      if (figures.times == nullptr) figures.times = std::make_shared<const DeviceTimes>(info);
      slot.calibrated = figures.info;
      slot.times = figures.times;
      return slot;
    }
    slot.threads = threads > 0 ? threads : core_count();
    if (!providers.empty()) slot.providers.assign(providers.begin(), providers.end());
    if (label.size() > family.size()) {
      const auto named = split(label.substr(family.size() + 1), '+');
      slot.providers =
          providers.empty() && named.size() == 1 ? preferring(named, slot.providers) : named;
    }
    for (const std::string& name : slot.providers) check_provider(*slot.kernels, name);
    return slot;
  }
  fail(ErrorCode::not_found, "there is no device '{}': this build has devices of {}", label,
       fmt::join(known, ", "));
}

}  // namespace turnout
