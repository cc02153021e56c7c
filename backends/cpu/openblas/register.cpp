#include "backends/cpu/openblas/blas.hpp"
#include "backends/cpu/openblas/kernels.hpp"
#include "core/backend.hpp"

namespace turnout {
namespace openblas {
namespace {

Acceptance accept(const NodeInfo& info, const DeviceInfo& device, const Maker& maker) {
  if (!device.is_host) return Acceptance::no("runs on the host only");
  const DType dtype = info.input(0).dtype;
  if (dtype != DType::f32 && dtype != DType::f64) {
    return Acceptance::no(fmt::format("OpenBLAS has no product of {}", to_string(dtype)));
  }
  return maker.accepts(info);
}

}  // namespace

void add_kernel(KernelRegistry& registry, std::string op, Maker maker) {
  KernelEntry entry;
  entry.op = std::move(op);
  entry.provider = "openblas";
  entry.accepts = [maker](const NodeInfo& info, const DeviceInfo& device) {
    return accept(info, device, maker);
  };
  entry.prepare = [maker](const PrepareContext& context) {
    use_one_thread();
    const DType dtype = context.info.input(0).dtype;
    auto kernel = dtype == DType::f64 ? maker.f64(context) : maker.f32(context);
    kernel->cost = cost_of(context.info);
    kernel->dtype = dtype;
    return kernel;
  };
  registry.add(std::move(entry));
}

}  // namespace openblas

void register_openblas_kernels(KernelRegistry& registry) {
  openblas::register_matmul(registry);
  openblas::register_conv(registry);
}

}  // namespace turnout
