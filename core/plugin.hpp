#pragma once

#include <cstddef>
#include <cstdint>

// How a backend in a shared library of its own comes into a program.
//
// A plugin exports one C symbol, kPluginSymbol, of type PluginEntry, and nothing else. Program and
// plugin share C++ types (core/), so both have to be built from the same ones: the plugin compares
// ABI version and build id with its own before it does anything else. The backend it hands out is
// never deleted, and the library never closed, before the process ends: its kernels may be in use.
namespace turnout {

class Backend;

inline constexpr std::uint32_t kPluginAbi = 1;
inline constexpr const char* kPluginSymbol = "turnout_plugin_v1";

struct PluginRequest {
  std::uint32_t abi_version;
  const char* build_id;  ///< generated/build_id.hpp of the program
  const char* options;   ///< the plugin's own; "" for none
  char* error;           ///< why there is no backend: zero-terminated, cut to error_bytes
  std::size_t error_bytes;
};

enum class PluginStatus : int {
  ok = 0,
  mismatch = 1,   ///< another ABI version or build
  no_device = 2,  ///< the plugin found no device that it can use
  failed = 3,
};

/// Sets *backend on ok. Throws nothing: exceptions become a status and a text here.
using PluginEntry = int (*)(const PluginRequest* request, Backend** backend);

}  // namespace turnout
