// The one symbol of a GPU plugin. Linked into plugins alone.
#include "core/plugin.hpp"

#include <cstdio>
#include <cstring>

#include "backends/gpu/native_backend.hpp"
#include "generated/build_id.hpp"

namespace turnout::gpu {
namespace {

int answer(const PluginRequest& request, PluginStatus status, const char* text) {
  if (request.error != nullptr && request.error_bytes > 0) {
    std::snprintf(request.error, request.error_bytes, "%s", text);
  }
  return static_cast<int>(status);
}

int open(const PluginRequest& request, Backend** backend) {
  if (request.abi_version != kPluginAbi) {
    return answer(
        request, PluginStatus::mismatch,
        fmt::format("it has plugin ABI {}, the program {}", kPluginAbi, request.abi_version)
            .c_str());
  }
  if (std::strcmp(request.build_id, kBuildId) != 0) {
    return answer(
        request, PluginStatus::mismatch,
        fmt::format("it was built as {}, the program as {}", kBuildId, request.build_id).c_str());
  }
  auto native = std::make_unique<NativeBackend>(request.options);
  if (native->device_names().empty()) {
    return answer(request, PluginStatus::no_device, native->why_none().c_str());
  }
  *backend = native.release();
  return answer(request, PluginStatus::ok, "");
}

}  // namespace
}  // namespace turnout::gpu

extern "C" __attribute__((visibility("default"))) int turnout_plugin_v1(
    const turnout::PluginRequest* request, turnout::Backend** backend) {
  try {
    return turnout::gpu::open(*request, backend);
  } catch (const std::exception& error) {
    return turnout::gpu::answer(*request, turnout::PluginStatus::failed, error.what());
  } catch (...) {
    return turnout::gpu::answer(*request, turnout::PluginStatus::failed, "an unknown exception");
  }
}
