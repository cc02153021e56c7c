// The backend "virtual": devices that exist as a profile, emulated on the host.
#include "core/backend.hpp"

#include <map>
#include <mutex>

#include "backends/gpu/device.hpp"
#include "backends/gpu/profile.hpp"
#include "backends/gpu/profile_detail.hpp"

namespace turnout {
namespace {

constexpr std::string_view kPrefix = "virtual:";

class VirtualBackend final : public Backend {
 public:
  std::string_view name() const override { return "virtual"; }

  Device& open(std::string_view device_name) override {
    if (!device_name.starts_with(kPrefix)) {
      fail(ErrorCode::not_found, "there is no device '{}'; virtual devices are {}",
           profile_detail::printable(device_name), fmt::join(device_names(), ", "));
    }
    const std::scoped_lock lock(mutex_);
    if (const auto at = devices_.find(device_name); at != devices_.end()) return *at->second;
    const GpuProfile profile = load_profile(device_name.substr(kPrefix.size()));
    auto device = std::make_unique<gpu::GpuDevice>(driver_, 0, device_info(profile, device_name));
    return *devices_.emplace(device_name, std::move(device)).first->second;
  }

  std::vector<std::string> device_names() const override {
    std::vector<std::string> names;
    for (const std::string& profile : shipped_profiles()) {
      names.push_back(std::string(kPrefix) + profile);
    }
    return names;
  }

  void register_kernels(KernelRegistry& registry) const override {
    register_kokkos_kernels(registry);
  }

  std::vector<std::string> default_providers() const override { return {"kokkos"}; }

 private:
  std::shared_ptr<gpu::vendor::Driver> driver_ = gpu::vendor::open_driver({});
  std::mutex mutex_;  // guards devices_
  std::map<std::string, std::unique_ptr<gpu::GpuDevice>, std::less<>> devices_;
};

}  // namespace

std::unique_ptr<Backend> make_virtual_backend() { return std::make_unique<VirtualBackend>(); }

}  // namespace turnout
