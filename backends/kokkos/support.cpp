#include "backends/kokkos/support.hpp"

namespace turnout::kokkos {

Acceptance accept_device(const DeviceInfo& device) {
  const bool host = device.is_host || device.is_virtual;
  if (host != kDevice) return Acceptance::yes();
  return Acceptance::no(
      (kDevice ? "built for a device, not for " : "built for the host's memory, not for ") +
      device.name);
}

Acceptance accept_any(const NodeInfo&) { return Acceptance::yes(); }

Acceptance accept_floating(const NodeInfo& info) {
  const DType dtype = info.input(0).dtype;
  return is_floating(dtype) ? Acceptance::yes() : refuse_dtype(dtype);
}

Acceptance refuse_dtype(DType dtype) {
  return Acceptance::no("no kernel for " + std::string(to_string(dtype)));
}

void add_kernel(KernelRegistry& registry, std::string op, Acceptance (*accepts)(const NodeInfo&),
                std::unique_ptr<PreparedKernel> (*prepare)(const PrepareContext&)) {
  KernelEntry entry;
  entry.op = std::move(op);
  entry.provider = "kokkos";
  entry.accepts = [accepts](const NodeInfo& info, const DeviceInfo& device) {
    Acceptance acceptance = accept_device(device);
    return acceptance.ok ? accepts(info) : acceptance;
  };
  entry.prepare = prepare;
  registry.add(std::move(entry));
}

}  // namespace turnout::kokkos
