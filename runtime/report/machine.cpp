#include "runtime/report/machine.hpp"

#include <sys/utsname.h>

#include <fstream>

#include "generated/turnout_config.hpp"
#include "runtime/system.hpp"

namespace turnout {
namespace {

constexpr const char* kUnknown = "unknown";

std::string trimmed(std::string text) {
  const auto keep = [](char c) { return c != ' ' && c != '\t' && c != '"'; };
  while (!text.empty() && !keep(text.back())) text.pop_back();
  while (!text.empty() && !keep(text.front())) text.erase(text.begin());
  return text;
}

// What stands after `separator` on the first line that begins with `key`.
std::string find_line(const char* file, std::string_view key, char separator) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    const auto at = line.find(separator);
    if (at != std::string::npos) return trimmed(line.substr(at + 1));
  }
  return kUnknown;
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return kUnknown;
#endif
}

}  // namespace

Machine this_machine(const System& system) {
  Machine machine;
  machine.cpu = find_line("/proc/cpuinfo", "model name", ':');
  machine.cores = core_count();
  machine.system = find_line("/etc/os-release", "PRETTY_NAME=", '=');
  utsname names{};
  if (uname(&names) == 0) {
    machine.system += fmt::format(", {} {}, {}", names.sysname, names.release, names.machine);
  }
  machine.version = config::kVersion;
  machine.build = fmt::format("{}, compiled for {}", compiler(), config::kCpuArch);
  for (const std::string& name : system.kernels(*system.backends()[0]).providers()) {
    machine.providers.push_back(name);
  }
  return machine;
}

std::string describe(const Machine& machine) {
  return fmt::format("{}, {} {}; {}; turnout {} ({}; {})", machine.cpu, machine.cores,
                     machine.cores == 1 ? "core" : "cores", machine.system, machine.version,
                     machine.build, fmt::join(machine.providers, ", "));
}

}  // namespace turnout
