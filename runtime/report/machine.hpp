#pragma once

#include <string>
#include <vector>

namespace turnout {

/// The machine and the build that figures come from. Nothing in it names the host or its user.
struct Machine {
  std::string cpu;                     ///< "AMD EPYC 7B13"; "unknown" if the system doesn't say
  int cores = 0;                       ///< that this process may use
  std::string system;                  ///< "Debian GNU/Linux 12 (bookworm), Linux 6.1.0, x86_64"
  std::string version;                 ///< of Turnout
  std::string build;                   ///< compiler and processor compiled for
  std::vector<std::string> providers;  ///< of the CPU
  friend bool operator==(const Machine&, const Machine&) = default;
};

class System;
/// Reads /proc/cpuinfo, /etc/os-release and uname; never fails, says "unknown" instead.
Machine this_machine(const System& system);

/// "AMD EPYC 7B13, 2 cores; Debian ..., Turnout 0.1.0 (GCC 12.2.0, native; onednn, kokkos)".
std::string describe(const Machine& machine);

}  // namespace turnout
