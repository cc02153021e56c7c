// What an emulated vendor has beside a driver: no libraries, and options for its devices.
#include "backends/gpu/library.hpp"
#include "backends/gpu/profile.hpp"
#include "backends/gpu/vendor/host.hpp"
#include "core/error.hpp"

namespace turnout::gpu {

void register_library_kernels(KernelRegistry&) {}
std::vector<std::string> library_providers() { return {}; }

namespace vendor {

// "profiles=v100,mi210;threads=1"
DriverOptions parse_options(std::string_view text) {
  DriverOptions options;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const std::string_view key = entry.substr(0, entry.find('='));
    std::string_view value = entry.substr(std::min(entry.size(), key.size() + 1));
    if (key == "threads" && (value == "0" || value == "1")) {
      options.threads = value == "1";
    } else if (key == "profiles") {
      while (!value.empty()) {
        const std::string_view name = value.substr(0, value.find(','));
        value.remove_prefix(std::min(value.size(), name.size() + 1));
        options.devices.push_back(device_info(load_profile(name), name));
      }
    } else {
      fail(ErrorCode::invalid_argument, "[{}] unknown option '{}'", kName, entry);
    }
  }
  return options;
}

}  // namespace vendor
}  // namespace turnout::gpu
