#include "backends/plugin/probe.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "core/error.hpp"

namespace turnout::plugin {
namespace {

// A function of a library by its C name; null when it isn't there.
template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

struct Library {
  explicit Library(const char* file) : handle(dlopen(file, RTLD_LAZY | RTLD_LOCAL)) {}
  ~Library() {
    if (handle != nullptr) dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  void* handle;
};

Probe none(std::string why) { return {{}, std::move(why)}; }

}  // namespace

Probe probe_devices(std::string_view name) {
  if (name == "cuda") return probe_driver_library("libcuda.so.1");
  if (name == "hip") return probe_kernel_nodes("/sys/class/kfd/kfd/topology/nodes");
  return none(fmt::format("nobody knows how to look for devices of '{}'", name));
}

// cuInit, cuDeviceGetCount, cuDeviceGet and cuDeviceGetAttribute have been the same since 2007.
Probe probe_driver_library(const char* file) {
  const Library library(file);
  if (library.handle == nullptr) {
    return none(fmt::format("the driver was not found ({} can't be opened)", file));
  }
  constexpr int kMajor = 75, kMinor = 76;  // attributes: compute capability
  const auto init = symbol<int (*)(unsigned)>(library.handle, "cuInit");
  const auto count_of = symbol<int (*)(int*)>(library.handle, "cuDeviceGetCount");
  const auto get = symbol<int (*)(int*, int)>(library.handle, "cuDeviceGet");
  const auto attribute = symbol<int (*)(int*, int, int)>(library.handle, "cuDeviceGetAttribute");
  if (init == nullptr || count_of == nullptr || get == nullptr || attribute == nullptr) {
    return none(fmt::format("{} is not a driver", file));
  }
  if (const int status = init(0); status != 0) {
    return none(fmt::format("the driver doesn't start (status {})", status));
  }
  int count = 0;
  if (const int status = count_of(&count); status != 0) {
    return none(fmt::format("the driver doesn't list its devices (status {})", status));
  }
  Probe probe;
  for (int i = 0; i < count; ++i) {
    int device = 0, major = 0, minor = 0;
    if (get(&device, i) != 0 || attribute(&major, kMajor, device) != 0 ||
        attribute(&minor, kMinor, device) != 0) {
      continue;
    }
    probe.architectures.push_back(fmt::format("sm_{}{}", major, minor));
  }
  if (probe.architectures.empty()) probe.why_none = "the driver reports no device";
  return probe;
}

Probe probe_kernel_nodes(const std::filesystem::path& nodes) {
  std::error_code error;
  if (!std::filesystem::is_directory(nodes, error)) {
    return none(fmt::format("the driver was not found ({} isn't there)", nodes.string()));
  }
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(nodes, error)) {
    folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  Probe probe;
  for (const auto& folder : folders) {
    std::ifstream file(folder / "properties");
    std::string key;
    long value = 0;
    while (file >> key >> value) {
      // 90010 is 9.0.10, gfx90a; 0 is a processor.
      if (key != "gfx_target_version" || value <= 0) continue;
      probe.architectures.push_back(
          fmt::format("gfx{}{:x}{:x}", value / 10000, value / 100 % 100, value % 100));
    }
  }
  if (probe.architectures.empty()) probe.why_none = "the driver lists no device";
  return probe;
}

int architecture_number(std::string_view architecture) {
  const bool decimal = architecture.starts_with("sm_");
  if (!decimal && !architecture.starts_with("gfx")) return -1;
  const std::string_view digits = architecture.substr(3);
  int number = -1;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, decimal ? 10 : 16);
  return error == std::errc() && end == digits.data() + digits.size() ? number : -1;
}

bool runs_on(std::string_view built, std::string_view device) {
  if (built == device) return true;
  const int from = architecture_number(built), to = architecture_number(device);
  return built.starts_with("sm_") && device.starts_with("sm_") && from >= 0 && from < to;
}

}  // namespace turnout::plugin
