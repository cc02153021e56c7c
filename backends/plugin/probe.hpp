#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// What is asked before a plugin is opened: a plugin without a device would only get in the way.
namespace turnout::plugin {

struct Probe {
  std::vector<std::string> architectures;  ///< of the devices, in the driver's order: "sm_90"
  std::string why_none;                    ///< when there is none
};

/// Devices of the vendor whose plugins are called `name` ("cuda", "hip"). Opens no plugin.
Probe probe_devices(std::string_view name);

/// NVIDIA's, from the driver's library.
Probe probe_driver_library(const char* file);
/// AMD's, from the kernel driver's list of nodes.
Probe probe_kernel_nodes(const std::filesystem::path& nodes);

/// "sm_90" -> 90, "gfx90a" -> 0x90a; -1 for anything else.
int architecture_number(std::string_view architecture);
/// True if code for `built` runs on `device`: the same target, or for "sm_<n>", which carry an
/// intermediate form too, an older one.
bool runs_on(std::string_view built, std::string_view device);

}  // namespace turnout::plugin
