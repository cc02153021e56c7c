#include "backends/gpu/native_backend.hpp"

#include <algorithm>

#include "backends/gpu/library.hpp"
#include "core/error.hpp"

namespace turnout::gpu {

NativeBackend::NativeBackend(std::string_view options)
    : driver_(vendor::open_driver(vendor::parse_options(options))),
      found_(vendor::find_devices(*driver_)) {}

std::vector<std::string> NativeBackend::device_names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < found_.devices.size(); ++i) {
    names.push_back(fmt::format("{}:{}", vendor::kName, i));
  }
  return names;
}

Device& NativeBackend::open(std::string_view device_name) {
  const std::vector<std::string> names = device_names();
  // The family's name alone is its first device.
  const auto at = device_name == vendor::kName ? names.begin()
                                               : std::find(names.begin(), names.end(), device_name);
  if (at == names.end()) {
    fail(ErrorCode::not_found, "there is no device '{}'; there are: {}", device_name,
         fmt::join(names, ", "));
  }
  const auto index = static_cast<std::size_t>(at - names.begin());
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<GpuDevice>& device = devices_[index];
  if (device == nullptr) {
    DeviceInfo info = found_.devices[index];
    info.name = *at;
    device = std::make_unique<GpuDevice>(driver_, static_cast<int>(index), std::move(info));
  }
  return *device;
}

void NativeBackend::register_kernels(KernelRegistry& registry) const {
  register_library_kernels(registry);
  register_kokkos_kernels(registry);
}

std::vector<std::string> NativeBackend::default_providers() const {
  std::vector<std::string> providers = library_providers();
  providers.emplace_back("kokkos");
  return providers;
}

}  // namespace turnout::gpu
