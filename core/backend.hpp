#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.hpp"
#include "core/kernel.hpp"

namespace turnout {

/// A family of devices and their kernels: the whole contract between runtime and hardware. None of
/// its methods names an op. Thread-safe after construction.
class Backend {
 public:
  virtual ~Backend() = default;
  /// First part of a device's name: "cpu", "virtual".
  virtual std::string_view name() const = 0;
  /// Opens a device by its full name ("cpu", "virtual:h100", "virtual:my.json"). The same name
  /// gives the same device; it lives as long as the backend. Error not_found with what there is
  /// instead.
  virtual Device& open(std::string_view device_name) = 0;
  /// Names a user can open now, for listings.
  virtual std::vector<std::string> device_names() const = 0;
  /// Adds the kernels of this backend's devices.
  virtual void register_kernels(KernelRegistry& registry) const = 0;
  /// Providers tried when the user names none, best first. Never "reference" unless it is the only
  /// one built.
  virtual std::vector<std::string> default_providers() const = 0;
  /// One line per part that isn't there, with the reason ("openblas: not built").
  virtual std::vector<std::string> missing() const { return {}; }
};

/// The backends of this build, host first. Defined in a file that CMake writes from the options.
std::vector<std::unique_ptr<Backend>> make_backends();

// Factories; those that are built are called by make_backends().
std::unique_ptr<Backend> make_cpu_backend();
std::unique_ptr<Backend> make_virtual_backend();
/// Devices behind a plugin, which is opened when they are asked for: "cuda", "hip".
std::unique_ptr<Backend> make_plugin_backend(std::string_view name);

// Providers of the CPU; those that are built are called by register_cpu_providers(), which CMake
// writes too.
void register_onednn_kernels(KernelRegistry& registry);
void register_openblas_kernels(KernelRegistry& registry);
void register_kokkos_kernels(KernelRegistry& registry);
/// A kernel for every op, from its naive reference. Host only.
void register_reference_kernels(KernelRegistry& registry);
void register_cpu_providers(KernelRegistry& registry);

}  // namespace turnout
