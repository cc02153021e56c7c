#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "backends/kokkos/mode.hpp"
#include "core/kernel.hpp"
#include "core/portable.hpp"
#if TURNOUT_KOKKOS_DEVICE
#include "backends/kokkos/device/launch.hpp"
#else
#include "backends/kokkos/host/launch.hpp"
#endif

// What kernels are made of. A loop body is a functor: a small struct of pointers and numbers with
// `TURNOUT_HD void operator()(std::int64_t i) const`. parallel_for() is the launcher:
//
//   struct Double { const float* x; float* y;
//     TURNOUT_HD void operator()(std::int64_t i) const { y[i] = 2 * x[i]; } };
//   parallel_for(launch, n, 0.5, Double{launch.input<float>(0), launch.output<float>(0)});
namespace turnout::kokkos {

/// A prepared kernel around a function `void(const Launch&)`, which has what it needs captured by
/// value.
template <typename Run>
class FunctionKernel final : public PreparedKernel {
 public:
  FunctionKernel(Run run, int threads, std::string implementation, std::size_t workspace_bytes)
      : run_(std::move(run)),
        parallel_(threads),
        implementation_(std::move(implementation)),
        workspace_bytes_(workspace_bytes) {}
  void run(const KernelArgs& args, Stream& stream) const override {
    run_(Launch(args, stream, parallel_));
  }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  std::string implementation() const override { return implementation_; }

 private:
  Run run_;
  Parallel parallel_;
  std::string implementation_;
  std::size_t workspace_bytes_;
};

template <typename Run>
std::unique_ptr<PreparedKernel> make_kernel(const PrepareContext& context, Run run,
                                            std::string implementation,
                                            std::size_t workspace_bytes = 0) {
  auto kernel = std::make_unique<FunctionKernel<Run>>(std::move(run), context.threads,
                                                      std::move(implementation), workspace_bytes);
  kernel->cost = cost_of(context.info);
  if (context.info.has_input(0)) kernel->dtype = context.info.input(0).dtype;
  return kernel;
}

/// Kernels of host mode run on hosts and on devices emulated by one, those of device mode on other
/// devices.
Acceptance accept_device(const DeviceInfo& device);

/// Calls f(std::type_identity<T>{}) with the C++ type of a floating dtype.
template <typename F>
decltype(auto) dispatch_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(std::type_identity<float>{});
    case DType::f64:
      return f(std::type_identity<double>{});
    case DType::f16:
      return f(std::type_identity<Half>{});
    case DType::bf16:
      return f(std::type_identity<BFloat16>{});
    default:
      fail(ErrorCode::internal, "a kernel for floating types was given {}", to_string(dtype));
  }
}

/// accepts() rules: any tensors; those whose input 0 is f32, f64, f16 or bf16.
Acceptance accept_any(const NodeInfo& info);
Acceptance accept_floating(const NodeInfo& info);
/// The refusal of a dtype.
Acceptance refuse_dtype(DType dtype);

/// Adds an entry of the provider "kokkos"; `accepts` is asked after accept_device().
void add_kernel(KernelRegistry& registry, std::string op, Acceptance (*accepts)(const NodeInfo&),
                std::unique_ptr<PreparedKernel> (*prepare)(const PrepareContext&));

}  // namespace turnout::kokkos
