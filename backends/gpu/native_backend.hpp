#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/gpu/device.hpp"
#include "core/backend.hpp"

namespace turnout::gpu {

/// The devices that the vendor's driver finds, named by the vendor's word and their number:
/// "cuda:0". Kernels are those of the vendor's libraries and of Kokkos.
class NativeBackend final : public Backend {
 public:
  /// `options`: vendor::parse_options().
  explicit NativeBackend(std::string_view options);

  std::string_view name() const override { return vendor::kName; }
  Device& open(std::string_view device_name) override;
  std::vector<std::string> device_names() const override;
  void register_kernels(KernelRegistry& registry) const override;
  std::vector<std::string> default_providers() const override;

  /// Empty when there are devices.
  const std::string& why_none() const { return found_.why_none; }

 private:
  std::shared_ptr<vendor::Driver> driver_;
  vendor::Found found_;
  std::mutex mutex_;  // guards devices_
  std::map<std::size_t, std::unique_ptr<GpuDevice>> devices_;
};

}  // namespace turnout::gpu
