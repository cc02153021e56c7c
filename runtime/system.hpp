#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.hpp"
#include "core/device_times.hpp"

namespace turnout {

/// A device that takes part in a plan, with the kernels that may run on it.
struct DeviceSlot {
  std::string label;  ///< as the user wrote it: "cpu", "cpu:onednn", "virtual:v100"
  Device* device = nullptr;
  const KernelRegistry* kernels = nullptr;
  std::vector<std::string> providers;            ///< allowed, best first
  int threads = 1;                               ///< host devices
  std::shared_ptr<const DeviceInfo> calibrated;  ///< replaces the device's own figures; may be null
  std::shared_ptr<const DeviceTimes> times;      ///< of kernels; null for the host
  const DeviceInfo& info() const { return calibrated != nullptr ? *calibrated : device->info(); }
};

/// The backends of this build and the devices opened through them. Sessions share one; it has to
/// outlive them and every tensor on its devices. Thread-safe after construction.
class System {
 public:
  System();
  /// Over backends of the caller's choice, the host's first.
  explicit System(std::vector<std::unique_ptr<Backend>> backends);

  /// Opens "cpu", "cpu:PROVIDER[+PROVIDER...]" or "virtual:PROFILE".
  /// "cpu:onednn" prefers that provider and leaves to the other ones what it refuses; never the
  /// reference. `providers`, if not empty, are the only ones allowed on the CPU.
  /// `threads`: of the host; 0 means every core.
  /// Error not_found for unknown devices or providers, naming what there is.
  DeviceSlot open(std::string_view label, std::span<const std::string> providers = {},
                  int threads = 0);

  /// Slots opened from now on see these figures of the device of that name.
  void use_info(std::string_view device_name, DeviceInfo info);

  std::span<const std::unique_ptr<Backend>> backends() const { return backends_; }
  /// Filled when first asked for: a backend may have to open a plugin to know its kernels.
  const KernelRegistry& kernels(const Backend& backend) const;

 private:
  struct Kernels {
    std::once_flag filled;
    KernelRegistry registry;
  };
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<Kernels[]> kernels_;  // one a backend
  struct Figures {
    std::shared_ptr<const DeviceInfo> info;  // null: the device's own
    std::shared_ptr<const DeviceTimes> times;
  };
  std::mutex mutex_;                                     // guards figures_
  std::map<std::string, Figures, std::less<>> figures_;  // by device
};

/// Number of cores this process may use.
int core_count();

}  // namespace turnout
